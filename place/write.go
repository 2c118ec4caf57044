//go:build unix

package place

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// WriteOptions say how WriteFile creates and replaces. The zero value creates a file in an existing directory,
// or replaces whatever content is there.
type WriteOptions struct {
	Mode      os.FileMode // of a new file, less the umask; 0 means 0644. An existing file keeps its permission bits
	Parents   bool        // create missing directories (0755 less the umask)
	Unchanged *Stamp      // replace only if the file still has this stamp, else ErrChanged: no lost updates
}

const temporary = ".toolward-write-"

// WriteFile makes data the content of the resolved file, all or nothing: readers see the old or the new
// content, also after a crash. It writes beside the target and renames, so a link or hard link put at the
// target can never redirect the bytes. Refused: a target that is not a regular file or missing, one that has
// other names (ErrLinked), one that appeared, vanished or changed its kind since it was resolved (ErrChanged).
// Owner and permission bits are kept, set-id bits are not; extended attributes are not kept.
func WriteFile(r Resolved, data []byte, options WriteOptions) error {
	if r.Kind != KindRegular && r.Kind != KindMissing {
		return wrongKind(r)
	}
	if err := usable(r.Real); err != nil {
		return err
	}
	dirPath, base := path.Split(r.Real)
	open := openDirectory
	if options.Parents {
		open = func(real string) (int, error) { return makeDirectories(real, 0o755) }
	}
	search, err := open(path.Clean(dirPath))
	if err != nil {
		return err
	}
	defer unix.Close(search)

	old, err := judgeTarget(search, base, r, options.Unchanged)
	if err != nil {
		return err
	}
	name := temporary + rand.Text()
	if err := writeTemporary(search, name, data, modeFor(old, options.Mode), old); err != nil {
		return fmt.Errorf("write %s: %w", r.Real, err)
	}
	if err := putInPlace(search, name, base, r, options.Unchanged); err != nil {
		_ = unix.Unlinkat(search, name, 0)
		return err
	}
	return syncDirectory(search)
}

// judgeTarget looks at the entry again, through the directory that is now held open.
func judgeTarget(dir int, base string, r Resolved, want *Stamp) (*unix.Stat_t, error) {
	st, kind, err := lookAt(dir, base, r.Real)
	switch {
	case err != nil:
		return nil, err
	case kind != r.Kind:
		return nil, fmt.Errorf("%s was a %s and is a %s: %w", r.Real, r.Kind, kind, ErrChanged)
	case kind == KindMissing && want != nil:
		return nil, fmt.Errorf("%s is gone: %w", r.Real, ErrChanged)
	case kind == KindMissing:
		return nil, nil
	case st.Nlink > 1:
		// A hard link is a second name for a file somewhere else; with it an agent could aim a harmless name
		// at a guarded file.
		return nil, fmt.Errorf("%s: %w", r.Real, ErrLinked)
	case want != nil && stampFrom(&st) != *want:
		return nil, fmt.Errorf("%s was written by someone else meanwhile: %w", r.Real, ErrChanged)
	}
	return &st, nil
}

func modeFor(old *unix.Stat_t, mode os.FileMode) uint32 {
	if old != nil {
		return uint32(old.Mode) & 0o777
	}
	if mode == 0 {
		mode = 0o644
	}
	return uint32(mode.Perm())
}

