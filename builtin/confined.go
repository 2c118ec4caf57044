package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox"
)

// Sandboxes says which calls are confined.
type Sandboxes interface {
	// Confinement is the sandbox of a call; nil if the call is not confined. It starts nothing.
	Confinement(ctx context.Context, call *toolward.Call) (*Confinement, error)
}

// Confinement is where a confined call does its work.
type Confinement struct {
	Name string // of the sandbox, for the record
	// Identity names the sandbox and what of this machine is where in it: an approval is for that, not for a path inside.
	Identity string
	Workdir  string // inside
	Home     string // inside; "" is the workdir
	Mounts   []sandbox.Mount
	Env      settings.EnvRules
	Why      string // by what setting the call works there, for people
	// Environ is what every command inside gets, as far as it is known: what "$HOME" means there.
	Environ []string
	Private bool    // in the place of the workspace it has a directory of its own
	Offline bool    // it has no network
	CPUs    float64 // processors that it may use; 0 is no limit
	// FoldCase: names that differ only in case are the same file. Otherwise .GIT/hooks would be nobody's.
	FoldCase bool
	// Acquire starts the sandbox, if it does not run, and keeps it until release is called. command is the text that will run in
	// it, which people read who are asked about its connections; "" if none will.
	Acquire func(_ context.Context, command string) (handle sandbox.Handle, release func(), err error)
	// Unreached are the hosts that something inside asked for since Acquire and did not get, each with why; nil: nobody can tell.
	Unreached func() []string
}

// bound is what an approval of a call is bound to besides its targets: paths inside mean other files in another sandbox.
func (l located) bound() []string {
	if l.box == nil {
		return nil
	}
	return []string{"sandbox " + l.box.Identity}
}

// sandbox is the name of the sandbox that a call works in; "" if it is not confined.
func (l located) sandbox() string {
	if l.box == nil {
		return ""
	}
	return l.box.Name
}

// located is where the paths of a confined call lead.
func (c *Confinement) located(workDir string) (located, error) {
	table := settings.NewMountTable(c.Workdir, c.Mounts)
	layout := place.Layout{
		Workspace: c.Workdir, Home: cmp.Or(c.Home, c.Workdir),
		// Nothing of Toolward's own is in a sandbox but its program inside.
		StateDir: insideState, ConfigFile: insideState + "/toolward.jsonc", FoldCase: c.FoldCase,
	}
	for _, m := range c.Mounts {
		switch {
		case m.Target == c.Workdir:
		case m.Writable:
			layout.WriteRoots = append(layout.WriteRoots, m.Target)
		default:
			layout.ReadRoots = append(layout.ReadRoots, m.Target)
		}
	}
	places, err := place.New(layout)
	if err != nil {
		return located{}, fmt.Errorf("the sandbox's places: %w", err)
	}
	at := located{Classifier: places.Through(table), workDir: c.Workdir, box: c, table: table}
	if workDir != "" {
		// A client names directories of its own machine. One that is not there inside is not where it works.
		if l, err := table.Map(workDir, "", false, settings.Host); err == nil {
			at.workDir = l.Inside
		}
	}
	return at, nil
}

const insideState = "/.toolward"

// inside turns a path of a call into one inside: models name directories of the host that they have seen.
func (l located) inside(workDir, asked string) (string, error) {
	if l.hasName(workDir, asked) {
		asked = "./" + asked
	}
	at, err := l.table.Map(asked, workDir, false, settings.Host)
	switch sandbox.CodeOf(err) {
	case "":
		return at.Inside, nil
	case sandbox.CodeEscape:
		return "", place.ErrNotMounted
	}
	return "", place.ErrBadPath
}

// hasName reports whether a path begins with a name that begins with @, as in @types/node: otherwise the sign is one that
// models put in front of paths.
func (l located) hasName(workDir, asked string) bool {
	name, _, _ := strings.Cut(asked, "/")
	if !strings.HasPrefix(name, "@") {
		return false
	}
	real, err := l.Classifier.ResolveEntry(workDir, "./"+name)
	return err == nil && real.Kind != place.KindMissing
}

