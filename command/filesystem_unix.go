//go:build unix

package command

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Disk is the file system of this machine.
type Disk struct{}

// Look asks the kernel.
func (Disk) Look(path string) (Node, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return Node{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	node := Node{Mode: fs.FileMode(stat.Mode & 0o777), Stamp: Stamp{
		Device: uint64(stat.Dev), Inode: stat.Ino, Changed: unix.TimespecToNsec(stat.Ctim), // differs by system
	}}
	if stat.Mode&unix.S_ISVTX != 0 {
		node.Mode |= fs.ModeSticky
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		node.Mode |= fs.ModeDir
	case unix.S_IFLNK:
		node.Mode |= fs.ModeSymlink
		target, err := os.Readlink(path)
		if err != nil {
			return Node{}, err
		}
		node.Link = target
	default:
		node.Mode |= fs.ModeIrregular
	}
	return node, nil
}

// maxPointer bounds what is read of a file ".git", in bytes: no path is longer.
const maxPointer = 4200

// GitPointer reads the file.
func (d Disk) GitPointer(path string) (string, error) {
	text, err := d.ReadFile(path, maxPointer)
	return string(text), err
}

// ReadFile reads the file.
func (Disk) ReadFile(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > limit:
		return nil, &fs.PathError{Op: "read", Path: path, Err: fs.ErrInvalid}
	}
	return io.ReadAll(io.LimitReader(file, limit))
}

// ReadDir lists a directory.
func (Disk) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }
