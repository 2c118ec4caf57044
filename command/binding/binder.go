package binding

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/command/stamp"
)

// BoundBytes is how long a file may be whose content is bound by its hash.
const BoundBytes = 8 << 20

// Binder makes bindings. The zero value is ready; it remembers the hashes of programs that have not changed, and is safe
// for concurrent use.
type Binder struct {
	mu    sync.Mutex
	known map[stamp.Stamp]string
}

// knownMost is how many hashes are remembered.
const knownMost = 4096

// Bindable is a command that people are asked about, or that is about to start.
type Bindable struct {
	Host, Node, Agent, Session string
	Text                       string // if a shell runs the command as it was written
	Commands                   []BindableCommand
	Dir                        string            // absolute
	Env                        map[string]string // what the call sets
}

// BindableCommand is one program and its arguments, expanded. Path is where the program was found; "" if it was not.
type BindableCommand struct {
	Argv      []string
	Path      string
	Dir       string     // where it starts, if that is not the directory of the whole
	OtherDirs []string   // where else it may start
	Inputs    []string   // files that are its input, as paths
	Fed       [][]string // commands whose output is its input
}

// Bind looks at everything that the command starts from, now. It fails where something cannot be bound: a directory
// behind a link that this process could exchange, a file that changes while it is read.
func (b *Binder) Bind(c Bindable) (*Binding, error) {
	dir, identity, err := boundDir(c.Dir)
	if err != nil {
		return nil, err
	}
	bound := &Binding{
		Version: bindingVersion, Host: c.Host, Node: c.Node, Agent: c.Agent, Session: c.Session,
		Text: c.Text, Dir: dir, DirIdentity: identity,
	}
	bound.EnvHash, bound.EnvNames = EnvironmentHash(c.Env)
	for i := range c.Commands {
		command := c.Commands[i]
		if command.Dir == "" {
			command.Dir = dir
		}
		one, err := b.command(bound, &command)
		if err != nil {
			return nil, err
		}
		bound.Commands = append(bound.Commands, one)
	}
	if c.Text != "" && len(c.Commands) == 0 {
		files, left := namedFiles(c.Text, dir)
		bound.leave(left)
		bound.Files, err = b.files(files)
	}
	return bound, err
}

func (b *Binder) command(whole *Binding, c *BindableCommand) (BoundCommand, error) {
	bound, real := BoundCommand{Argv: c.Argv}, ""
	if c.Path != "" {
		var identity string
		var err error
		if real, identity, err = b.identify(c.Path); err != nil {
			return bound, err
		}
		bound.Executable = &BoundExecutable{c.Path, real, identity}
	}
	files, left := loadedFiles(c, real)
	whole.leave(left)
	var err error
	bound.Files, err = b.files(files)
	return bound, err
}

// mostHashed is how much of the files of one command is read. What lies beyond is bound as long files are.
const mostHashed = 8 * BoundBytes

func (b *Binder) files(operands []operand) (list []BoundFile, err error) {
	room := int64(mostHashed)
	for _, o := range operands {
		var real, identity string
		if room -= min(o.size, BoundBytes); room >= 0 {
			real, identity, err = b.identify(o.path)
		} else if real, err = filepath.EvalSymlinks(o.path); err == nil {
			identity, err = byLook(real)
		}
		if err != nil {
			return nil, err
		}
		file := BoundFile{ArgvIndex: o.index, Path: real}
		if content, ok := strings.CutPrefix(identity, byContent); ok {
			file.SHA256, file.Rights, _ = strings.Cut(content, ":")
		} else {
			file.Identity = identity
		}
		list = append(list, file)
	}
	return list, nil
}

// Verify reports whether an open file is the program that was bound. Whoever starts the program from this descriptor
// starts what was approved, whatever happens to the path meanwhile.
func (e *BoundExecutable) Verify(file *os.File) error {
	identity, err := (&Binder{}).ofFile(int(file.Fd()))
	if err != nil {
		return err
	}
	if identity != e.Identity {
		return &Drift{CodeExecutableDrift, "program " + e.Path}
	}
	return nil
}

// VerifyDir reports whether an open directory is the working directory that was bound.
func (b *Binding) VerifyDir(dir *os.File) error {
	identity, err := dirIdentity(int(dir.Fd()))
	if err != nil {
		return err
	}
	if identity != b.DirIdentity {
		return &Drift{CodeRequestMismatch, "working directory"}
	}
	return nil
}

// The ways to identify a file.
const (
	byContent = "sha256:"
	byStat    = "stat:"
)

// identify gives the real path of a regular file and what stands for its content.
func (b *Binder) identify(path string) (real, identity string, err error) {
	if real, err = filepath.EvalSymlinks(path); err != nil {
		return "", "", err
	}
	flags := unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open(real, unix.O_RDONLY|flags, 0)
	if errors.Is(err, unix.EACCES) {
		// A program that may be run but not read.
		identity, err = byLook(real)
		return real, identity, err
	}
	if err != nil {
		return "", "", &os.PathError{Op: "open", Path: real, Err: err}
	}
	defer unix.Close(fd)
	if identity, err = b.ofFile(fd); err != nil {
		return "", "", fmt.Errorf("%s: %w", real, err)
	}
	return real, identity, nil
}