func writeTemporary(dir int, name string, data []byte, mode uint32, old *unix.Stat_t) (err error) {
	fd, err := openatRetry(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
		if err != nil {
			_ = unix.Unlinkat(dir, name, 0)
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if old != nil {
		if int(old.Uid) != os.Geteuid() || int(old.Gid) != os.Getegid() {
			// Only root can give a file away; for everybody else the new file is their own, as with any editor.
			_ = unix.Fchown(fd, int(old.Uid), int(old.Gid))
		}
		if err := unix.Fchmod(fd, mode); err != nil {
			return err
		}
	}
	return f.Sync()
}

// putInPlace gives the finished temporary file the target's name.
func putInPlace(dir int, name, base string, r Resolved, want *Stamp) error {
	if r.Kind == KindMissing {
		// linkat never replaces: a file that someone created meanwhile was not what was judged.
		switch err := unix.Linkat(dir, name, dir, base, 0); err {
		case nil:
			return unlink(dir, name)
		case unix.EEXIST:
			return fmt.Errorf("%s exists by now: %w", r.Real, ErrChanged)
		case unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EMLINK, unix.EXDEV:
			// a file system without hard links: look, then rename
		default:
			return &os.PathError{Op: "create", Path: r.Real, Err: err}
		}
	}
	if _, err := judgeTarget(dir, base, r, want); err != nil {
		return err
	}
	if err := unix.Renameat(dir, name, dir, base); err != nil {
		return &os.PathError{Op: "replace", Path: r.Real, Err: err}
	}
	return nil
}

func unlink(dir int, name string) error {
	if err := unix.Unlinkat(dir, name, 0); err != nil {
		return &os.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// syncDirectory makes a rename durable. The directory may be held by a search-only descriptor.
func syncDirectory(dir int) error {
	fd, err := openatRetry(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // a directory that may be written but not read: nothing to sync with, the rename stands
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil && err != unix.EINVAL && err != unix.ENOTSUP {
		return fmt.Errorf("make the change durable: %w", err)
	}
	return nil
}

// MkdirAll creates the resolved directory and its missing parents. An existing directory is success.
func MkdirAll(r Resolved, perm os.FileMode) error {
	if r.Kind != KindMissing && r.Kind != KindDirectory {
		return fmt.Errorf("%s is a %s, not a directory", r.Real, r.Kind)
	}
	if err := usable(r.Real); err != nil {
		return err
	}
	fd, err := makeDirectories(r.Real, uint32(perm.Perm()))
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// Remove removes the entry that ResolveEntry judged: a regular file, a symbolic link (the link itself, never
// its target) or an empty directory.
func Remove(r Resolved) error {
	dir, base, err := parentOf(r.Real)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	_, kind, err := lookAt(dir, base, r.Real)
	switch {
	case err != nil:
		return err
	case kind != r.Kind:
		return fmt.Errorf("%s was a %s and is a %s: %w", r.Real, r.Kind, kind, ErrChanged)
	}
	flags := 0
	switch kind {
	case KindMissing:
		return &os.PathError{Op: "remove", Path: r.Real, Err: os.ErrNotExist}
	case KindRegular, KindSymlink:
	case KindDirectory:
		flags = unix.AT_REMOVEDIR
	default:
		return wrongKind(r)
	}
	if err := unix.Unlinkat(dir, base, flags); err != nil {
		return &os.PathError{Op: "remove", Path: r.Real, Err: err}
	}
	return syncDirectory(dir)
}

// Rename moves a regular file (resolved with ResolveEntry) to a target that does not exist; replacing is
// WriteFile's work, because a replaced file must be judged by its own. Directories are not moved: moving the
// parent of a guarded file would move the file out of its place. Across file systems it copies, and removes
// the source only if it is unchanged.
func Rename(from, to Resolved, parents bool) error {
	if from.Kind != KindRegular {
		return wrongKind(from)
	}
	if to.Kind != KindMissing {
		return &os.PathError{Op: "rename", Path: to.Real, Err: os.ErrExist}
	}
	source, name, err := parentOf(from.Real)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	if err := usable(to.Real); err != nil {
		return err
	}
	open := openDirectory
	if parents {
		open = func(real string) (int, error) { return makeDirectories(real, 0o755) }
	}
	targetPath, target := path.Split(to.Real)
	into, err := open(path.Clean(targetPath))
	if err != nil {
		return err
	}
	defer unix.Close(into)

	_, kind, err := lookAt(source, name, from.Real)
	if err != nil {
		return err
	}
	if kind != KindRegular {
		return fmt.Errorf("%s is now a %s: %w", from.Real, kind, ErrChanged)
	}
	switch err := renameNoReplace(source, name, into, target); {
	case err == nil:
	case errors.Is(err, unix.EXDEV):
		return copyAcross(from, to, source, name)
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s exists by now: %w", to.Real, ErrChanged)
	default:
		return &os.PathError{Op: "rename", Path: from.Real, Err: err}
	}
	return errors.Join(syncDirectory(into), syncDirectory(source))
}

// maxCopy bounds a move between file systems, which holds the file in memory once.
const maxCopy = 256 << 20

func copyAcross(from, to Resolved, source int, name string) error {
	f, err := openRegular(source, name, from.Real)
	if err != nil {
		return err
	}
	defer f.Close()
	stamp, size, err := stampOf(f)
	if err != nil {
		return err
	}
	if size > maxCopy {
		return fmt.Errorf("move %s to another file system: %w", from.Real, ErrTooLarge)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCopy))
	if err != nil {
		return fmt.Errorf("read %s: %w", from.Real, err)
	}
	if err := WriteFile(to, data, WriteOptions{Mode: info.Mode().Perm()}); err != nil {
		return err
	}
	st, _, err := lookAt(source, name, from.Real)
	if err != nil {
		return err
	}
	if stampFrom(&st) != stamp {
		return fmt.Errorf("%s was copied to %s but not removed: %w", from.Real, to.Real, ErrChanged)
	}
	return unlink(source, name)
}
