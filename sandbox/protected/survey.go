package protected

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
)

const (
	maxWalked = 1_000_000 // entries of the writable directories of one sandbox
	maxDepth  = 100
	// settled is how long after a change a directory is read again: a file system's clock has ticks, and what changes
	// twice in one looks unchanged.
	settled = 200 * time.Millisecond
)

var errTooLarge = &sandbox.Error{
	Code: sandbox.CodeConfig, Text: "the workspace is too large to look for protected files in it",
	Fix: "use a smaller workspace, or set sandbox.fs.allowProtected",
}

// Survey knows what is protected below the writable mounts of a sandbox, at every depth: the hooks of a repository inside
// a repository are run by the host as well. What was there at the start is read-only inside; what comes to be later is
// found by looking again. It goes by descriptors and follows no link, because the sandbox may change the tree meanwhile,
// and it opens nothing but directories and the small files of git that it has to read.
type Survey struct {
	shown Shown
	open  bool // nothing keeps commands from writing what was there at the start

	mu   sync.Mutex
	tops []*top
	left int   // entries that one look may still take
	part error // why the look has left something out
	new  []Appeared
}

// Shown reports whether a path inside is of a mount: what another one hides is not there.
type Shown func(m *sandbox.Mount, inside string) bool

// top is one writable mount.
type top struct {
	dir   *os.File
	mount sandbox.Mount
	node  node
}

// node is a directory as it was when it was read.
type node struct {
	name    string // for what is protected below it: ".git" also where git keeps those of submodules
	state   fileState
	settled bool // whatever has changed since has another state
	below   []*node
	guarded []*guarded
	inGit   bool // below .git/modules or .git/worktrees
	bare    bool // it has another name, and what git looks for in a repository
}

// isGit reports whether git takes a directory for a repository's own.
func (n *node) isGit() bool { return n.name == ".git" || n.inGit || n.bare }

// guarded is an entry with a protected name.
type guarded struct {
	name  string
	state fileState
	first bool // it was there at the start
	told  bool
	runs  bool
}

// Appeared is something protected that was not there when the sandbox was made.
type Appeared struct {
	Path string // inside
	// Runs: programs of the machine run what it says without asking anybody, as git does with hooks.
	Runs bool
	// Moved is the name that such a thing has been given in its directory, so that none of them finds it; Err why it has none.
	Moved string
	Err   error
}

// fileState tells a file, and a state of it, from others.
type fileState struct {
	device, inode uint64
	changed       time.Time // its status: programs cannot set this time
	kind          fs.FileMode
}

func (a fileState) sameFile(b fileState) bool { return a.device == b.device && a.inode == b.inode }

// NewSurvey looks for the first time. protected are the paths inside that nobody may write. open says that nothing keeps
// commands from writing what is there now.
func NewSurvey(ctx context.Context, mounts []sandbox.Mount, shown Shown, open bool) (s *Survey, protected []string, err error) {
	s = &Survey{shown: shown, open: open}
	for i := range mounts {
		m := &mounts[i]
		if !m.Writable || m.Pinned == nil || m.Kind == sandbox.MountHome { // nothing of the machine obeys what is in a home of a sandbox
			continue
		}
		dir, err := reopen(m.Pinned)
		if err != nil {
			if info, statErr := m.Pinned.Stat(); statErr == nil && !info.IsDir() {
				continue // a single file
			}
			s.Close()
			return nil, nil, sandbox.Errorf(sandbox.CodeFailed, "look for protected files in %s: %v", m.Source, err)
		}
		s.tops = append(s.tops, &top{dir: dir, mount: *m, node: node{name: path.Base(m.Source)}})
	}
	if err := s.walk(ctx, true); err != nil {
		s.Close()
		return nil, nil, err
	}
	for _, t := range s.tops {
		t.node.collect(t.mount.Target, func(p string, g *guarded) {
			// A symbolic link cannot be mounted over; what it leads to is judged by its own name.
			if g.state.kind&fs.ModeSymlink == 0 && s.shown(&t.mount, p) {
				protected = append(protected, p)
			}
		})
	}
	slices.Sort(protected)
	return s, slices.Compact(protected), nil
}

