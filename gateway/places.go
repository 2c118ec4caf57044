package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/place"
)

// Territory makes the classifiers of callers: one for every workspace, made once.
type Territory struct {
	Home, stateDir         string
	realHome, realStateDir string // without symbolic links

	mu          sync.Mutex
	byWorkspace map[string]*place.Classifier
	plugins     []string // files of plug-ins' programs
}

// maxWorkspaces bounds the cache; beyond it a classifier is made anew for each call.
const maxWorkspaces = 1000

func NewTerritory(stateDir string) (*Territory, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find the home directory: %w", err)
	}
	return &Territory{
		Home: home, stateDir: stateDir, realHome: withoutLinks(home), realStateDir: withoutLinks(stateDir),
		byWorkspace: map[string]*place.Classifier{},
	}, nil
}

// withoutLinks is a directory's real path, or the path itself if it does not exist.
func withoutLinks(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// Protect makes files Toolward's own, in the place of those before.
func (p *Territory) Protect(files []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(files, p.plugins) {
		p.plugins = files
		clear(p.byWorkspace)
	}
}

// ownPrograms are Toolward's programs, wherever they were put: a guarded agent must not exchange the hook that asks about
// it.
func ownPrograms() []string {
	own := place.OwnPrograms()
	if dir, err := companion.Directory(); err == nil {
		own = append(own, dir)
	}
	return own
}

// Of returns the classifier of a caller's workspace.
func (p *Territory) Of(caller toolward.Caller) (*place.Classifier, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.byWorkspace[caller.Workspace]; c != nil {
		return c, nil
	}
	layout, err := place.Layout{
		Workspace:  caller.Workspace,
		Home:       p.Home,
		StateDir:   p.stateDir,
		ConfigFile: filepath.Join(p.stateDir, config.FileName),
		Own:        append(ownPrograms(), p.plugins...),
		FoldCase:   place.FoldsCase(p.stateDir),
	}.Canonical()
	if err != nil {
		return nil, fmt.Errorf("places of workspace %s: %w", caller.Workspace, err)
	}
	c, err := place.New(layout.Narrowed())
	if err != nil {
		return nil, fmt.Errorf("places of workspace %s: %w", caller.Workspace, err)
	}
	if len(p.byWorkspace) < maxWorkspaces {
		p.byWorkspace[caller.Workspace] = c
	}
	return c, nil
}

// CheckWorkspace refuses directories that cannot be an agent's own: with the home directory or a parent of the state
// directory as workspace, keys and Toolward's own files would lie in it.
func (p *Territory) CheckWorkspace(dir string) (string, error) {
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
	for _, forbidden := range []string{p.realHome, p.realStateDir} {
		if place.Within(forbidden, real) {
			return "", fmt.Errorf("workspace %s holds %s: choose a project directory", dir, forbidden)
		}
	}
	if place.Within(real, p.realStateDir) {
		return "", fmt.Errorf("workspace %s lies in Toolward's own state", dir)
	}
	return real, nil
}

// SystemDir is where other products keep settings of the whole machine.
func SystemDir() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support"
	}
	return "/etc"
}
