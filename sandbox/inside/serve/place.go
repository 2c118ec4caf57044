//go:build linux

package serve

import (
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

// files does file operations. Whoever works in the sandbox may exchange files, directories and links at any time, so
// nothing is done by a path that was checked before: a directory is opened, its real path is asked of the system, and
// the last name is used relative to it, without following links.
type files struct {
	mounts    []wire.Mount
	protected []string
	hardlinks bool
}

// maxLinks is how many symbolic links are followed at the end of one path.
const maxLinks = 8

func newFiles(h *wire.Hello) *files {
	f := &files{protected: h.Protected, hardlinks: h.Hardlinks}
	for _, m := range h.Mounts {
		f.mounts = append(f.mounts, wire.Mount{Target: path.Clean(m.Target), Writable: m.Writable})
	}
	return f
}

// mount is the mount in which a real path lies: the one with the longest target.
func (f *files) mount(real string) (found wire.Mount, ok bool) {
	for _, m := range f.mounts {
		if below(real, m.Target) && (!ok || len(m.Target) > len(found.Target)) {
			found, ok = m, true
		}
	}
	return found, ok
}

// below reports whether a path is another or lies under it.
func below(p, root string) bool {
	return p == root || root == "/" || strings.HasPrefix(p, root) && p[len(root)] == '/'
}

// readable refuses what lies in no mount.
func (f *files) readable(real string) error {
	if _, ok := f.mount(real); !ok {
		return task.Errorf(task.CodeEscape, "%s leads out of what the sandbox may reach", shown(real))
	}
	return nil
}

// writable refuses what may not be changed.
func (f *files) writable(real string) error {
	m, ok := f.mount(real)
	switch {
	case !ok:
		return f.readable(real)
	case !m.Writable:
		return task.Errorf(task.CodeReadOnly, "%s is read-only", shown(m.Target))
	}
	if name := f.protects(real, m.Target); name != "" {
		return task.Errorf(task.CodeReadOnly, "%s is protected: programs outside the sandbox act on %s", shown(real), shown(name))
	}
	return nil
}

// removable refuses what may not be removed or moved: also what holds, or would become, something protected. Otherwise
// .git could be moved away, its hooks written, and moved back.
func (f *files) removable(real string) error {
	if err := f.writable(real); err != nil {
		return err
	}
	for _, m := range f.mounts {
		if below(m.Target, real) {
			return task.Errorf(task.CodeReadOnly, "%s holds a mount", shown(real))
		}
	}
	for _, name := range f.protected {
		if path.IsAbs(name) && below(path.Clean(name), real) || !path.IsAbs(name) && endsInside(real, name) {
			return task.Errorf(task.CodeReadOnly, "%s holds %s, which is protected", shown(real), shown(name))
		}
	}
	return nil
}

// protects is the protected name that a real path is or lies under; "" if there is none.
func (f *files) protects(real, root string) string {
	for _, name := range f.protected {
		if path.IsAbs(name) {
			if below(real, path.Clean(name)) {
				return name
			}
			continue
		}
		parts := strings.Split(strings.Trim(path.Clean(name), "/"), "/")
		have := strings.Split(strings.TrimPrefix(real, root), "/")
		for i := 0; i+len(parts) <= len(have); i++ {
			if equalFold(have[i:i+len(parts)], parts) {
				return name
			}
		}
	}
	return ""
}

// endsInside reports whether a path ends with a beginning of a protected name: ".git" of ".git/hooks".
func endsInside(real, name string) bool {
	parts := strings.Split(strings.Trim(path.Clean(name), "/"), "/")
	have := strings.Split(real, "/")
	for n := 1; n < len(parts) && n <= len(have); n++ {
		if equalFold(have[len(have)-n:], parts[:n]) {
			return true
		}
	}
	return false
}

// equalFold compares as a file system does that does not tell upper from lower case: a directory of the host may be one.
func equalFold(a, b []string) bool {
	for i := range a {
		if !strings.EqualFold(a[i], b[i]) {
			return false
		}
	}
	return true
}

func shown(name string) string { return strconv.Quote(name[:min(len(name), 300)]) }

// located is an open directory and a name in it.
type located struct {
	dir  int    // O_PATH
	real string // of the directory
	name string // "" is the directory itself
}

func (l *located) close() { _ = unix.Close(l.dir) } // nothing was written

// path is the real path of what is, or would be, there.
func (l *located) path() string {
	if l.name == "" {
		return l.real
	}
	return path.Join(l.real, l.name)
}

// exactly refuses a path that was real when it was judged, and is not any more: a link stands in it now. It would lead to
// where nobody has allowed anything.
func exactly(p, real string) error {
	if real == path.Clean(p) {
		return nil
	}
	return task.Errorf(task.CodeChanged, "%s leads to %s by now", shown(p), shown(real))
}

const searchDir = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

// locate opens the directory of a path, following links on the way there, but not the last name.
func locate(p string) (*located, error) {
	if !path.IsAbs(p) {
		return nil, task.Errorf(task.CodeEscape, "%s is no absolute path", shown(p))
	}
	// Only the end is cleaned: "a/../b" is not "b" if a is a link.
	trimmed := strings.TrimRight(p, "/")
	at := strings.LastIndexByte(trimmed, '/')
	dir, name := trimmed[:at+1], trimmed[at+1:]
	if trimmed == "" {
		dir, name = "/", ""
	}
	if name == "." || name == ".." {
		dir, name = trimmed, ""
	}
	fd, err := openDirectory(dir)
	if err != nil {
		return nil, failure(p, err)
	}
	l := &located{dir: fd, name: name}
	if l.real, err = realPath(fd); err != nil {
		l.close()
		return nil, failure(p, err)
	}
	return l, nil
}

// noOpenat2 remembers that this kernel, or a filter of system calls, has no openat2.
var noOpenat2 atomic.Bool

// openDirectory opens a directory. Links are followed, but none of those that lead to open files of processes.
func openDirectory(p string) (int, error) {
	if !noOpenat2.Load() {
		for {
			fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: searchDir, Resolve: unix.RESOLVE_NO_MAGICLINKS})
			switch err {
			case unix.EINTR, unix.EAGAIN:
				continue
			case unix.ENOSYS:
				noOpenat2.Store(true)
			case unix.EPERM: // for O_PATH this comes from a filter, never from a file
				noOpenat2.Store(true)
			default:
				return fd, err
			}
			break
		}
	}
	return walk(p)
}

