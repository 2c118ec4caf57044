package undo

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Choice is what happens to a file that has changed since the call that is taken back. The zero value keeps it as it is.
type Choice int

// The choices.
const (
	KeepTheirs Choice = iota // what somebody has done since stays
	BringBack                // what was before the call replaces it
	SideBySide               // what was before the call is put beside it, under a name of its own
)

// Request is what to take back.
type Request struct {
	ID     string   // of the call
	With   []string // of others in the same workspace that are taken back with it, as if they were one
	Paths  []string // within the workspace, with what is below them; none: all that the call changed
	Choice Choice   // for what has changed since

	// Everything takes back all that has happened to the workspace since before the oldest of the calls, whoever did it.
	Everything bool
}

// Taken is what became of a request.
type Taken struct {
	Restored  []Change // from what it was to what it is now
	Conflicts []Change // changed since, and left: from what the call made of it to what it is now
	Aside     []string // where copies stand of what has changed since
	Lost      []Change // what it was is not kept, so it stays as it is
}

// ErrRunning says that nobody knows what a call changed.
var ErrRunning = errors.New("the call runs, or nobody knows how it ended: take back everything since it instead")

// Preview says what taking back would do, and changes nothing.
func (s *Store) Preview(ctx context.Context, r Request) (*Taken, error) {
	s.using.RLock()
	defer s.using.RUnlock()
	calls, err := s.asked(r)
	if err != nil {
		return nil, err
	}
	c := &calls[0]
	t := s.tree(string(c.Workspace))
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := s.keep(ctx, string(c.Workspace), t)
	if err != nil {
		return nil, err
	}
	p, err := s.plan(calls, r, now, t.top)
	if err != nil {
		return nil, err
	}
	return &p.taken, nil
}

// TakeBack takes a call back. It is a call itself, as, which needs an ID and a time, and can be taken back by that ID; it names no
// call if nothing had to be changed. Either all of a plan is done or, with an error, nothing; one who is killed leaves the rest
// to the next [Open].
func (s *Store) TakeBack(ctx context.Context, r Request, as Call) (*Taken, error) {
	s.using.RLock()
	defer s.using.RUnlock()
	calls, err := s.asked(r)
	if err != nil {
		return nil, err
	}
	c := &calls[0]
	as.Workspace, as.Undoes = c.Workspace, r.ID
	t := s.tree(string(c.Workspace))
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := s.keep(ctx, string(c.Workspace), t)
	if err != nil {
		return nil, err
	}
	p, err := s.plan(calls, r, now, t.top)
	if err != nil || len(p.steps) == 0 {
		return &p.taken, err
	}
	as.Before = now
	if err := s.add(&as); err != nil {
		return nil, err
	}
	if begun, err := s.carryOut(p, &as, t.top); err != nil {
		if !begun {
			err = errors.Join(err, s.end(as.ID, now))
		}
		return nil, err
	}
	after, err := s.keep(ctx, string(c.Workspace), t)
	if err != nil {
		return &p.taken, err
	}
	return &p.taken, s.end(as.ID, after)
}

// step brings one path to what it was. The steps of a plan are independent of each other but for their order, see [apply].
type step struct {
	Path   []byte `json:"path"`
	Want   *Entry `json:"want"` // nil: nothing
	Staged string `json:"staged,omitempty"`
}

// plan is what taking back comes to.
type plan struct {
	objects *objects
	before  Hash
	now     *folder // the workspace as it was just read
	choice  Choice
	mark    string // of files that are put aside
	steps   []step
	planned map[string]*Entry
	taken   Taken
}

func (s *Store) plan(calls []Call, r Request, now Hash, read *folder) (*plan, error) {
	oldest := &calls[0]
	p := &plan{objects: s.objects, before: oldest.Before, now: read, choice: r.Choice, mark: fmt.Sprintf(".before-%d", oldest.Number), planned: map[string]*Entry{}}
	if r.Everything {
		all := *oldest
		all.After = now
		calls = []Call{all}
	}
	changes, err := s.merge(calls)
	if err != nil {
		return p, err
	}
	for _, change := range changes {
		if !asked(change.Path, r.Paths) {
			continue
		}
		if err := p.add(change); err != nil {
			return p, err
		}
	}
	p.keepFilled()
	return p, nil
}

