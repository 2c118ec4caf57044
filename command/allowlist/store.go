package allowlist

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolward/toolward/command/stamp"
	"github.com/toolward/toolward/redact"
)

// Options of [Open]. All are optional.
type Options struct {
	Ledger Ledger              // of what people accepted; without one no entry counts
	Redact func(string) string // hides secrets in commands; default: those that look like one
	Log    *slog.Logger
}

// Store reads and writes exec-approvals.json. It shares the file with other processes and other tools, and is safe
// for concurrent use.
type Store struct {
	dir  string
	opts Options

	mu      sync.Mutex // guards what follows
	present *Snapshot
	stamp   stamp.Stamp
	uses    map[useKey]Use
	timer   *time.Timer // set while uses wait
	flushed time.Time
	closed  bool

	writing sync.Mutex // one change at a time in this process; the lock file keeps others out
}

// Open keeps the file in dir, which need not exist yet.
func Open(dir string, opts Options) *Store {
	if opts.Redact == nil {
		opts.Redact = redact.New().String
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Store{dir: dir, opts: opts, uses: map[useKey]Use{}}
}

// Path is where the file stands.
func (a *Store) Path() string { return filepath.Join(a.dir, FileName) }

// Current is the file as it is now. Without a change on disk that costs one system call.
func (a *Store) Current() *Snapshot {
	now := stamp.Of(a.Path())
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.present == nil || now != a.stamp || !now.Settled {
		a.present, a.stamp = a.read(), now
	}
	return a.present
}

// Ensure makes the file, with a socket path and a token, unless it is there. It leaves what it cannot read alone.
func (a *Store) Ensure(ctx context.Context) (*Snapshot, error) {
	s := a.Current()
	if s.Corrupt != nil || s.Exists && s.File.Socket.Path != "" && s.File.Socket.Token != "" {
		return s, nil
	}
	return a.Update(ctx, func(f *File) (bool, error) {
		f.Socket.Path = cmp.Or(f.Socket.Path, filepath.Join(a.dir, "exec-approvals.sock"))
		f.Socket.Token = cmp.Or(f.Socket.Token, newToken())
		return true, nil
	})
}

// Update changes the file under its lock, in what needs nobody's word: what a change would loosen does not count. change gets a
// copy and reports whether it changed anything. A corrupt file is an error and stays as it is.
func (a *Store) Update(ctx context.Context, change func(*File) (bool, error)) (*Snapshot, error) {
	return a.again(ctx, func(s *Snapshot) (*File, *File, error) {
		file := s.File.clone()
		changed, err := change(file)
		if err != nil || !changed {
			return nil, nil, err
		}
		return file, nil, nil
	})
}

// Permit changes the file as a person wants it, and what is accepted with it: nothing else of what stands in the file. record, if
// not nil, is told what changes before it does; its error stops the change. It reports whether there was anything to change.
func (a *Store) Permit(ctx context.Context, change func(*File) bool, record func(changes []string) error) (changed bool, err error) {
	_, err = a.again(ctx, func(s *Snapshot) (*File, *File, error) {
		file, accepted := s.File.clone(), s.accepted.clone()
		inFile, inAccepted := change(file), change(accepted)
		if changed = inFile || inAccepted; !changed {
			return nil, nil, nil
		}
		if err := a.mayAccept(s, accepted); err != nil {
			return nil, nil, err
		}
		if record != nil {
			changes := Changes(s.File, file)
			if !inFile {
				changes = Changes(s.accepted, accepted)
			}
			if err := record(changes); err != nil {
				return nil, nil, err
			}
		}
		if !inFile {
			return nil, accepted, nil
		}
		return file, accepted, nil
	})
	return changed && err == nil, err
}

// mayAccept returns an error if content allows more than was accepted, and nothing can be accepted now. It is asked before
// anything is written or recorded.
func (a *Store) mayAccept(s *Snapshot, content *File) error {
	if !content.loosens(s.accepted) {
		return nil
	}
	return a.May()
}

// again makes a change under the lock, anew when somebody who does not know the lock wrote in between: neither change is lost.
func (a *Store) again(ctx context.Context, change func(*Snapshot) (file, accepted *File, err error)) (*Snapshot, error) {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		s, err := a.locked(ctx, func(s *Snapshot) (*File, *File, error) {
			if s.Corrupt != nil {
				return nil, nil, &CorruptError{s.Path, s.Corrupt}
			}
			return change(s)
		})
		if !errors.Is(err, ErrBaseChanged) || attempt == attempts {
			return s, err
		}
	}
}

