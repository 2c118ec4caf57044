package command

import (
	"path"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// Program is what the first word of a command means. The zero value was not found.
type Program struct {
	Word string `json:"word"`               // as given
	Path string `json:"path,omitempty"`     // absolute, links kept: programs look at the name by which they are called
	Real string `json:"realPath,omitempty"` // without links
	// Hijack says why somebody else could have put another program here: the search path, or a link, leads to where
	// an agent or a stranger can write.
	Hijack string `json:"hijack,omitempty"`

	searched bool     // found by its name on the search path
	called   []string // what names gives; nil if that is not known yet
}

// Found reports whether the program exists and can be run.
func (p *Program) Found() bool { return p.Path != "" }

// names by which a program goes: that of the word and that of the file behind it. A link must not give an interpreter
// an innocent name.
func (p *Program) names() []string {
	if p.called == nil {
		p.called = namesOf(p.Word, p.Real)
	}
	return p.called
}

func namesOf(word, real string) []string {
	name := plainName(word)
	if other := plainName(real); real != "" && other != name {
		return []string{name, other}
	}
	return []string{name}
}

// plainName is the name of a program without the version at its end: python3.12 is python.
func plainName(word string) string {
	name := shell.ProgramName(word)
	if last := name[len(name)-1]; last >= 'a' && last <= 'z' {
		return name
	}
	if short := strings.TrimRight(name, "-.0123456789"); short != "" {
		return short
	}
	return name
}

// hijack says why the program may be another than people think.
func hijack(p *Program, writable, workspace string) string {
	inside := place.Within(p.Real, workspace)
	switch {
	case writable != "":
		return "everybody can write to " + writable
	case p.searched && (inside || place.Within(p.Path, workspace)):
		// An agent that writes ./bin/git must not be asked about "git" by a name that people trust.
		return "the search path leads into the workspace"
	case inside && !place.Within(p.Path, workspace):
		return "a link leads into the workspace"
	}
	return ""
}

// leadsHere reports whether a search path has an element that means the working directory. It is skipped here, but what
// the program itself looks up would be found there.
func leadsHere(searchPath string) bool {
	for rest, more := searchPath, searchPath != ""; more; {
		var dir string
		if dir, rest, more = strings.Cut(rest, ":"); !path.IsAbs(dir) {
			return true
		}
	}
	return false
}
