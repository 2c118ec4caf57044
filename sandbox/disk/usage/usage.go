// Package usage measures what lies on a disk. It is part of the small program inside sandboxes, too.
package usage

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// Floor is the free space of the host's file system that sandboxes leave alone.
	Floor = 512 << 20
	// Noise is what a sandbox may have written when the floor is reached by others.
	Noise = 64 << 20
)

// Full reports whether the file system of a path has less free space than [Floor].
func Full(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && int64(st.Bavail)*int64(st.Bsize) < Floor
}

// Of is the bytes that the files below a path take on the disk. Symbolic links are not followed, and of a file with several
// names only one counts.
func Of(path string) int64 {
	root, err := os.OpenRoot(path)
	if err != nil {
		if info, err := os.Lstat(path); err == nil {
			return blocks(info)
		}
		return 0
	}
	defer root.Close()
	var total int64
	counted := map[uint64]bool{}
	// what cannot be read now is counted the next time
	_ = fs.WalkDir(root.FS(), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was removed, or cannot be read: the rest counts
		}
		info, err := entry.Info()
		if err != nil {
			return nil // as above
		}
		if st := info.Sys().(*syscall.Stat_t); st.Nlink > 1 && !entry.IsDir() {
			if counted[st.Ino] {
				return nil
			}
			counted[st.Ino] = true
		}
		total += blocks(info)
		return nil
	})
	return total
}

func blocks(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }
