package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/sandbox/protected"
	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

// maxSessions bounds whose commands are remembered of one sandbox. One that more have used is not used again by the next
// gateway, which could not tell in whose name its programs act.
const maxSessions = 1024

// remembered is what the next gateway must know of a sandbox that outlives this one: programs that a session has left in it go
// on, act in its name, and have written what they have written. Without it the sandbox is ended.
type remembered struct {
	EngineID string           `json:"engineId"`
	Sessions []Former         `json:"sessions"` // that have used it
	Guarded  []protected.File `json:"guarded"`  // what was protected when it was made
}

func (m *Manager) rememberedDir() string {
	return filepath.Join(m.options.StateDir, "sandbox", "detached")
}

func (m *Manager) rememberedPath(name string) string {
	return filepath.Join(m.rememberedDir(), name+".json")
}

// remember writes down, before a session's first command runs in a sandbox that outlives the gateway, that it did. The
// caller has the turn of the box.
func (k *making) remember(plan *settings.Plan, handle sandbox.Handle, fresh bool) error {
	if plan.Spec.Detach <= 0 {
		return nil
	}
	id, user := handle.State().EngineID, Former{k.request.Agent, k.request.Session}
	r := remembered{EngineID: id, Sessions: []Former{}, Guarded: []protected.File{}}
	if fresh {
		if plan.Survey != nil {
			r.Guarded = plan.Survey.Files()
		}
	} else {
		before, err := k.m.recall(k.box.name, id)
		if err != nil {
			return err
		}
		r = *before
	}
	if !fresh && slices.Contains(r.Sessions, user) {
		return nil
	}
	if len(r.Sessions) < maxSessions {
		r.Sessions = append(r.Sessions, user)
	}
	if err := os.MkdirAll(k.m.rememberedDir(), 0o700); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return replace(k.m.rememberedPath(k.box.name), append(data, '\n'))
}

// recall is what is remembered of the sandbox of a name and id.
func (m *Manager) recall(name, id string) (*remembered, error) {
	data, err := os.ReadFile(m.rememberedPath(name))
	if err != nil {
		return nil, sandbox.Errorf(sandbox.CodeFailed, "who has used sandbox %s is not known: %v", name, err)
	}
	r := &remembered{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, sandbox.Errorf(sandbox.CodeFailed, "who has used sandbox %s is not known: %v", name, err)
	}
	if r.EngineID != id {
		return nil, sandbox.Errorf(sandbox.CodeFailed, "who has used sandbox %s is not known: what is written is about another one", name)
	}
	return r, nil
}

func (m *Manager) forget(name string) {
	if err := os.Remove(m.rememberedPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.options.Log.Warn("what was remembered of a sandbox could not be removed", "sandbox", name, "err", err)
	}
}

// outlived looks at the sandboxes that have outlived their gateway. Those that may go on are told, so that the record says
// what does; the others are ended, and taken out of states.
func (m *Manager) outlived(ctx context.Context, states map[string]sandbox.State) {
	kept := map[string][]Former{}
	for key, s := range states {
		if s.Detached && !m.goesOn(ctx, s, kept, EventFound, foundWhy) {
			delete(states, key)
		}
	}
	m.forgetOthers(kept)
	if m.options.Egress != nil {
		m.options.Egress.Outlived(kept)
	}
}

// goesOn tells of a sandbox that may go on without a gateway, and ends one that may not. false: it has ended.
func (m *Manager) goesOn(ctx context.Context, s sandbox.State, kept map[string][]Former, kind EventKind, why string) bool {
	event := Event{Name: s.Name, ScopeKey: s.ScopeKey, Engine: s.Engine, Why: why}
	r, err := m.mayGoOn(s)
	if err == nil {
		kept[s.Name] = r.Sessions
		m.tell(kind, event)
		return true
	}
	if removeErr := m.engines[s.Engine].Remove(ctx, s.Name); removeErr != nil {
		m.options.Log.Error("a sandbox that must not go on could not be ended", "sandbox", s.Name, "err", removeErr)
		return true // it is listed, and can be removed
	}
	event.Why = "it must not go on without its gateway: " + err.Error()
	m.tell(EventRemoved, event)
	return false
}

const foundWhy = "it went on without a gateway: its temporary files, and processes that had left their commands; the commands themselves were ended"

// mayGoOn says what is remembered of a sandbox, or why it must end.
func (m *Manager) mayGoOn(s sandbox.State) (*remembered, error) {
	current := m.Settings()
	if s.Instance != current.Instance() {
		return nil, sandbox.Errorf(sandbox.CodeConflict, "it is not of this home")
	}
	if r := current.ForScope(s.ScopeKey); !r.Detach || r.Mode == settings.ModeOff || r.Engine == sandbox.EngineDocker {
		return nil, sandbox.Errorf(sandbox.CodeConfig, "the configuration does not want that any more")
	}
	r, err := m.recall(s.Name, s.EngineID)
	if err != nil {
		return nil, err
	}
	if len(r.Sessions) >= maxSessions {
		return nil, sandbox.Errorf(sandbox.CodeFailed, "more sessions have used it than are remembered")
	}
	return r, nil
}

// forgetOthers removes what is remembered of sandboxes that are not there any more.
func (m *Manager) forgetOthers(kept map[string][]Former) {
	entries, _ := os.ReadDir(m.rememberedDir()) // none yet
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); !ok || kept[name] == nil {
			_ = os.Remove(filepath.Join(m.rememberedDir(), e.Name()))
		}
	}
	_ = os.Remove(m.rememberedDir()) // if it is empty
}

// leave says which sandboxes go on when the gateway ends, and ends those that must not.
func (m *Manager) leave() {
	if m.engines[sandbox.EngineNative] == nil {
		return // containers are another matter
	}
	ctx, cancel := context.WithTimeout(context.Background(), undoTime)
	defer cancel()
	kept := map[string][]Former{}
	for _, s := range m.listOf(ctx, sandbox.EngineNative).states {
		if s.Engine = sandbox.EngineNative; s.Detached {
			m.goesOn(ctx, s, kept, EventLeft, leftWhy)
		}
	}
	m.forgetOthers(kept)
	if m.options.Egress != nil {
		m.options.Egress.Outlived(kept)
	}
}

const leftWhy = "it goes on without the gateway: its temporary files, and processes that have left their commands; the commands themselves are ended"

// resumed readies the plan of a sandbox that has outlived its gateway: what is protected now and was not when it was made has
// appeared since, and commands that nobody looked after may have made it. The sessions are those who may have.
func (k *making) resumed(plan *settings.Plan, handle sandbox.Handle) (sessions []Former, err error) {
	r, err := k.m.recall(k.box.name, handle.State().EngineID)
	if err != nil {
		return nil, err
	}
	if plan.Survey != nil {
		plan.Survey.Since(r.Guarded)
	}
	return r.Sessions, nil
}