// collect calls found for everything protected below a directory.
func (n *node) collect(inside string, found func(string, *guarded)) {
	for _, g := range n.guarded {
		found(path.Join(inside, g.name), g)
	}
	for _, below := range n.below {
		below.collect(path.Join(inside, below.name), found)
	}
}

// Look finds what has come to be since the last look, and takes its name from what runs something. An error means that not everything was looked at.
func (s *Survey) Look(ctx context.Context) ([]Appeared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.new, s.part = nil, nil
	err := s.walk(ctx, false)
	return s.new, cmp.Or(err, s.part)
}

func (s *Survey) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tops {
		_ = t.dir.Close()
	}
	s.tops = nil
}

func (s *Survey) walk(ctx context.Context, first bool) error {
	s.left = maxWalked
	for _, t := range s.tops {
		dir, err := reopen(t.dir)
		if err != nil {
			return sandbox.Errorf(sandbox.CodeFailed, "look for protected files in %s: %v", t.mount.Source, err)
		}
		w := &walker{Survey: s, ctx: ctx, top: t, first: first}
		if err := w.visit(dir, &t.node, t.mount.Target, 0); err != nil {
			return err
		}
	}
	return nil
}

// walker is one look at one mount.
type walker struct {
	*Survey
	ctx   context.Context // it lives as long as the look
	top   *top
	first bool
}

