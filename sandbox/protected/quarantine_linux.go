package protected

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// quarantine gives an entry of a directory a name that no program obeys, and says which. It stays in its directory: what is moved
// by the directory's descriptor within it can be led nowhere else by links, whatever a hostile program swaps meanwhile; a directory
// moved out of the sandbox's reach would take the programs in it along, and its size.
func quarantine(dir *os.File, name string) (moved string, err error) {
	moved = name + ".quarantined-" + strings.ToLower(rand.Text()[:10])
	fd := int(dir.Fd())
	rename := func() error {
		err := unix.Renameat2(fd, name, fd, moved, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINVAL) { // a file system without that flag; nobody guesses the name
			err = unix.Renameat(fd, name, fd, moved)
		}
		return err
	}
	if err = rename(); errors.Is(err, fs.ErrPermission) && unlock(dir) == nil {
		err = rename()
	}
	if err != nil {
		return "", fmt.Errorf("quarantine %s: %w", name, err)
	}
	if name == "config" {
		keepHarmless(dir, name, moved)
	}
	return moved, nil
}

// keepHarmless writes anew what a quarantined configuration said that runs nothing, so that a clone keeps its remotes. What comes in its
// place meanwhile is left alone: the next look judges it.
func keepHarmless(dir *os.File, name, moved string) {
	content, err := readBelow(dir, moved, maxGitFile+1)
	if err != nil || len(content) > maxGitFile {
		return
	}
	text := harmlessPart(string(content))
	if text == "" || !harmlessGitConfig(text, false) {
		return
	}
	var owner unix.Stat_t
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if os.Geteuid() == 0 && unix.Fstat(int(dir.Fd()), &owner) == nil {
		_ = f.Chown(int(owner.Uid), int(owner.Gid)) // else the workspace's user only cannot write it
	}
	_, _ = f.WriteString(text)
}

// unlock lets the owner of a directory work in it again. It stops a program that takes away the right to read a directory, which git
// does not need to find a configuration in it. It goes by the descriptor, which may be one that only says where the directory is.
func unlock(dir *os.File) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return err
	}
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), fs.FileMode(stat.Mode&0o777|0o700))
}

// openLocked opens a directory that may not be read, after giving its owner that right.
func openLocked(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir.Name() + "/" + name, Err: err}
	}
	at := os.NewFile(uintptr(fd), dir.Name()+"/"+name)
	defer at.Close()
	if err := unlock(at); err != nil {
		return nil, err
	}
	return openBelow(dir, name)
}

// leadsBelow reports whether a path below a directory leads there without a link, or to nothing.
func leadsBelow(top *os.File, rel string) bool {
	fd, err := unix.Openat2(int(top.Fd()), rel, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	_ = unix.Close(fd)
	return true
}
