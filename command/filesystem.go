package command

import (
	"io/fs"
	"path"
	"strings"
)

// FileSystem tells what stands where. It is asked for metadata and names, and for no contents but where a file ".git"
// leads.
type FileSystem interface {
	// Look tells what stands at an absolute path. A symbolic link is not followed.
	Look(path string) (Node, error)
	// ReadDir lists an absolute directory.
	ReadDir(dir string) ([]fs.DirEntry, error)
	// GitPointer reads a small regular file: the ".git" of a submodule or worktree. A symbolic link is not followed.
	GitPointer(path string) (string, error)
}

// contents is a file system that is also asked for what is in regular files which say what a command does: where a
// repository fetches from, which files a patch changes.
type contents interface {
	// ReadFile reads a regular file of at most so many bytes. A symbolic link is not followed.
	ReadFile(path string, limit int64) ([]byte, error)
}

// Node is what stands at a path.
type Node struct {
	Mode  fs.FileMode
	Link  string // where a symbolic link leads
	Stamp Stamp
}

// Stamp changes whenever names in a directory come, go or mean another file.
type Stamp struct {
	Device, Inode uint64
	Changed       int64 // nanoseconds
}

const maxLinks = 40 // as Linux

// walk follows a path to what it means, link by link, and notes where it looked.
type walk struct {
	files    FileSystem
	seen     []seen // directories in which names were looked up
	writable string // first directory on the way in which others could exchange names
}

// seen is a directory as it was when a name was looked up in it.
type seen struct {
	dir   string
	stamp Stamp
}

// follow returns the real path of an absolute path, and what stands there. ".." is taken after links are followed, as
// the kernel does.
func (w *walk) follow(p string) (real string, node Node, ok bool) {
	if node, ok = w.enter("/"); !ok {
		return "", Node{}, false
	}
	return w.from("/", node, p)
}

// from follows a path from a real one.
func (w *walk) from(real string, node Node, p string) (string, Node, bool) {
	ok, links := false, 0
	for rest := p; ; {
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			return real, node, true
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if !node.Mode.IsDir() {
			return "", Node{}, false
		}
		switch name {
		case ".":
			continue
		case "..":
			real = path.Dir(real)
			if node, ok = w.enter(real); !ok {
				return "", Node{}, false
			}
			continue
		}
		next := path.Join(real, name)
		found, err := w.files.Look(next)
		switch {
		case err != nil:
			return "", Node{}, false
		case found.Mode&fs.ModeSymlink == 0:
			real, node = next, found
			if found.Mode.IsDir() {
				w.note(next, found)
			}
			continue
		}
		if links++; links > maxLinks {
			return "", Node{}, false
		}
		rest = found.Link + "/" + rest
		if strings.HasPrefix(found.Link, "/") {
			real = "/"
			if node, ok = w.enter(real); !ok {
				return "", Node{}, false
			}
		}
	}
}

func (w *walk) enter(dir string) (Node, bool) {
	node, err := w.files.Look(dir)
	if err != nil || !node.Mode.IsDir() {
		return Node{}, false
	}
	w.note(dir, node)
	return node, true
}

func (w *walk) note(dir string, node Node) {
	if w.writable == "" && node.Mode&0o002 != 0 && node.Mode&fs.ModeSticky == 0 {
		w.writable = dir // also of a directory that an earlier search has passed
	}
	for i := range w.seen {
		if w.seen[i].dir == dir {
			return
		}
	}
	w.seen = append(w.seen, seen{dir, node.Stamp})
}
