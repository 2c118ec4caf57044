package command

import (
	"fmt"

	"github.com/toolward/toolward/command/allowlist"
)

// Policy says what covers the commands of one agent on one host. The zero value covers nothing.
type Policy struct {
	Preset  Preset
	Writes  bool // files of the workspace are written without a question, as with teg.preset "workspace"
	Entries []allowlist.Listed
	Rules   []Rule

	SafeBins           []string // nil: DefaultSafeBins; empty: none
	SafeBinProfiles    map[string]SafeBin
	SafeBinTrustedDirs []string // besides /bin and /usr/bin; wrappers and shells must lie in one, too

	LooseInlineEval bool // inline code under a path entry runs (strictInlineEval: false)
	FoldCase        bool // the file system takes names that differ in case for the same
}

// Preset is what runs besides what entries name.
type Preset string

// The presets.
const (
	Strict    Preset = "strict"    // nothing runs without an entry; entries that do not say so do not write
	Developer Preset = "developer" // reading and writing in the workspace, builds, tests, formatters, version control
)

// ParsePreset reads the name of a preset; "" is strict.
func ParsePreset(name string) (Preset, error) {
	switch Preset(name) {
	case "", Strict:
		return Strict, nil
	case Developer:
		return Developer, nil
	}
	return Strict, fmt.Errorf("invalid preset %q: use one of strict, developer", name)
}
