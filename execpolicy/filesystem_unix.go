//go:build unix

package execpolicy

import (
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
		Device: uint64(stat.Dev), Inode: stat.Ino, Changed: unix.TimespecToNsec(stat.Ctim), //nolint:unconvert // differs by system
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

// ReadDir lists a directory.
func (Disk) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }
