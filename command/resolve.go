package command

import (
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward/command/stamp"
)

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

// recent reports whether a directory on the way has just changed: another change at once could leave it with the same
// stamp.
func (a *answer) recent() bool {
	since := time.Now().Add(-stamp.Tick).UnixNano()
	return slices.ContainsFunc(a.seen, func(s seen) bool { return s.stamp.Changed > since })
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

// same reports whether two answers are equal, and were found in the same directories.
func (a *answer) same(other *answer) bool {
	if a.path != other.path || a.real != other.real || a.writable != other.writable || a.passing || len(a.seen) != len(other.seen) {
		return false
	}
	for i := range a.seen {
		if a.seen[i] != other.seen[i] {
			return false
		}
	}
	return true
}
