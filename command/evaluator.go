package command

import (
	"fmt"
	"path"
)

// Evaluator judges commands by the settings of one agent on one host. It is immutable and safe for concurrent use.
type Evaluator struct {
	policy   Policy
	resolver *Resolver
	entries  entryIndex
	bins     safeBinSet
	trusted  []string // directories of safe bins, wrappers and shells
}

// New compiles policy. home is what "~/" means in patterns. Warnings tell people what is ignored or risky, and why.
func New(policy Policy, home string, resolver *Resolver) (e *Evaluator, warnings []SettingError, err error) {
	settings := Config{
		Preset: policy.Preset, Rules: policy.Rules,
		SafeBins: policy.SafeBins, SafeBinProfiles: policy.SafeBinProfiles, SafeBinTrustedDirs: policy.SafeBinTrustedDirs,
	}
	if wrong := settings.Check(); len(wrong) > 0 {
		return nil, nil, wrong[0]
	}
	bins, ignored := compileSafeBins(policy.SafeBins, policy.SafeBinProfiles)
	e = &Evaluator{policy: policy, resolver: resolver, bins: bins, trusted: []string{"/bin", "/usr/bin"}}
	for i, dir := range policy.SafeBinTrustedDirs {
		dir = path.Clean(dir)
		if node, err := resolver.files.Look(dir); err == nil && node.Mode&0o022 != 0 {
			ignored.add(fmt.Sprintf("exec.safeBinTrustedDirs[%d]", i), "others can write to %s: what they put there would be trusted", dir)
		}
		e.trusted = append(e.trusted, dir)
	}
	e.entries = compileEntries(policy.Entries, home, policy.FoldCase)
	return e, ignored, nil
}
