package command

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward/command/allowlist"
)

// Config is what tools.exec says about commands, for the whole gateway or for one agent. What an agent's section says
// stands in the place of the gateway's, but for rules: those of both count.
type Config struct {
	Host   Host   `json:"host,omitempty" jsonschema:"where commands run: gateway or sandbox; default: the sandbox if there is one"`
	Preset Preset `json:"preset,omitempty" jsonschema:"what runs besides the allowlist: strict (default, nothing) or developer: reads in the workspace, builds, tests, formatters, version control"`
	Rules  []Rule `json:"rules,omitempty" jsonschema:"what happens to commands that begin with certain words; the strictest rule that fits decides"`

	SafeBins           []string           `json:"safeBins,omitzero" jsonschema:"stream filters that run without an entry; default cut, uniq, head, tail, tr, wc; [] is none"`
	SafeBinProfiles    map[string]SafeBin `json:"safeBinProfiles,omitempty" jsonschema:"what stream filters may be given, by name"`
	SafeBinTrustedDirs []string           `json:"safeBinTrustedDirs,omitzero" jsonschema:"directories besides /bin and /usr/bin where stream filters, wrappers and shells may lie"`

	StrictInlineEval *bool `json:"strictInlineEval,omitempty" jsonschema:"inline code such as python -c always asks; default true"`
}

// Configuration is everything that the configuration says about commands.
type Configuration struct {
	Gateway Config
	Agents  map[string]Config // by agent id, in lower case
	Writes  bool              // files of the workspace are written without a question: teg.preset "workspace"

	Elevated        ElevatedConfig
	AgentElevated   map[string]*ElevatedConfig
	ElevatedDefault string // level of a session that nobody has set one for
}

// For is the section that counts for an agent.
func (c *Configuration) For(agent string) Config {
	merged, own := c.Gateway, c.Agents[agentKey(agent)]
	merged.Host, merged.Preset = cmp.Or(own.Host, merged.Host), cmp.Or(own.Preset, merged.Preset)
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
	merged.StrictInlineEval = cmp.Or(own.StrictInlineEval, merged.StrictInlineEval)
	return merged
}

// agentKey is the name under which the configuration has an agent.
func agentKey(agent string) string { return strings.ToLower(strings.TrimSpace(agent)) }

func (c *Config) policy(entries []allowlist.Listed, writes, foldCase bool) Policy {
	return Policy{
		Preset: c.Preset, Writes: writes, Entries: entries, Rules: c.Rules,
		SafeBins: c.SafeBins, SafeBinProfiles: c.SafeBinProfiles, SafeBinTrustedDirs: c.SafeBinTrustedDirs,
		LooseInlineEval: c.looseInlineEval(), FoldCase: foldCase,
	}
}

func (c *Config) looseInlineEval() bool { return c.StrictInlineEval != nil && !*c.StrictInlineEval }

func (c *Config) safeBins() []string {
	if c.SafeBins == nil {
		return DefaultSafeBins
	}
	return c.SafeBins
}