// visit looks through a directory and closes it. What has not changed is not read again, and directories in it that have
// not changed, and hold no others, are not even opened.
func (w *walker) visit(dir *os.File, n *node, inside string, depth int) error {
	defer dir.Close()
	if err := w.ctx.Err(); err != nil {
		return err
	}
	now, err := stateOf(dir, "")
	if err != nil {
		return nil // it is going away
	}
	if !n.settled || now != n.state {
		if err := w.read(dir, n, now); err != nil {
			return err
		}
	}
	for _, g := range n.guarded {
		w.judge(dir, n, g, inside)
	}
	for _, below := range n.below {
		if w.left--; w.left < 0 || depth > maxDepth && w.first {
			return errTooLarge
		}
		if depth > maxDepth { // a deep tree is no way to keep the rest from being looked at
			w.part = errTooLarge
			continue
		}
		at, err := stateOf(dir, below.name)
		if err != nil || !at.kind.IsDir() || below.settled && at == below.state && below.quiet() {
			continue
		}
		child, err := openBelow(dir, below.name)
		if errors.Is(err, fs.ErrPermission) && !w.first {
			if child, err = openLocked(dir, below.name); errors.Is(err, fs.ErrPermission) && below.isGit() {
				w.part = sandbox.Errorf(sandbox.CodeFailed, "%s cannot be read", path.Join(inside, below.name))
			}
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || err != nil && isNoDirectory(err) {
			continue // of no use to the sandbox either
		}
		if err != nil {
			return sandbox.Errorf(sandbox.CodeFailed, "look for protected files: %v", err)
		}
		if err := w.visit(child, below, path.Join(inside, below.name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// isNoDirectory reports whether an error says that something else than a directory is there.
func isNoDirectory(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// quiet reports whether nothing below a directory can change without changing it.
func (n *node) quiet() bool {
	return len(n.below) == 0 && !slices.ContainsFunc(n.guarded, func(g *guarded) bool { return !g.first || g.name == ".git" })
}

// read reads a directory anew, and keeps what is known of its entries.
func (w *walker) read(dir *os.File, n *node, now fileState) error {
	below, known := map[string]*node{}, map[string]*guarded{}
	for _, b := range n.below {
		below[b.name] = b
	}
	for _, g := range n.guarded {
		known[g.name] = g
	}
	n.state, n.settled = now, time.Since(now.changed) > settled
	n.below, n.guarded = nil, nil
	guard := func(name string) {
		g := known[name]
		if g == nil {
			g = &guarded{name: name}
		}
		n.guarded = append(n.guarded, g)
	}
	var looks gitLooks
	for {
		entries, err := dir.ReadDir(1024)
		for _, e := range entries {
			if w.left--; w.left < 0 {
				n.settled = false
				return errTooLarge
			}
			name := e.Name()
			looks.see(e)
			switch {
			case n.guards(e):
				guard(name)
			case e.IsDir():
				b := below[name]
				if b == nil {
					b = &node{name: name}
				}
				b.inGit = n.inGit
				n.below = append(n.below, b)
			}
		}
		if err != nil { // io.EOF, or a directory that is going away
			break
		}
	}
	if n.bare = !n.inGit && n.name != ".git" && looks.repository(); n.bare {
		n.below = slices.DeleteFunc(n.below, func(b *node) bool { return slices.Contains(looks.guarded, b.name) })
		for _, name := range looks.guarded {
			if !slices.ContainsFunc(n.guarded, func(g *guarded) bool { return g.name == name }) {
				guard(name)
			}
		}
	}
	for _, b := range n.below {
		b.inGit = b.inGit || n.isGit() && (b.name == "modules" || b.name == "worktrees")
	}
	// What the git of a prompt reads comes first: many files beside it are no way to keep it from being looked at.
	slices.SortStableFunc(n.below, func(a, b *node) int { return cmp.Compare(gitFirst[b.name], gitFirst[a.name]) })
	return nil
}

var gitFirst = map[string]int{".git": 1, "modules": 1, "worktrees": 1}

// gitLooks is what of a directory's entries makes git take it for a repository, whatever its name is.
type gitLooks struct {
	head, objects, refs, common bool
	guarded                     []string // what git obeys in one
}

func (l *gitLooks) see(e fs.DirEntry) {
	switch name := e.Name(); name {
	case "HEAD":
		l.head = true
	case "objects":
		l.objects = true
	case "refs":
		l.refs = true
	case "commondir":
		l.common = true
		l.guarded = append(l.guarded, name)
	case "hooks", "config", "config.worktree":
		l.guarded = append(l.guarded, name)
	case "modules", "worktrees":
		if !e.IsDir() {
			l.guarded = append(l.guarded, name)
		}
	}
}

func (l *gitLooks) repository() bool { return l.head && (l.objects && l.refs || l.common) }

// guards reports whether an entry is protected. Git keeps the configuration and the hooks of submodules below its own
// directory, and what is no directory and named .git says where a repository lies. It makes no links in its own directory, by which the
// repositories of submodules and worktrees would be others than those that are looked at.
func (n *node) guards(e fs.DirEntry) bool {
	parent, name := n.name, e.Name()
	if n.inGit {
		parent = ".git"
	}
	return place.Guards(parent, name) || name == ".git" && !e.IsDir() ||
		parent == ".git" && (name == "modules" || name == "worktrees") && !e.IsDir()
}

// judge tells of an entry that was not there at the start, or is another one now: a directory above it may have been moved
// away. It is told again if it runs something only then. What runs something is quarantined.
func (w *walker) judge(dir *os.File, n *node, g *guarded, inside string) {
	at, err := stateOf(dir, g.name)
	leads := g.name == ".git" // what it leads to may become another without it
	switch {
	case err != nil: // it is going away
		return
	case w.first:
		g.first, g.state = true, at
		g.runs = leads && w.runs(n, dir, g.name, inside, at)
		return
	case g.first && (at == g.state || !w.open && at.sameFile(g.state)) && (!leads || g.runs || !w.runs(n, dir, g.name, inside, at)):
		return
	case !leads && g.told && at == g.state && time.Since(at.changed) > settled:
		return
	}
	g.first, g.state = false, at
	runs := w.runs(n, dir, g.name, inside, at)
	if p := path.Join(inside, g.name); (!g.told || runs) && w.shown(&w.top.mount, p) {
		found := Appeared{Path: p, Runs: runs}
		if runs {
			found.Moved, found.Err = quarantine(dir, g.name)
		}
		if !g.told || !g.runs || found.Moved != "" {
			w.new = append(w.new, found)
		}
		if found.Moved != "" { // what is there now is what was kept of it
			runs, n.settled = false, false
			g.state, _ = stateOf(dir, g.name)
		}
	}
	g.told, g.runs = true, runs
}