// keepFilled leaves the directories in which somebody has put something since.
func (p *plan) keepFilled() {
	for i := len(p.steps) - 1; i >= 0; i-- { // what is in a directory comes behind it
		at := string(p.steps[i].Path)
		current := p.now.at(at)
		if p.steps[i].Want.isDirectory() || current == nil || current.folder == nil {
			continue
		}
		stays := slices.ContainsFunc(current.folder.items, func(below item) bool {
			want, planned := p.planned[path.Join(at, below.name)]
			return !planned || want != nil
		})
		if stays {
			p.steps = slices.Delete(p.steps, i, i+1)
			delete(p.planned, at)
			p.taken.Restored = slices.DeleteFunc(p.taken.Restored, func(c Change) bool { return c.Path == at })
			p.taken.Conflicts = append(p.taken.Conflicts, Change{at, &current.Entry, &current.Entry})
		}
	}
}

// asked reports whether a path is one of those asked for, or below one.
func asked(at string, paths []string) bool {
	if len(paths) == 0 {
		return true
	}
	for _, p := range paths {
		p = path.Clean(p)
		if rest, ok := strings.CutPrefix(at, p); p == "." || ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// current is what a path is now; nil if nothing.
func (p *plan) current(at string) *Entry {
	if i := p.now.at(at); i != nil {
		return &i.Entry
	}
	return nil
}

// add plans what becomes of one change of the calls.
func (p *plan) add(m merged) error {
	c := m.Change
	current := p.current(c.Path)
	since := Change{c.Path, c.After, current}
	switch {
	case alike(current, c.Before):
		return nil
	case isApart(c.Before) || isApart(current):
		p.taken.Lost = append(p.taken.Lost, since)
		return nil
	case c.Before == nil && isGitObject(c.Path):
		return nil // something that was done since may need it, and nobody sees it
	case m.touched || !alike(current, c.After):
		return p.conflict(c, since)
	}
	return p.restore(c.Path, c.Before, current, since)
}

func isApart(e *Entry) bool { return e != nil && e.Kind == Apart }

// isGitObject reports whether a path is in the part of a repository that git only adds to.
func isGitObject(at string) bool {
	return strings.HasPrefix(at, ".git/objects/") || strings.Contains(at, "/.git/objects/")
}

// conflict plans what becomes of what has changed since.
func (p *plan) conflict(c, since Change) error {
	switch p.choice {
	case BringBack:
		return p.restore(c.Path, c.Before, since.After, since)
	case SideBySide:
		if c.Before != nil && c.Before.Kind != Directory {
			at := p.freeName(c.Path + p.mark)
			p.taken.Aside = append(p.taken.Aside, at)
			return p.restore(at, c.Before, nil, since)
		}
	}
	p.taken.Conflicts = append(p.taken.Conflicts, since)
	return nil
}

// freeName is a name like at that nothing has.
func (p *plan) freeName(at string) string {
	name := at
	for n := 2; p.current(name) != nil || p.planned[name] != nil; n++ {
		name = fmt.Sprintf("%s-%d", at, n)
	}
	return name
}

// restore plans one step, and the directories that it needs.
func (p *plan) restore(at string, want, current *Entry, since Change) error {
	if want != nil {
		if ok, err := p.directoriesFor(at); err != nil || !ok {
			p.taken.Conflicts = append(p.taken.Conflicts, since)
			return err
		}
	}
	p.step(at, want)
	p.taken.Restored = append(p.taken.Restored, Change{at, current, want})
	return nil
}

func (p *plan) step(at string, want *Entry) {
	p.steps = append(p.steps, step{Path: []byte(at), Want: want})
	p.planned[at] = want
}

// directoriesFor plans the directories in which a path lies, as they were. It reports false if something else stands there now
// that is to stay.
func (p *plan) directoriesFor(at string) (bool, error) {
	dir := path.Dir(at)
	if dir == "." {
		return true, nil
	}
	if ok, err := p.directoriesFor(dir); err != nil || !ok {
		return ok, err
	}
	if want, planned := p.planned[dir]; planned {
		return want.isDirectory(), nil
	}
	if current := p.current(dir); current != nil {
		return current.isDirectory(), nil
	}
	was, err := p.objects.lookup(p.before, dir)
	if err != nil || !was.isDirectory() {
		return false, err
	}
	p.step(dir, was)
	return true, nil
}
