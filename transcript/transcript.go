package transcript

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Call is one tool call of the past.
type Call struct {
	Client    string // by the name that `toolward install` would know it by
	Session   string // its id of the conversation
	Agent     string // of the sub-agent that made it; "" for the agent itself
	Project   string // directory in which the conversation began; "" if the transcript does not say
	WorkDir   string // directory in which the call began; "" likewise
	Time      time.Time
	ID        string
	Tool      string          // the client's own name of the tool
	Arguments json.RawMessage // one JSON value, as the client's hook would be given it
}

// Root is a directory, or one file, in which transcripts are looked for.
type Root struct {
	Client string // whose they are; "" finds out, by name and beginning of each file
	Path   string
}

// Reader reads transcripts.
type Reader struct {
	Client string    // only of this client; "" for all
	Since  time.Time // only calls from then on
	Visit  func(*Call) error
}

// Seen is what was read.
type Seen struct {
	Files    int   `json:"files"`
	Bytes    int64 `json:"bytes"`
	Repeated int   `json:"repeated,omitempty"` // calls that stand in several transcripts: a continued conversation takes its past along
	Odd      []Odd `json:"odd,omitempty"`      // what could not be read, the most frequent first
}

// Odd is a kind of thing that could not be read.
type Odd struct {
	What  string `json:"what"`
	Count int    `json:"count"`
	First string `json:"first"` // where it was seen first: file, and line if it has any
}

// Clients lists the clients whose transcripts are known, by name.
func Clients() (names []string) {
	for i := range clients {
		names = append(names, clients[i].name)
	}
	return names
}

// Roots are the directories in which clients keep their transcripts, of those that are there. home is the person's home.
func Roots(home string, getenv func(string) string) (roots []Root) {
	for i := range clients {
		for _, dir := range clients[i].roots(place{home, getenv}) {
			if _, err := os.Stat(dir); err == nil {
				roots = append(roots, Root{clients[i].name, dir})
			}
		}
	}
	return roots
}

// maxKnown bounds the calls that are remembered so that a repeated one counts once. Beyond it repeated ones count again.
const maxKnown = 1 << 20

// reading is one run of a reader.
type reading struct {
	*Reader
	ctx   context.Context
	seen  Seen
	odd   map[string]*Odd
	known map[uint64]struct{}
	seed  maphash.Seed
}

// Read visits the calls of all transcripts below the roots. Only an error of Visit and the end of ctx end it early.
func (r *Reader) Read(ctx context.Context, roots []Root) (Seen, error) {
	run := &reading{Reader: r, ctx: ctx, odd: map[string]*Odd{}, known: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
	for _, root := range roots {
		if r.Client != "" && root.Client != "" && root.Client != r.Client {
			continue
		}
		if err := run.root(root); err != nil {
			return run.seen, err
		}
	}
	for _, o := range run.odd {
		run.seen.Odd = append(run.seen.Odd, *o)
	}
	slices.SortFunc(run.seen.Odd, func(a, b Odd) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What)) })
	return run.seen, nil
}

// root reads what lies below a root. It is opened once, and everything else through it: a link in it, also one that is put
// there meanwhile, leads nowhere else.
func (r *reading) root(of Root) error {
	dir, only := of.Path, "."
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		dir, only = filepath.Dir(of.Path), filepath.Base(of.Path)
	}
	if err != nil {
		r.note(oddUnreadable, of.Path)
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		r.note(oddUnreadable, of.Path)
		return nil
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), only, func(path string, entry fs.DirEntry, err error) error {
		name := filepath.Join(dir, path)
		switch {
		case r.ctx.Err() != nil:
			return r.ctx.Err()
		case err != nil:
			r.note(oddUnreadable, name)
			return nil
		case entry.IsDir() && !enters(of.Client, path):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			r.note(oddLink, name) // it may lead out of what the person meant
			return nil
		}
		return r.file(of.Client, root, path, name, entry)
	})
}

// file reads a file, if it is a transcript.
func (r *reading) file(client string, root *os.Root, path, name string, entry fs.DirEntry) error {
	row := r.whose(client, path)
	switch {
	case row == nil && client == "" && candidate(path) && entry.Type().IsRegular():
		// Somebody pointed at a directory of their own: how the file begins tells.
	case row == nil:
		return nil
	case !entry.Type().IsRegular():
		r.note(oddSpecial, name)
		return nil
	}
	f, err := r.open(root, path, name)
	if err != nil {
		r.note(oddUnreadable, name)
		return nil
	}
	defer f.Close()
	if row == nil {
		if row = r.recognized(f.head()); row == nil {
			return nil
		}
	}
	if f.changed.Before(r.Since) {
		return nil // nothing is written into the past
	}
	f.client = row.name
	r.seen.Files++
	r.seen.Bytes += f.size
	return f.outcome(row.read(f))
}

// outcome tells what ends the reading from what ends a file.
func (f *file) outcome(err error) error {
	var visited visitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &visited):
		return visited.error
	case f.ctx.Err() != nil:
		return f.ctx.Err()
	case errors.Is(err, errFormat):
		f.note(oddFormat, f.name)
		return nil
	}
	f.note(oddBroken, f.name)
	return nil
}

// visitError is an error of the visitor.
type visitError struct{ error }

// visit hands a call on, once.
func (f *file) visit(c *Call) error {
	if c.Time.IsZero() {
		c.Time = f.changed
	}
	if c.Time.Before(f.Since) {
		return nil
	}
	c.Client = f.client
	if c.Tool == "" || !json.Valid(c.Arguments) {
		f.odd(oddCall)
		return nil
	}
	if c.ID != "" && f.repeats(c) {
		f.seen.Repeated++
		return nil
	}
	if err := f.Visit(c); err != nil {
		return visitError{err}
	}
	return nil
}

// repeats reports whether the same call was seen before, in this transcript or another.
func (f *file) repeats(c *Call) bool {
	var h maphash.Hash
	h.SetSeed(f.seed)
	for _, part := range []string{c.Client, c.ID, c.Tool, string(c.Arguments)} {
		_, _ = h.WriteString(part)
		_ = h.WriteByte(0)
	}
	key := h.Sum64()
	if _, known := f.known[key]; known {
		return true
	}
	if len(f.known) < maxKnown {
		f.known[key] = struct{}{}
	}
	return false
}

// What could not be read.
const (
	oddUnreadable = "files or directories that could not be opened"
	oddLink       = "links, which are not followed"
	oddSpecial    = "pipes, devices and sockets, which are not opened"
	oddBroken     = "files that could not be read to their end"
	oddLine       = "lines that are not whole JSON"
	oddLongLine   = "lines longer than 8 MB, which are not read"
	oddLargeFile  = "files of one JSON value larger than 64 MB, which are not read"
	oddCall       = "calls without a name, or whose arguments are not JSON"
	oddFormat     = "files of a format that is not known"
)

func (r *reading) note(what, where string) {
	if o := r.odd[what]; o != nil {
		o.Count++
		return
	}
	r.odd[what] = &Odd{what, 1, where}
}
