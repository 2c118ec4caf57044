package place

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CheckWorkspace returns the real path of a directory that an agent may have as its workspace. It refuses those that cannot be
// an agent's own: with the home directory or a parent of the state directory as workspace, keys and Toolward's own files would
// lie in it. It looks at Home, StateDir and FoldCase of the layout.
func (l Layout) CheckWorkspace(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("workspace %q is not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("workspace: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("workspace: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("workspace %s is not a directory", dir)
	}
	if l.Home == "" || l.StateDir == "" {
		return "", errors.New("workspace: it is not known where the home and the state directory are")
	}
	// A relative HOME is an error here: nobody knows which workspaces would hold it.
	l, err = Layout{Home: l.Home, StateDir: l.StateDir, FoldCase: l.FoldCase}.Canonical()
	if err != nil {
		return "", fmt.Errorf("workspace: %w", err)
	}
	names := Classifier{layout: l}
	workspace := names.key(real)
	for _, forbidden := range []string{l.Home, l.StateDir} {
		if Within(names.key(forbidden), workspace) {
			return "", fmt.Errorf("workspace %s holds %s: choose a project directory", dir, forbidden)
		}
	}
	if Within(workspace, names.key(l.StateDir)) {
		return "", fmt.Errorf("workspace %s lies in Toolward's own state", dir)
	}
	return real, nil
}
