//go:build unix

package place

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// walkDirectory opens a real directory component by component and follows no symbolic link: what openat2
// does in one call.
func walkDirectory(real string, mode int) (int, error) {
	flags := mode | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open("/", flags, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: "/", Err: err}
	}
	for element := range strings.SplitSeq(strings.Trim(real, "/"), "/") {
		if element == "" {
			continue
		}
		next, err := openatRetry(fd, element, flags, 0)
		_ = unix.Close(fd)
		if err != nil {
			return -1, &os.PathError{Op: "open", Path: real, Err: changedBy(err)}
		}
		fd = next
	}
	return fd, nil
}

// makeDirectories opens a real directory and creates what is missing of it, following no symbolic link.
func makeDirectories(real string, perm uint32) (int, error) {
	fd, err := openDirectory(real)
	if err == nil || !os.IsNotExist(err) {
		return fd, err
	}
	parent, base := path.Split(strings.TrimSuffix(real, "/"))
	if base == "" {
		return -1, err
	}
	dir, err := makeDirectories(path.Clean(parent), perm)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	if err := unix.Mkdirat(dir, base, perm); err != nil && err != unix.EEXIST {
		return -1, &os.PathError{Op: "mkdir", Path: real, Err: err}
	}
	fd, err = openatRetry(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: real, Err: changedBy(err)}
	}
	return fd, nil
}

// parentOf opens the directory that holds a real path, and gives the last element.
func parentOf(real string) (fd int, base string, err error) {
	if err := usable(real); err != nil {
		return -1, "", err
	}
	dir, base := path.Split(real)
	fd, err = openDirectory(path.Clean(dir))
	return fd, base, err
}

// usable refuses a path that did not come from Resolve: the zero Resolved, a relative or unclean path.
func usable(real string) error {
	if real == "" || real[0] != '/' || real == "/" || path.Clean(real) != real || strings.IndexByte(real, 0) >= 0 {
		return fmt.Errorf("%q is not a resolved path: %w", clip(real), ErrBadPath)
	}
	return nil
}

// lookAt describes an entry of an open directory without following it.
func lookAt(dir int, base, real string) (unix.Stat_t, Kind, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == unix.ENOENT:
		return st, KindMissing, nil
	case err != nil:
		return st, KindUnknown, &os.PathError{Op: "stat", Path: real, Err: err}
	}
	return st, kindOfMode(uint32(st.Mode)), nil
}

func kindOfMode(mode uint32) Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return KindRegular
	case unix.S_IFDIR:
		return KindDirectory
	case unix.S_IFLNK:
		return KindSymlink
	case unix.S_IFCHR, unix.S_IFBLK:
		return KindDevice
	case unix.S_IFIFO:
		return KindFIFO
	case unix.S_IFSOCK:
		return KindSocket
	}
	return KindOther
}

// changedBy turns the errors by which the kernel reports a symbolic link into ErrChanged: Resolve had removed
// all links, so a link is a swap after the judgment.
func changedBy(err error) error {
	switch err {
	case unix.ELOOP, unix.ENOTDIR, unix.EMLINK:
		return fmt.Errorf("%w (%w)", ErrChanged, err)
	}
	return err
}

func openatRetry(dir int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, perm)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// renameByLink is rename without replacing on any Unix: the new name first, which never replaces, then the
// old one away.
func renameByLink(source int, name string, into int, target string) error {
	if err := unix.Linkat(source, name, into, target, 0); err != nil {
		return err
	}
	return unix.Unlinkat(source, name, 0)
}
