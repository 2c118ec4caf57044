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
	Home, stateDir string

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
	return &Territory{Home: home, stateDir: stateDir, byWorkspace: map[string]*place.Classifier{}}, nil
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
	own := append(place.OwnPrograms(), companion.Libexec)
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
	layout, err := p.layout(caller.Workspace)
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

// layout is what is whose beside a workspace, by real paths.
func (p *Territory) layout(workspace string) (place.Layout, error) {
	return place.Layout{
		Workspace:  workspace,
		Home:       p.Home,
		StateDir:   p.stateDir,
		ConfigFile: filepath.Join(p.stateDir, config.FileName),
		Own:        append(ownPrograms(), p.plugins...),
		FoldCase:   place.FoldsCase(p.stateDir),
	}.Canonical()
}

// Layout is what is whose, whatever the workspace is.
func (p *Territory) Layout() (place.Layout, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.layout("")
}

// CheckWorkspace is [place.Layout.CheckWorkspace].
func (p *Territory) CheckWorkspace(dir string) (string, error) {
	return place.Layout{Home: p.Home, StateDir: p.stateDir, FoldCase: place.FoldsCase(p.stateDir)}.CheckWorkspace(dir)
}

// SystemDir is where other products keep settings of the whole machine.
func SystemDir() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support"
	}
	return "/etc"
}
