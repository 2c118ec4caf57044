package command

import (
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward/command/stamp"
	"github.com/toolward/toolward/place"
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

// Where is where a word is looked up.
type Where struct {
	Dir       string // working directory, absolute
	Home      string // for "~/"
	Path      string // directories of the search path, joined by ":"
	Workspace string // real path of the agent's workspace; "" if it has none
}

// Resolver finds programs, and remembers where it found them for as long as the directories on the way stay as they
// are. It is safe for concurrent use.
type Resolver struct {
	files    FileSystem
	listener listener // the same, if it hears of changes; else nil

	mu    sync.RWMutex
	known map[lookup]*answer
}

// lookup is what an answer depends on besides the file system.
type lookup struct {
	word string
	path string // search path, joined; "" if the word names a path
	kind kind
}

// kind is what a path must be.
type kind uint8

const (
	program   kind = iota // a regular file that can be executed
	regular               // a regular file
	directory             // a directory
	anything
)

type answer struct {
	path, real string // "" if there is none
	writable   string
	names      []string // of a program that was searched
	seen       []seen
	passing    bool // it may change without a directory changing: not remembered

	watch     *watch       // of the directories in seen; nil if they are not watched
	confirmed atomic.Int32 // how often looks at the directories confirmed it since
}

// maxKnown bounds what is remembered: whoever asks for ever new names must not fill the memory.
const maxKnown = 8192

// NewResolver returns a resolver for a file system.
func NewResolver(files FileSystem) *Resolver {
	hears, _ := files.(listener)
	return &Resolver{files: files, listener: hears, known: map[lookup]*answer{}}
}

// Program finds the program that a word means.
func (r *Resolver) Program(word string, where Where) Program {
	m := moment{r: r}
	return m.program(word, where)
}

// moment is a resolver during one decision: within it every directory is looked at once.
type moment struct {
	r     *Resolver
	heard bool   // changes until this decision began were taken note of
	fresh []seen // directories that were looked at already
	room  [16]seen
}

func (m *moment) program(word string, where Where) Program {
	p := Program{Word: word}
	if word == "" || strings.IndexByte(word, 0) >= 0 || strings.HasSuffix(word, "/") { // a directory, or nothing
		return p
	}
	var found *answer
	if rest, home := strings.CutPrefix(word, "~/"); home {
		found = m.lookup(lookup{word: path.Join(where.Home, rest)})
	} else if strings.Contains(word, "/") {
		found = m.lookup(lookup{word: absolute(where.Dir, word)})
	} else {
		found = m.search(word, where.Path)
		p.searched, p.called = true, found.names
	}
	p.Path, p.Real = found.path, found.real
	if p.Found() {
		p.Hijack = hijack(&p, found.writable, where.Workspace)
	}
	if p.Found() && p.searched && p.Hijack == "" && leadsHere(where.Path) {
		p.Hijack = "the search path has an empty or relative directory"
	}
	return p
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

// absolute makes a path absolute and clean.
func absolute(dir, p string) string {
	switch {
	case p == "":
		return path.Clean(dir)
	case path.IsAbs(p):
		return path.Clean(p)
	}
	return path.Join(dir, p)
}

// search looks through the search path. Empty and relative elements are skipped: they mean the working directory,
// where an agent or a downloaded archive puts what it likes.
func (m *moment) search(name, dirs string) *answer {
	return m.lookup(lookup{word: name, path: dirs})
}

// real returns the real path of an absolute path, or "" if nothing of the kind is there.
func (m *moment) real(p string, k kind) string {
	return m.lookup(lookup{word: path.Clean(p), kind: k}).real
}

func (m *moment) lookup(key lookup) *answer {
	m.r.mu.RLock()
	known := m.r.known[key]
	m.r.mu.RUnlock()
	if known != nil && m.holds(known) {
		if m.r.listener != nil && known.confirmed.Load() >= watchAfter {
			return m.promote(key, known)
		}
		return known
	}
	found := m.r.find(key)
	m.r.remember(key, found)
	return found
}

func (r *Resolver) find(key lookup) *answer {
	w := &walk{files: r.files}
	found := find(w, key)
	found.seen = w.seen
	if key.path != "" {
		found.names = namesOf(key.word, found.real)
	}
	return found
}

// remember keeps an answer, unless it may change without notice.
func (r *Resolver) remember(key lookup, found *answer) {
	if found.passing || found.recent() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxKnown {
		clear(r.known)
	}
	r.known[key] = found
}

// holds reports whether all directories on the way are as they were.
func (m *moment) holds(known *answer) bool {
	if known.watch != nil {
		if !m.heard {
			m.r.listener.hear()
			m.heard = true
		}
		if known.watch.quiet() {
			return true
		}
	}
	for i := range known.seen {
		if m.stamp(known.seen[i].dir) != known.seen[i].stamp {
			return false
		}
	}
	known.confirmed.Add(1)
	return true
}

// recent reports whether a directory on the way has just changed: another change at once could leave it with the same
// stamp.
func (a *answer) recent() bool {
	since := time.Now().Add(-stamp.Tick).UnixNano()
	return slices.ContainsFunc(a.seen, func(s seen) bool { return s.stamp.Changed > since })
}

func (m *moment) stamp(dir string) Stamp {
	for i := range m.fresh {
		if m.fresh[i].dir == dir {
			return m.fresh[i].stamp
		}
	}
	node, err := m.r.files.Look(dir)
	if err != nil {
		node = Node{} // never the stamp of a directory that was seen
	}
	if m.fresh == nil {
		m.fresh = m.room[:0]
	}
	m.fresh = append(m.fresh, seen{dir, node.Stamp})
	return node.Stamp
}

// find follows the path, or searches the search path.
func find(w *walk, key lookup) *answer {
	if key.kind != program || strings.Contains(key.word, "/") {
		return look(w, key.word, key.kind)
	}
	passing := false
	for dir := range strings.SplitSeq(key.path, ":") {
		if !path.IsAbs(dir) {
			continue
		}
		// A directory that does not exist yet may come: the walk notes where it ended.
		w.writable = ""
		at, node, ok := w.follow(dir)
		if !ok || !node.Mode.IsDir() {
			continue
		}
		real, file, ok := w.from(at, node, key.word)
		found := w.answer(path.Join(path.Clean(dir), key.word), program, real, file, ok)
		passing = passing || found.passing
		if found.path != "" {
			if node.Mode&0o002 != 0 {
				found.writable = at
			}
			found.passing = passing
			return found
		}
	}
	return &answer{passing: passing}
}

// look follows one path to a file of the kind.
func look(w *walk, p string, k kind) *answer {
	w.writable = ""
	real, node, ok := w.follow(p)
	return w.answer(p, k, real, node, ok)
}

// answer makes an answer of what a walk along a path has found.
func (w *walk) answer(p string, k kind, real string, node Node, ok bool) *answer {
	if !ok {
		return &answer{}
	}
	switch k {
	case program:
		ok = node.Mode.IsRegular() && node.Mode&0o111 != 0
	case regular:
		ok = node.Mode.IsRegular()
	case directory:
		ok = node.Mode.IsDir()
	}
	if !ok {
		return &answer{passing: true} // it can get an execute bit
	}
	return &answer{path: p, real: real, writable: w.writable}
}