// confinedDisk does file operations inside a sandbox. That a path still leads where it was judged to is checked there,
// when the file is open: processes of the sandbox may change links at any time.
type confinedDisk struct {
	ctx context.Context // it lives as long as the call
	box sandbox.Handle
}

func (d confinedDisk) open(at place.Resolved) (fs.File, error) {
	if err := notRegular(at); err != nil {
		return nil, err
	}
	return d.file(at.Real)
}

// notRegular says what keeps a file from being read; nil if nothing does.
func notRegular(at place.Resolved) error {
	switch at.Kind {
	case place.KindRegular:
		return nil
	case place.KindMissing:
		return os.ErrNotExist
	}
	return place.ErrNotFile
}

func (d confinedDisk) file(real string) (fs.File, error) {
	f := &confinedFile{disk: d, real: real}
	if err := f.fill(); err != nil {
		return nil, err
	}
	return f, nil
}

func (d confinedDisk) openDir(at place.Resolved) (directory, error) { return d.directory(at.Real) }

func (d confinedDisk) directory(real string) (directory, error) {
	info, err := d.box.Lstat(d.ctx, real)
	switch {
	case err != nil:
		return nil, confinedError(err)
	case info.Type != sandbox.TypeDirectory || info.Path != real:
		return nil, place.ErrChanged
	}
	return &confinedDir{disk: d, real: real}, nil
}

func (d confinedDisk) readFile(at place.Resolved, limit int64) (place.Content, error) {
	if err := notRegular(at); err != nil {
		return place.Content{}, err
	}
	data, info, err := d.box.ReadFile(d.ctx, at.Real, 0, limit+1)
	switch {
	case err != nil:
		return place.Content{}, confinedError(err)
	case info.Path != at.Real:
		return place.Content{}, place.ErrChanged
	case int64(len(data)) > limit:
		return place.Content{}, fmt.Errorf("%s has more than %d bytes: %w", at.Real, limit, place.ErrTooLarge)
	}
	return place.Content{Data: data, Stamp: place.Stamp(info.Identity), Mode: info.Mode.Perm()}, nil
}

func (d confinedDisk) writeFile(at place.Resolved, data []byte, options place.WriteOptions) error {
	how := sandbox.WriteOptions{Parents: options.Parents, Missing: at.Kind == place.KindMissing, Exact: true, Mode: options.Mode}
	if options.Unchanged != nil {
		identity := sandbox.Identity(*options.Unchanged)
		how.Unchanged = &identity
	}
	_, err := d.box.WriteFile(d.ctx, at.Real, data, how)
	return confinedError(err)
}

func (d confinedDisk) remove(at place.Resolved, unchanged *place.Stamp) error {
	how := sandbox.RemoveOptions{Exact: true}
	if unchanged != nil {
		identity := sandbox.Identity(*unchanged)
		how.Unchanged = &identity
	}
	return confinedError(d.box.Remove(d.ctx, at.Real, how))
}

func (d confinedDisk) exists(real string) bool {
	_, err := d.box.Lstat(d.ctx, real)
	return err == nil
}

// unusable says why a sandbox cannot be used. It has no cause: that the container engine's socket does not exist would be
// told as if the file did not, and whoever asked would write another one.
type unusable string

func (u unusable) Error() string { return "the sandbox cannot be used: " + string(u) }

// confinedError is an error of a sandbox in the words of package place, so that tools say the same in both worlds.
func confinedError(err error) error {
	var known error
	switch sandbox.CodeOf(err) {
	case "":
		return nil
	case sandbox.CodeNotFound:
		known = os.ErrNotExist
	case sandbox.CodeDenied:
		known = os.ErrPermission
	case sandbox.CodeReadOnly:
		known = syscall.EROFS
	case sandbox.CodeFull:
		known = syscall.ENOSPC
	case sandbox.CodeHardlink:
		known = place.ErrLinked
	case sandbox.CodeNotRegular, sandbox.CodeDirectory:
		known = place.ErrNotFile
	case sandbox.CodeChanged, sandbox.CodeExists:
		known = place.ErrChanged
	case sandbox.CodeTooLarge:
		known = place.ErrTooLarge
	case sandbox.CodeEscape:
		known = place.ErrNotMounted
	case sandbox.CodeUnavailable:
		return unusable(err.Error())
	default:
		return err
	}
	return fmt.Errorf("%w: %w", known, err)
}

