package place

import "path"

// Glance resolves the paths of one decision. It keeps directories open that names were looked up in, so that further
// names in them cost one system call each. Everything that it says is of the moment of the decision; it must be closed
// at its end, and is for one goroutine.
type Glance struct {
	c    *Classifier
	dirs [8]opened
	next int // which of dirs gives way
}

// opened is a directory that has no symbolic link in its path.
type opened struct {
	path string // as it was asked for, with a slash at the end; "" if there is none
	fd   int
}

// Glance begins a decision.
func (c *Classifier) Glance() Glance { return Glance{c: c} }

// Resolve is [Classifier.Resolve].
func (g *Glance) Resolve(workDir, asked string) (Resolved, error) {
	return g.c.resolve(workDir, asked, true, g)
}

// look answers for a path without symbolic links whose directory is there. ok is false for every other path.
func (g *Glance) look(p string) (r Resolved, ok bool) {
	if g == nil {
		return fastResolve(p)
	}
	dir, base := path.Split(p)
	if base == "" || base == "." || base == ".." {
		return fastResolve(p)
	}
	fd, ok := g.directory(dir)
	if !ok {
		return Resolved{}, false
	}
	r, ok = lookIn(fd, base)
	r.Real = path.Clean(p)
	return r, ok
}

// directory opens a directory, unless it is open.
func (g *Glance) directory(dir string) (fd int, ok bool) {
	for i := range g.dirs {
		if g.dirs[i].path == dir {
			return g.dirs[i].fd, true
		}
	}
	if fd, ok = openWithoutLinks(dir); !ok {
		return -1, false
	}
	at := &g.dirs[g.next]
	if at.path != "" {
		closeDirectory(at.fd)
	}
	*at = opened{dir, fd}
	g.next = (g.next + 1) % len(g.dirs)
	return fd, true
}

// Close closes the directories.
func (g *Glance) Close() {
	for i := range g.dirs {
		if g.dirs[i].path != "" {
			closeDirectory(g.dirs[i].fd)
		}
	}
	g.dirs = [len(g.dirs)]opened{}
}
