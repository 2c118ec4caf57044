package native

import (
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/toolward/toolward/sandbox"
)

// protectedScan bounds the search for protected paths in large workspaces. What lies beyond it, or is made later, is
// found when the gateway looks at what a command has written.
const protectedScan = 50_000

// protectedPaths are the paths inside that exist and nobody may write: those of the Spec that are absolute, and those
// that count at every depth, below every writable mount.
func protectedPaths(spec *sandbox.Spec) []string {
	var found, anywhere []string
	for _, p := range spec.Protected {
		if path.IsAbs(p) {
			found = append(found, path.Clean(p))
		} else {
			anywhere = append(anywhere, path.Clean(p))
		}
	}
	if len(anywhere) == 0 {
		return found
	}
	for i := range spec.Mounts {
		if m := &spec.Mounts[i]; m.Writable {
			found = append(found, findProtected(m, anywhere)...)
		}
	}
	return found
}

// findProtected searches one mount. It never follows a symbolic link, so nothing outside is looked at.
func findProtected(m *sandbox.Mount, names []string) []string {
	root, err := os.OpenRoot(m.Source)
	if err != nil {
		return nil // a file: it is no directory that could hold one
	}
	defer root.Close() //nolint:errcheck // it was only read
	var found []string
	seen := 0
	//nolint:errcheck // what cannot be read cannot be written either
	fs.WalkDir(root.FS(), ".", func(p string, entry fs.DirEntry, err error) error {
		if seen++; seen > protectedScan {
			return fs.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // a directory that cannot be read; the others can
		}
		for _, name := range names {
			if p == name || strings.HasSuffix(p, "/"+name) {
				found = append(found, path.Join(path.Clean(m.Target), p))
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
		}
		if entry.IsDir() && entry.Name() == "objects" && path.Base(path.Dir(p)) == ".git" {
			return fs.SkipDir
		}
		return nil
	})
	return found
}
