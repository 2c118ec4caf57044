package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
)

// shadowPolicy is the policy of the file that teg.shadow names. It is evaluated beside the one in force, which it
// cannot change; without such a file it has no snapshot.
type shadowPolicy struct {
	home    string
	tools   []*toolward.Tool
	around  policy.Surroundings
	log     *slog.Logger
	tell    func(audit.Event)
	renamed chan struct{} // another file is to be followed

	mu      sync.Mutex
	file    string // teg.shadow in force
	current *policy.Snapshot
}

var _ toolward.Policy = (*shadowPolicy)(nil)

// Snapshot is the compiled shadow, or nil if there is none.
func (s *shadowPolicy) Snapshot() toolward.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil
	}
	return s.current
}

// use follows another file from now on; "" is none.
func (s *shadowPolicy) use(file string) {
	s.mu.Lock()
	same := s.file == file
	if !same {
		s.file, s.current = file, nil // the old file says nothing about the new one
	}
	s.mu.Unlock()
	if same {
		return
	}
	s.reload()
	select {
	case s.renamed <- struct{}{}:
	default: // whoever follows has not yet looked at the last change
	}
}

// path is the file that is followed, or "".
func (s *shadowPolicy) path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" {
		return ""
	}
	return filepath.Join(s.home, s.file)
}

// reload compiles the file. One that is wrong leaves the shadow as it is and is reported: nothing depends on it.
func (s *shadowPolicy) reload() {
	path := s.path()
	if path == "" {
		return
	}
	snapshot, err := compileFile(path, s.tools, s.around)
	if err != nil {
		s.log.Error("the shadow policy is wrong; calls are judged as before, and by the earlier shadow if there was one", "err", err)
		s.tell(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "shadow refused", "error": err.Error()}})
		return
	}
	s.mu.Lock()
	changed := path == filepath.Join(s.home, s.file) && (s.current == nil || s.current.Revision() != snapshot.Revision())
	if changed {
		s.current = snapshot
	}
	s.mu.Unlock()
	if changed {
		s.log.Info("shadow policy evaluated beside the one in force", "file", path, "revision", snapshot.Revision())
		s.tell(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "shadow", "file": path, "revision": snapshot.Revision()}})
	}
}

// follow reloads the file whenever it changes, until the context ends.
func (s *shadowPolicy) follow(ctx context.Context) {
	for ctx.Err() == nil {
		watch, stop := context.WithCancel(ctx)
		if path := s.path(); path != "" {
			go func() {
				if err := config.Follow(watch, path, s.reload); err != nil {
					s.log.Error("the shadow policy is not watched: changes of its file wait for a restart", "err", err)
				}
			}()
		}
		select {
		case <-ctx.Done():
		case <-s.renamed:
		}
		stop()
	}
}

// compileFile reads a whole configuration file and compiles its policy. Unlike the gateway's own file it must exist.
// Errors are config.Problems where something in the file is wrong.
func compileFile(path string, tools []*toolward.Tool, around policy.Surroundings) (*policy.Snapshot, error) {
	loaded, err := config.Load(path, config.CheckPolicy(tools, around))
	if err != nil {
		return nil, err
	}
	if loaded.Source == nil {
		return nil, fmt.Errorf("%s does not exist", path)
	}
	c := loaded.File.Policy()
	c.Around = around
	snapshot, _, err := policy.Compile(c, tools)
	return snapshot, err
}