// ofFile is what stands for the content of an open file. Hashes are remembered only by stamps that have settled: two
// changes within one tick of the file system's clock would have the same.
func (b *Binder) ofFile(fd int) (string, error) {
	before, err := settledStamp(fd)
	if err != nil {
		return "", err
	}
	if before.Size > BoundBytes {
		return identityOf(before), nil
	}
	if identity, ok := b.recall(before); ok {
		return identity, nil
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.NewSectionReader(descriptor(fd), 0, BoundBytes+1))
	if err != nil {
		return "", err
	}
	after, err := fileStamp(fd)
	if err != nil {
		return "", err
	}
	after.Settled = before.Settled // time went on
	if before != after || n != before.Size {
		return "", errors.New("the file changes while it is read")
	}
	identity := byContent + hex.EncodeToString(hash.Sum(nil)) + ":" + rights(before)
	b.remember(before, identity)
	return identity, nil
}

func (b *Binder) recall(s stamp.Stamp) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	identity, ok := b.known[s]
	return identity, ok
}

func (b *Binder) remember(s stamp.Stamp, identity string) {
	if !s.Settled {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) >= knownMost {
		b.known = map[stamp.Stamp]string{}
	}
	b.known[s] = identity
}

// descriptor reads an open file without moving in it and without closing it.
type descriptor int

func (d descriptor) ReadAt(p []byte, offset int64) (int, error) {
	for {
		n, err := unix.Pread(int(d), p, offset)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// fileStamp is that of a regular file.
func fileStamp(fd int) (stamp.Stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return stamp.Stamp{}, err
	}
	return regularStamp(&st)
}

func regularStamp(st *unix.Stat_t) (stamp.Stamp, error) {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return stamp.Stamp{}, errors.New("not a regular file")
	}
	return stamp.From(st), nil
}

// settledStamp waits until a long file's last change is long enough ago that the next one must show in its times.
func settledStamp(fd int) (stamp.Stamp, error) {
	for range 10 {
		s, err := fileStamp(fd)
		if err != nil || s.Settled || s.Size <= BoundBytes {
			return s, err
		}
		time.Sleep(stamp.Tick)
	}
	return stamp.Stamp{}, errors.New("the file does not come to rest")
}

// byLook identifies a file that cannot be opened.
func byLook(real string) (string, error) {
	for range 10 {
		var st unix.Stat_t
		if err := unix.Lstat(real, &st); err != nil {
			return "", &os.PathError{Op: "stat", Path: real, Err: err}
		}
		s, err := regularStamp(&st)
		if err != nil {
			return "", fmt.Errorf("%s: %w", real, err)
		}
		if s.Settled {
			return identityOf(s), nil
		}
		time.Sleep(stamp.Tick)
	}
	return "", fmt.Errorf("%s does not come to rest", real)
}

// rights are mode and owner: the same script does more once it is set-user-id.
func rights(s stamp.Stamp) string { return fmt.Sprintf("%o:%d", s.Mode&0o7777, s.Owner) }

// identity stands for the content of a file without reading it. No program can set the change time.
func identityOf(s stamp.Stamp) string {
	return fmt.Sprintf("%s%d:%d:%d:%o:%d:%d", byStat, s.Device, s.Inode, s.Size, s.Mode, s.Owner, s.Changed)
}

// boundDir is the real path and identity of a working directory. A link in it that this process could exchange is
// refused: so could the command's agent, which runs under the same user.
func boundDir(dir string) (real, identity string, err error) {
	if strings.TrimSpace(dir) == "" {
		return "", "", nil
	}
	if !filepath.IsAbs(dir) {
		return "", "", fmt.Errorf("the working directory %q is not absolute", dir)
	}
	if real, err = followTrusted(filepath.Clean(dir)); err != nil {
		return "", "", err
	}
	fd, err := unix.Open(real, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", "", &os.PathError{Op: "open", Path: real, Err: err}
	}
	defer unix.Close(fd)
	identity, err = dirIdentity(fd)
	return real, identity, err
}

// followTrusted resolves links whose parent only others, such as the system, can write. The last element must be none.
func followTrusted(dir string) (string, error) {
	const mostLinks = 40
	for range mostLinks {
		link, err := firstLink(dir)
		if err != nil {
			return "", err
		}
		if link == "" {
			return dir, nil
		}
		parent := filepath.Dir(link)
		switch {
		case link == dir:
			return "", fmt.Errorf("the working directory %s is a symbolic link", dir)
		case unix.Faccessat(unix.AT_FDCWD, parent, unix.W_OK, unix.AT_EACCESS) == nil:
			return "", fmt.Errorf("the working directory %s lies behind the symbolic link %s, which this user can exchange", dir, link)
		}
		target, err := os.Readlink(link)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(parent, target)
		}
		dir = filepath.Join(target, strings.TrimPrefix(dir, link))
	}
	return "", fmt.Errorf("the working directory %s has too many symbolic links", dir)
}

// firstLink is the first element of a path that is a symbolic link; "" if none is.
func firstLink(dir string) (string, error) {
	for i := 1; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' || i == 1 && dir == "/" {
			continue
		}
		info, err := os.Lstat(dir[:i])
		if err != nil {
			return "", err
		}
		if info.Mode()&os.ModeSymlink != 0 {
			return dir[:i], nil
		}
	}
	return "", nil
}

// dirIdentity tells a directory from every other one, also from a later one that has got its inode number. What lies in
// it may change.
func dirIdentity(fd int) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d:%d:%d", st.Dev, st.Ino, birthTime(fd, &st)), nil
}
