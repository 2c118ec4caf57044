package place

import (
	"os"
	"path"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	searchDir = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	noLinks   = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
)

// noOpenat2 remembers that this kernel, or the container's system call filter, has no openat2 (before 5.6).
var noOpenat2 atomic.Bool

// openat2 opens p with no symbolic link in any component. ok is false when the call is not there.
func openat2(dir int, p string, flags uint64) (fd int, ok bool, err error) {
	if noOpenat2.Load() {
		return -1, false, nil
	}
	fd, err = unix.Openat2(dir, p, &unix.OpenHow{Flags: flags, Resolve: noLinks})
	if err == unix.ENOSYS || (err == unix.EPERM && flags&unix.O_PATH != 0) {
		noOpenat2.Store(true) // EPERM for O_PATH comes from a filter, never from a file
		return -1, false, nil
	}
	return fd, true, err
}

// fastResolve answers in three system calls for a path without symbolic links whose parent exists: if the
// kernel opens it with RESOLVE_NO_SYMLINKS then its clean text is its real path. ok is false for every
// other path; the walk decides then.
func fastResolve(p string) (r Resolved, ok bool) {
	fd, there, err := openat2(unix.AT_FDCWD, p, unix.O_PATH|unix.O_CLOEXEC)
	switch {
	case !there:
		return Resolved{}, false
	case err == unix.ENOENT:
		return fastMissing(p)
	case err != nil:
		return Resolved{}, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return Resolved{}, false
	}
	return Resolved{
		Real: path.Clean(p), Kind: kindOfMode(uint32(st.Mode)), Links: uint64(st.Nlink), // widths differ between architectures
		Device: st.Dev, Inode: st.Ino,
	}, true
}

// fastMissing is the file about to be created: its directory is there without links, and it is not.
func fastMissing(p string) (Resolved, bool) {
	dir, base := path.Split(p)
	if base == "" || base == "." || base == ".." || strings.Contains(dir, "/../") {
		return Resolved{}, false
	}
	fd, there, err := openat2(unix.AT_FDCWD, dir, searchDir)
	if !there || err != nil {
		return Resolved{}, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW) != unix.ENOENT {
		return Resolved{}, false
	}
	return Resolved{Real: path.Clean(p), Kind: KindMissing}, true
}

// lookIn describes a name in an open directory; not if it is a symbolic link.
func lookIn(dir int, base string) (r Resolved, ok bool) {
	var st unix.Stat_t
	switch unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) {
	case nil:
	case unix.ENOENT:
		return Resolved{Kind: KindMissing}, true
	default:
		return Resolved{}, false
	}
	kind := kindOfMode(uint32(st.Mode)) // widths differ between architectures
	return Resolved{Kind: kind, Links: uint64(st.Nlink), Device: st.Dev, Inode: st.Ino}, kind != KindSymlink
}

// openWithoutLinks opens a directory if there is no symbolic link in its path.
func openWithoutLinks(dir string) (fd int, ok bool) {
	fd, there, err := openat2(unix.AT_FDCWD, dir, searchDir)
	return fd, there && err == nil
}

func closeDirectory(fd int) { _ = unix.Close(fd) }

// openDirectory opens a real directory for use with the *at calls.
func openDirectory(real string) (int, error) {
	fd, ok, err := openat2(unix.AT_FDCWD, real, searchDir)
	if !ok {
		return walkDirectory(real, unix.O_PATH)
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: real, Err: changedBy(err)}
	}
	return fd, nil
}
