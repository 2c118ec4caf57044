package command

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// Places tells what paths are. *place.Classifier is one.
type Places interface {
	Resolve(workDir, asked string) (place.Resolved, error)
	InRoots(real string, write bool) bool
	Layout() place.Layout
}

// Request is a command and where it would run.
type Request struct {
	Command string
	Dir     string                           // working directory, absolute
	Getenv  func(name string) (string, bool) // the environment that the command would get, PATH and HOME included
	Level   toolward.Level
	Places  Places // nil: no file is in a place that is allowed

	// ByShell: somebody else's shell will run the text, with an environment of its own: the client behind a hook. What
	// that shell may read in another way than it is judged here asks.
	ByShell bool

	// Enforced: that shell gets the text that was judged in the place of the one that was sent, if nobody is asked.
	Enforced bool

	// Rejudged: if nobody is asked, it is our executor that runs it all the same, and each part's paths are judged again just before.
	Rejudged bool

	// Kept: a person can take back what calls do to the workspace. A call that would lose more than that asks for that reason.
	Kept bool

	// Sandboxed: the command would run in a sandbox.
	Sandboxed bool
}

// evaluations are used again: each is several hundred bytes that nobody keeps.
var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

// evaluation is one command being judged.
type evaluation struct {
	e      *Evaluator
	r      *Request
	moment moment
	places interface {
		Resolve(workDir, asked string) (place.Resolved, error)
	}
	glance place.Glance // what places is on the disk
	where  Where
	out    *Assessment

	locale bool // a shell around has a locale of its own: "?" may be a byte

	words []argument // room for those of the next segments

	environment string // directory of programs that a part of the text put before all others

	several   bool     // commands: an earlier one may change what a later one finds
	linked    bool     // an earlier command may have made links
	links     []string // where, if nobody looks again
	written   bool     // an earlier command may have written files
	filled    bool     // and something into them: not mkdir
	unpacked  bool     // an earlier command may have put a repository together
	gone      []string // what an earlier command may have taken away
	emptied   bool     // the same, and it is not known what
	strangers bool     // an earlier command may have unpacked code that nobody has seen
	bounds    bounds
	listings  map[string][]fs.DirEntry // of directories whose files are read
}

func (v *evaluation) end() {
	v.glance.Close()
	words := v.words[:0]
	if clear(words[:cap(words)]); cap(words) > 256 {
		words = nil // few commands are that long
	}
	*v = evaluation{words: words}
	evaluations.Put(v)
}

func (v *evaluation) getenv(name string) string {
	if v.r.Getenv == nil {
		return ""
	}
	value, _ := v.r.Getenv(name)
	return value
}

// real is the real path of anything; "" if there is nothing.
func (v *evaluation) real(p string) string { return v.moment.real(p, anything) }

// trusts reports whether a program lies in a trusted directory, by its name and by its real path: a link elsewhere
// gives it a name that its arguments do not fit.
func (v *evaluation) trusts(p *Program) bool {
	if !p.Found() || p.Hijack != "" {
		return false
	}
	return slices.Contains(v.e.trusted, path.Dir(p.Path)) && slices.Contains(v.e.trusted, path.Dir(p.Real))
}

// locate finds out what a path means and where it lies.
func (v *evaluation) locate(dir, p string) (place.Resolved, error) {
	if v.bounds.elements += lookupCost + strings.Count(dir, "/") + strings.Count(p, "/"); v.bounds.elements > maxElements {
		return place.Resolved{}, errTooManyFiles
	}
	return v.places.Resolve(dir, p)
}

// readDir lists a directory for patterns.
func (v *evaluation) readDir(dir string) ([]fs.DirEntry, error) {
	if v.bounds.dirs++; v.bounds.dirs > maxDirsRead || v.bounds.names > maxNamesRead {
		return nil, errTooManyNames
	}
	entries, err := v.e.resolver.files.ReadDir(dir)
	v.bounds.names += len(entries)
	return entries, err
}

// mustAsk keeps the reason why a person is asked whatever the allowlist says.
func (v *evaluation) mustAsk(reason string) {
	if !slices.Contains(v.out.Findings, reason) {
		v.out.Findings = append(v.out.Findings, reason)
	}
}

// circumstances are what a segment is judged by besides its words.
type circumstances struct {
	feeding []Segment // of the pipeline before it
	fed     bool      // something is piped into it
	loose   bool      // an earlier cd may have failed unnoticed
	depth   int       // shells and programs that run others around it
	open    bool      // operands are added to it that are not known
	listed  bool      // they are names that a listing printed
	options bool      // they may look like options
}

// maxDepth is how many shells, or programs that run others, may lie around a command.
const maxDepth = 3

// argument is one word of a command on its way to the program.
type argument struct {
	text   string
	expand bool // it was expanded from what is written
	glob   bool // from a pattern for files, or from braces
}
