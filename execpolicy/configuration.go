package execpolicy

import (
	"fmt"
	"maps"
	"slices"
)

// Config is what tools.exec says about commands, for the whole gateway or for one agent. What an agent's section says
// stands in the place of the gateway's, but for rules: those of both count.
type Config struct {
	Host   Host   `json:"host,omitempty" jsonschema:"where commands run: gateway or sandbox; default: the sandbox if there is one"`
	Preset Preset `json:"preset,omitempty" jsonschema:"what runs besides the allowlist: strict (default, nothing) or developer: reads in the workspace, builds, tests, formatters, version control"`
	Rules  []Rule `json:"rules,omitempty" jsonschema:"what happens to commands that begin with certain words; the strictest rule that fits decides"`

	SafeBins           []string           `json:"safeBins,omitzero" jsonschema:"stream filters that run without an entry; default cut, uniq, head, tail, tr, wc; [] is none"`
	SafeBinProfiles    map[string]SafeBin `json:"safeBinProfiles,omitempty" jsonschema:"what stream filters may be given, by name"`
	SafeBinTrustedDirs []string           `json:"safeBinTrustedDirs,omitempty" jsonschema:"directories besides /bin and /usr/bin where stream filters, wrappers and shells may lie"`

	StrictInlineEval *bool `json:"strictInlineEval,omitempty" jsonschema:"inline code such as python -c always asks; default true"`
}

// Configuration is everything that the configuration says about commands.
type Configuration struct {
	Gateway Config
	Agents  map[string]Config // by agent id
	Writes  bool              // files of the workspace are written without a question: teg.preset "workspace"

	Elevated        ElevatedConfig
	AgentElevated   map[string]*ElevatedConfig
	ElevatedDefault string // level of a session that nobody has set one for
}

// For is the section that counts for an agent.
func (c *Configuration) For(agent string) Config {
	merged, own := c.Gateway, c.Agents[agent]
	merged.Host, merged.Preset = given(own.Host, merged.Host), given(own.Preset, merged.Preset)
	merged.Rules = slices.Concat(merged.Rules, own.Rules)
	if own.SafeBins != nil {
		merged.SafeBins = own.SafeBins
	}
	merged.SafeBinProfiles = maps.Clone(merged.SafeBinProfiles)
	for name, profile := range own.SafeBinProfiles {
		if merged.SafeBinProfiles == nil {
			merged.SafeBinProfiles = map[string]SafeBin{}
		}
		merged.SafeBinProfiles[name] = profile
	}
	if own.SafeBinTrustedDirs != nil {
		merged.SafeBinTrustedDirs = own.SafeBinTrustedDirs
	}
	merged.StrictInlineEval = given(own.StrictInlineEval, merged.StrictInlineEval)
	return merged
}

// Check compiles every section and reports the first one that is wrong, with its place in the file, and what is ignored.
func (c *Configuration) Check() (warnings []string, err error) {
	resolver := NewResolver(Disk{})
	sections := map[string]Config{"tools.exec": c.Gateway}
	for agent := range c.Agents {
		sections["agent "+agent+": tools.exec"] = c.For(agent)
	}
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		section := sections[name]
		_, more, err := New(section.policy(Modes{}, nil, false, false), "", resolver)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, w := range more {
			if !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	return warnings, nil
}

func (c *Config) policy(modes Modes, entries []Listed, writes, foldCase bool) Policy {
	return Policy{
		Modes: modes, Preset: c.Preset, Writes: writes, Entries: entries, Rules: c.Rules,
		SafeBins: c.SafeBins, SafeBinProfiles: c.SafeBinProfiles, SafeBinTrustedDirs: c.SafeBinTrustedDirs,
		LooseInlineEval: c.StrictInlineEval != nil && !*c.StrictInlineEval, FoldCase: foldCase,
	}
}
