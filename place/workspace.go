package place

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CheckWorkspace returns the real path of a directory that an agent may have as its workspace. It refuses those that cannot be
// an agent's own: with the home directory or a parent of the state directory as workspace, keys and Toolward's own files would
// lie in it; see [Layout.suits]. It looks at Home, StateDir and FoldCase of the layout.
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
	if err := l.suits(real); err != nil {
		return "", fmt.Errorf("workspace %s %w: choose a project directory", dir, err)
	}
	return real, nil
}

// suits says why a real directory cannot be an agent's own; nil if it can. In one on the search path, in a tree of the home that other
// programs run or trust, or in a dotted directory that holds such trees, a write that passes for ordinary work would be run by the next
// shell: whoever names the workspace at the local socket is only a program of the same user. The layout is canonical.
func (l Layout) suits(real string) error {
	names := Classifier{layout: l}
	workspace := names.key(real)
	for _, held := range []string{l.Home, l.StateDir} {
		if Within(names.key(held), workspace) {
			return fmt.Errorf("holds %s", held)
		}
	}
	if Within(workspace, names.key(l.StateDir)) {
		return errors.New("lies in Toolward's own state")
	}
	if home, base := filepath.Split(workspace); filepath.Clean(home) == names.key(l.Home) && base[0] == '.' {
		return errors.New("is a directory of settings")
	}
	for _, zone := range []Zone{Secret, Protected} {
		for _, name := range AtHome(zone) {
			if Within(workspace, names.key(filepath.Join(l.Home, name))) {
				return fmt.Errorf("lies in ~/%s, which is %s", name, zone)
			}
		}
		for _, tree := range AtRoot(zone) {
			if Within(workspace, names.key(tree)) {
				return fmt.Errorf("lies in %s, which is %s", tree, zone)
			}
		}
	}
	for _, dir := range l.programDirectories() {
		if Within(workspace, names.key(dir)) {
			return fmt.Errorf("lies in %s, whose programs shells start by their names", dir)
		}
	}
	return nil
}

// programDirectories are those of the search path, and those that shells of this home commonly have there. A search path that holds
// the home itself would refuse every project, and names nothing that is more dangerous than the project.
func (l Layout) programDirectories() (dirs []string) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(real) && !Within(l.Home, real) {
			dirs = append(dirs, real)
		}
	}
	for _, name := range []string{"bin", ".local/bin", "go/bin", ".cargo/bin"} {
		dirs = append(dirs, filepath.Join(l.Home, name))
	}
	return dirs
}