// Set replaces the content by one that a person has made from the state base, which is not asked for if there is no
// file. A corrupt file can be replaced this way. Socket fields that the content lacks stay as they are. record, if not
// nil, is told what changes before it does; its error stops the change.
func (a *Store) Set(ctx context.Context, content []byte, base string, record func(changes []string) error) (*Snapshot, error) {
	file, err := ParseStrict(content)
	if err != nil {
		return nil, &InvalidContent{err}
	}
	return a.locked(ctx, func(s *Snapshot) (*File, *File, error) {
		if err := CheckBase(s.Exists, s.Hash, base); err != nil {
			return nil, nil, err
		}
		current := s.File.Socket
		file.Socket.Path = cmp.Or(file.Socket.Path, current.Path, filepath.Join(a.dir, "exec-approvals.sock"))
		if file.Socket.Token != "" && len(file.Socket.Token) < len(current.Token) {
			return nil, nil, &InvalidContent{errors.New("socket.token: is shorter than the present one; leave it out to keep that")}
		}
		file.Socket.Token = cmp.Or(file.Socket.Token, current.Token)
		if file.Socket.Token == "" {
			file.Socket.Token = newToken()
		}
		if err := a.mayAccept(s, file); err != nil {
			return nil, nil, err
		}
		if record != nil {
			if err := record(Changes(s.File, file)); err != nil {
				return nil, nil, err
			}
		}
		return file, file, nil
	})
}

// locked replaces the file by what change makes of it, if that is not nil, and then what is accepted, if that is not nil, while no
// other process writes the file.
func (a *Store) locked(ctx context.Context, change func(*Snapshot) (file, accepted *File, err error)) (*Snapshot, error) {
	a.writing.Lock()
	defer a.writing.Unlock()
	d, err := openStateDir(a.dir, true)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := d.lock(ctx); err != nil {
		return nil, err
	}
	s := a.snapshot(d.read())
	defer a.forget()
	file, accepted, err := change(s)
	if err == nil && file != nil {
		err = a.write(d, s, file)
	}
	if err == nil && accepted != nil && accepted.loosens(s.accepted) {
		// After the file: whoever reads in between finds entries that do not count yet. What became less is seen by reading.
		err = a.accept(ctx, accepted)
	}
	if err != nil || file == nil {
		return s, err
	}
	return a.snapshot(d.read()), nil
}

func (a *Store) write(d *stateDir, s *Snapshot, file *File) error {
	content, err := file.Encode()
	if err != nil {
		return err
	}
	// What cannot be read back would close the gate for everybody.
	if _, _, err := Parse(content); err != nil {
		return &InvalidContent{err}
	}
	return d.replace(content, func(now []byte) bool { return contentHash(now) == s.Hash })
}

// forget has the file read again.
func (a *Store) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.present, a.stamp = nil, stamp.Stamp{}
}

func (a *Store) read() *Snapshot {
	d, err := openStateDir(a.dir, false)
	if err != nil {
		return a.snapshot(nil, err)
	}
	defer d.close()
	return a.snapshot(d.read())
}

// snapshot is what the bytes of the file, or the reason why they cannot be read, mean.
func (a *Store) snapshot(content []byte, err error) *Snapshot {
	s := &Snapshot{Path: a.Path(), Exists: err == nil, Hash: contentHash(content), File: &File{Agents: map[string]*AgentFile{}}, accepted: a.acceptedFile()}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.Exists, s.Corrupt = true, err
	default:
		file, problems, err := Parse(content)
		if err != nil {
			s.Corrupt = err
		} else {
			s.File, s.Problems = file, problems
			s.accepted = a.tighten(file, s.accepted)
		}
	}
	return s
}

// Use is one use of an entry of the allowlist.
type Use struct {
	Agent        string // under whose name the entry stands, as in [Listed]
	Pattern      string
	Argv         []string // of the entry
	Command      string   // what ran
	ResolvedPath string
	At           time.Time
}

type useKey struct{ agent, entry string }
