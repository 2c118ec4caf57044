package trial

import "github.com/toolward/toolward/shell/profiles"

// Program is a profile of a program, which says what its commands do.
type Program struct {
	Names    []string `json:"names"`
	Style    string   `json:"style"`
	Commands int      `json:"commands"` // subcommands
	Options  int      `json:"options"`
	File     string   `json:"file"`
	Source   string   `json:"-"` // the profile itself
}

// Programs are the programs that have a profile.
func Programs() (list []Program) {
	for _, p := range profiles.All() {
		list = append(list, programOf(p))
	}
	return list
}

// ProgramOf is the profile of a program, by any of its names.
func ProgramOf(name string) (Program, bool) {
	p := profiles.Of(name)
	if p == nil {
		return Program{}, false
	}
	return programOf(p), true
}

func programOf(p *profiles.Profile) Program {
	out := Program{Names: p.Names, Style: string(p.Style), File: p.File, Source: p.Source}
	for name, section := range p.Sections {
		if name != section.Command {
			continue
		}
		out.Options += len(section.Options)
		if name != "" {
			out.Commands++
		}
	}
	return out
}
