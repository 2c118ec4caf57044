package settings

import (
	"errors"
	"os"
	"strings"

	"github.com/toolward/toolward/sandbox"

	"golang.org/x/sys/unix"
)

// pin opens a real path without being able to use what is there: the descriptor names the file that was judged, whatever
// stands at the path later. A symbolic link anywhere on the way means that the path changed since it was resolved.
func pin(real string) (*os.File, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/", Err: err}
	}
	for name := range strings.SplitSeq(strings.Trim(real, "/"), "/") {
		if name == "" {
			continue
		}
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		_ = unix.Close(fd)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: real, Err: err}
		}
		fd = next
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT == unix.S_IFLNK {
			_ = unix.Close(fd)
			return nil, errors.Join(sandbox.Errorf(sandbox.CodeChanged, "%s was changed while it was looked at", real), err)
		}
	}
	return os.NewFile(uintptr(fd), real), nil
}

// ownerOf is who owns an open file.
func ownerOf(f *os.File) (sandbox.User, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return sandbox.User{}, &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return sandbox.User{UID: int(stat.Uid), GID: int(stat.Gid)}, nil
}