// readAhead is how much of a file is fetched at once.
const readAhead = 256 << 10

// confinedFile is an open file of a sandbox: its pieces are read as they are needed, all of the same file.
type confinedFile struct {
	disk confinedDisk
	real string
	info sandbox.FileInfo
	at   int64 // of the byte after rest
	rest []byte
	seen bool
}

func (f *confinedFile) fill() error {
	data, info, err := f.disk.box.ReadFile(f.disk.ctx, f.real, f.at, readAhead)
	switch {
	case err != nil:
		return confinedError(err)
	case info.Path != f.real, f.seen && (info.Identity.Device != f.info.Identity.Device || info.Identity.Inode != f.info.Identity.Inode):
		return place.ErrChanged
	}
	f.info, f.rest, f.seen = info, data, true
	f.at += int64(len(data))
	return nil
}

func (f *confinedFile) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		if f.at < readAhead && f.at > 0 && f.at >= f.info.Size {
			return 0, io.EOF // the first piece was all
		}
		if err := f.fill(); err != nil {
			return 0, err
		}
		if len(f.rest) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *confinedFile) Stat() (fs.FileInfo, error) { return confinedInfo{f.info}, nil }

func (f *confinedFile) Close() error { return nil }

// confinedInfo is a file's description as the standard library knows it.
type confinedInfo struct{ sandbox.FileInfo }

func (i confinedInfo) Name() string       { return path.Base(i.Path) }
func (i confinedInfo) Size() int64        { return i.FileInfo.Size }
func (i confinedInfo) Mode() fs.FileMode  { return i.FileInfo.Mode | typeBits(i.Type) }
func (i confinedInfo) ModTime() time.Time { return i.Modified }
func (i confinedInfo) IsDir() bool        { return i.Type == sandbox.TypeDirectory }
func (i confinedInfo) Sys() any           { return nil }

func typeBits(t sandbox.FileType) fs.FileMode {
	switch t {
	case sandbox.TypeRegular:
		return 0
	case sandbox.TypeDirectory:
		return fs.ModeDir
	case sandbox.TypeSymlink:
		return fs.ModeSymlink
	}
	return fs.ModeIrregular
}

// confinedDir is a directory of a sandbox.
type confinedDir struct {
	disk    confinedDisk
	real    string
	entries []fs.DirEntry
	listed  bool
	more    bool // than were listed
}

// mostListed is how many entries of one directory are looked at.
const mostListed = 100_000

// errMoreEntries ends a listing that is not whole, so that whoever asked says so.
var errMoreEntries = errors.New("the directory has more entries than are looked at")

func (d *confinedDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.listed {
		var list []sandbox.Entry
		var err error
		list, d.more, err = d.disk.box.List(d.disk.ctx, d.real, sandbox.ListOptions{Limit: mostListed, Exact: true})
		if err != nil {
			return nil, confinedError(err)
		}
		d.listed = true
		for _, e := range list {
			d.entries = append(d.entries, confinedEntry{e})
		}
	}
	switch {
	case len(d.entries) > 0:
	case d.more:
		return nil, errMoreEntries
	default:
		return nil, io.EOF
	}
	batch := d.entries[:min(max(n, 1), len(d.entries))]
	d.entries = d.entries[len(batch):]
	return batch, nil
}

func (d *confinedDir) child(name string) (fs.File, error) {
	return d.disk.file(path.Join(d.real, name))
}

func (d *confinedDir) childDir(name string) (directory, error) {
	return d.disk.directory(path.Join(d.real, name))
}

func (d *confinedDir) Close() error { return nil }

// confinedEntry is an entry of a directory of a sandbox.
type confinedEntry struct{ sandbox.Entry }

func (e confinedEntry) Name() string      { return e.Entry.Name }
func (e confinedEntry) IsDir() bool       { return e.Entry.Type == sandbox.TypeDirectory }
func (e confinedEntry) Type() fs.FileMode { return typeBits(e.Entry.Type) }
func (e confinedEntry) Info() (fs.FileInfo, error) {
	return nil, errors.ErrUnsupported
}
