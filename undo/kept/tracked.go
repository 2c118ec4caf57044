package kept

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/gitindex"
)

// "git reset --hard" leaves alone what git does not know, such as what a build has made, and "git clean" what it knows. So git's index
// is read; git itself is not asked, because it runs what the repository tells it to. Where it cannot be read, git takes everything.

// gitTakes reports whether a command of git's may take a file of the workspace; which is of toolward.Take.
func gitTakes(workspace, within, which string) bool {
	if slices.Contains(strings.Split(within, "/"), ".git") {
		return false // the repository is kept as such, and its sockets are nobody's work
	}
	for dir := filepath.Dir(within); ; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(workspace, dir, ".git")); err == nil {
			name, err := filepath.Rel(dir, within)
			known, readable := inIndex(filepath.Join(workspace, dir, ".git", "index"), name)
			return !info.IsDir() || err != nil || !readable || known == (which == "tracked")
		}
		if dir == "." {
			return true
		}
	}
}

// inIndex reports whether git has a path, or something below it, in an index.
func inIndex(index, name string) (known, readable bool) {
	f, err := os.OpenFile(index, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > gitindex.Largest {
		return false, false
	}
	data := make([]byte, info.Size())
	if n, err := f.Read(data); err != nil || n != len(data) {
		return false, false
	}
	readable = gitindex.Walk(data, func(path []byte) bool {
		known = string(path) == name || strings.HasPrefix(string(path), name+"/")
		return !known
	})
	return known, readable
}
