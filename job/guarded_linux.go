package job

import (
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links the system follows in one path.
const maxLinks = 40

// guarded reports whether nobody but the system's administrator, who we are not, could exchange the file that a path
// leads to, write into it, or turn a directory or link on the way: all of them are root's and closed to others. Every
// doubt is "no".
func guarded(name string) bool {
	return os.Geteuid() != 0 && belongsToRoot(name)
}

func belongsToRoot(name string) bool {
	at, rest := "/", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		element := rest[0]
		rest = rest[1:]
		switch element {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at) // it was reached through directories alone
			continue
		}
		if !closed(at, unix.S_IFDIR) {
			return false
		}
		next := path.Join(at, element)
		target, err := os.Readlink(next)
		if err != nil { // no link, or nothing
			at = next
			continue
		}
		if links++; links > maxLinks {
			return false
		}
		if strings.HasPrefix(target, "/") {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return closed(at, unix.S_IFREG)
}

// closed reports whether something of the wanted kind is root's and nobody else may write to it.
func closed(name string, kind uint32) bool {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return false
	}
	return st.Mode&unix.S_IFMT == kind && st.Uid == 0 && st.Mode&(unix.S_IWGRP|unix.S_IWOTH) == 0
}