// walk opens a directory component by component, reading links itself.
func walk(p string) (int, error) {
	at, err := unix.Open("/", searchDir, 0)
	if err != nil {
		return -1, err
	}
	rest := strings.Split(p, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			_ = unix.Close(at) // nothing was written
			return -1, err
		}
		target, isLink, err := linkTarget(next)
		if err == nil && isLink {
			_ = unix.Close(next) // nothing was written
			if links++; links > 40 {
				err = unix.ELOOP
			} else if next = at; path.IsAbs(target) {
				next, err = unix.Open("/", searchDir, 0)
			}
			rest = append(strings.Split(target, "/"), rest...)
		}
		if next != at {
			_ = unix.Close(at) // nothing was written
		}
		if at = next; err != nil {
			_ = unix.Close(at) // nothing was written
			return -1, err
		}
	}
	var st unix.Stat_t
	err = unix.Fstat(at, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	if err != nil {
		_ = unix.Close(at) // nothing was written
		return -1, err
	}
	return at, nil
}

// linkTarget reads an open symbolic link. Links of /proc are refused: they lead to what other processes have open.
func linkTarget(fd int) (target string, isLink bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", false, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Type == unix.PROC_SUPER_MAGIC {
		return "", true, unix.ELOOP
	}
	var buffer [wire.MaxPath]byte
	n, err := unix.Readlinkat(fd, "", buffer[:])
	return string(buffer[:max(n, 0)]), true, err
}

// realPath asks the system what path an open file has. One that is in no directory any more has none.
func realPath(fd int) (string, error) {
	var buffer [wire.MaxPath + 64]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buffer[:])
	if err != nil {
		return "", err
	}
	real := string(buffer[:n])
	if !path.IsAbs(real) || n > wire.MaxPath || strings.HasSuffix(real, " (deleted)") && removed(fd) {
		return "", unix.ENOENT
	}
	return real, nil
}

// removed reports whether a file has no name any more. " (deleted)" can be part of a name, too.
func removed(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) != nil || st.Nlink == 0
}

// follow locates what a path leads to, following links at its end. There may be nothing.
func follow(p string) (*located, error) {
	for range maxLinks + 1 {
		l, err := locate(p)
		if err != nil || l.name == "" {
			return l, err
		}
		var buffer [wire.MaxPath]byte
		n, err := unix.Readlinkat(l.dir, l.name, buffer[:])
		if err != nil { // no link, or nothing
			return l, nil
		}
		if p = string(buffer[:n]); !path.IsAbs(p) {
			p = path.Join(l.real, "/") + "/" + p
		}
		l.close()
	}
	return nil, task.Errorf(task.CodeEscape, "%s leads through more than %d links", shown(p), maxLinks)
}

// openLast opens what was located, without following a link that was put there meanwhile, and gives its real path.
func (l *located) openLast(flags int) (fd int, real string, err error) {
	name := l.name
	if name == "" {
		name = "."
	}
	for {
		fd, err = unix.Openat(l.dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return -1, "", err
	}
	if real, err = realPath(fd); err != nil {
		_ = unix.Close(fd) // nothing was written
		return -1, "", err
	}
	return fd, real, nil
}

// failure is an error of the system with a code.
func failure(p string, err error) error {
	if _, ok := err.(*task.Error); ok {
		return err
	}
	code := task.CodeFailed
	switch err {
	case unix.ENOENT:
		code = task.CodeNotFound
	case unix.EACCES, unix.EPERM:
		code = task.CodeDenied
	case unix.EROFS:
		code = task.CodeReadOnly
	case unix.ENOSPC, unix.EDQUOT:
		code = task.CodeFull
	case unix.EFBIG:
		code = task.CodeTooLarge
	case unix.ENOTDIR, unix.EISDIR:
		code = task.CodeDirectory
	case unix.EEXIST:
		code = task.CodeExists
	case unix.ENXIO, unix.ENODEV:
		code = task.CodeNotRegular
	case unix.ELOOP:
		code = task.CodeEscape
	}
	var text string
	if errno, ok := err.(unix.Errno); ok {
		text = errno.Error()
	} else if pathError, ok := err.(*os.PathError); ok {
		return failure(p, pathError.Err)
	} else {
		text = err.Error()
	}
	return &task.Error{Code: code, Text: shown(p) + ": " + text}
}
