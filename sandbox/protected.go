package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/toolward/toolward/place"
)

const (
	maxWalked = 1_000_000 // entries of the writable directories of one sandbox
	maxDepth  = 100
)

// walker looks for what is protected below a writable mount, at every depth: the hooks of a repository inside a
// repository are run by the host as well.
type walker struct {
	ctx    context.Context
	left   int
	inside []string
}

// protectedPaths are the paths inside that nobody may write, below the writable ones of the mounts.
func protectedPaths(ctx context.Context, mounts []Mount, table *MountTable) ([]string, error) {
	w := &walker{ctx: ctx, left: maxWalked}
	for i := range mounts {
		m := &mounts[i]
		if !m.Writable || m.Pinned == nil {
			continue
		}
		found := len(w.inside)
		dir, err := reopen(m.Pinned)
		if err != nil {
			if info, statErr := m.Pinned.Stat(); statErr == nil && !info.IsDir() {
				continue // a single file
			}
			return nil, Errorf(CodeFailed, "look for protected files in %s: %v", m.Source, err)
		}
		if err := w.walk(dir, path.Base(m.Source), m.Target, 0); err != nil {
			return nil, err
		}
		// What another mount hides is not there.
		kept := slices.DeleteFunc(slices.Clone(w.inside[found:]), func(p string) bool {
			seen := table.inside(p)
			return seen == nil || seen.Source != path.Clean(m.Source) || seen.Target != path.Clean(m.Target)
		})
		w.inside = append(w.inside[:found], kept...)
	}
	slices.Sort(w.inside)
	return slices.Compact(w.inside), nil
}

// walk looks through a directory and closes it. Directories that cannot be read are of no use to the sandbox either.
func (w *walker) walk(dir *os.File, name, inside string, depth int) error {
	defer dir.Close()
	if err := w.ctx.Err(); err != nil {
		return err
	}
	for {
		entries, err := dir.ReadDir(1024)
		for _, e := range entries {
			if w.left--; w.left < 0 || depth > maxDepth {
				return &Error{
					Code: CodeConfig, Text: "the workspace is too large to look for protected files in it",
					Fix: "use a smaller workspace, or set sandbox.fs.allowProtected",
				}
			}
			if err := w.entry(dir, name, inside, depth, e); err != nil {
				return err
			}
		}
		if err != nil { // io.EOF, or a directory that is going away
			return nil
		}
	}
}

func (w *walker) entry(dir *os.File, name, inside string, depth int, e fs.DirEntry) error {
	here := path.Join(inside, e.Name())
	// A symbolic link cannot be mounted over; what it leads to is judged by its own name.
	link := e.Type()&fs.ModeSymlink != 0
	if !link && place.Guards(name, e.Name()) {
		w.inside = append(w.inside, here)
		return nil
	}
	if !e.IsDir() {
		return nil
	}
	below, err := openBelow(dir, e.Name())
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || err != nil && isNoDirectory(err) {
		return nil
	}
	if err != nil {
		return Errorf(CodeFailed, "look for protected files: %v", err)
	}
	return w.walk(below, e.Name(), here, depth+1)
}
