package session

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/toolward/toolward"
)

// State is what is kept of one conversation.
type State struct {
	Key           toolward.SessionKey `json:"-"`
	Parent        toolward.SessionKey `json:"parent,omitempty"`
	Reports       bool                `json:"reports,omitempty"` // its client tells how full the context is
	ContextTokens int64               `json:"contextTokens"`
	ContextWindow int64               `json:"contextWindow"`
	Compacted     bool                `json:"compacted,omitempty"`
	External      bool                `json:"external,omitempty"`
	Sources       []string            `json:"sources,omitempty"`    // where external content came from, newest last
	SourcesCut    bool                `json:"sourcesCut,omitempty"` // there were more; the earlier ones are not kept
	Suspicious    bool                `json:"suspicious,omitempty"`
	Floors        []Floor             `json:"floors,omitempty"` // at most one of a person, and one of alarms for each level
	Updated       time.Time           `json:"updated"`
}

// Floor is a level that a conversation has at least.
type Floor struct {
	Level toolward.Level `json:"level"`
	Until time.Time      `json:"until,omitzero"` // zero: a person set it, and it stays until a person clears it
	By    string         `json:"by"`             // the person or the alarm
}

// Store keeps states. A change is committed when SaveSession returns.
type Store interface {
	// LoadSession returns a state; found is false if the conversation is not known.
	LoadSession(context.Context, toolward.SessionKey) (s State, found bool, err error)
	SaveSession(context.Context, State) error
	// RecentSessions lists the states that were saved last, newest first, at most limit.
	RecentSessions(ctx context.Context, limit int) ([]State, error)
}

// Change tells that the level of a conversation changed.
type Change struct {
	Session  toolward.SessionKey `json:"sessionKey"`
	From, To toolward.Level
	Reasons  []string `json:"reasons"`
	By       string   `json:"by,omitempty"` // the person, if one did it
}

// Settings are the configurable part; see teg in the configuration.
type Settings struct {
	DefaultLevel toolward.Level // of conversations whose client does not tell how full its context is
	HighWater    float64        // 0: HighWater
}

// Options says what a tracker works with.
type Options struct {
	Store    Store // required
	Settings Settings
	OnChange func(Change) // optional; must not block and must not call the tracker
	Keep     int          // conversations in memory; default 1,000
	Log      *slog.Logger
}

// maxSources bounds the list of sources of one conversation.
const maxSources = 50

// Tracker knows the state of every conversation. Its methods may be called from any goroutine.
type Tracker struct {
	options Options
	log     *slog.Logger

	mu      sync.Mutex
	order   *list.List // of *entry, most recently used first
	entries map[toolward.SessionKey]*list.Element
}

// entry is a conversation in memory.
type entry struct {
	State
	runs  []runLevel     // of the latest runs, newest last
	shown toolward.Level // as the last Change told
}

// runLevel is the tensest level that a run has reached.
type runLevel struct {
	run   string
	level toolward.Level
}

// maxRuns is how many runs of one conversation are remembered. Runs that go on side by side must not make each other
// forget.
const maxRuns = 32

// reached returns the tensest level of a run so far.
func (e *entry) reached(run string) toolward.Level {
	for _, r := range e.runs {
		if r.run == run && run != "" {
			return r.level
		}
	}
	return toolward.Normal
}

// note keeps the level of a run.
func (e *entry) note(run string, level toolward.Level) {
	if run == "" {
		return
	}
	e.runs = slices.DeleteFunc(e.runs, func(r runLevel) bool { return r.run == run })
	e.runs = append(e.runs, runLevel{run, level})
	if len(e.runs) > maxRuns {
		e.runs = slices.Delete(e.runs, 0, len(e.runs)-maxRuns)
	}
}

// New makes a tracker.
func New(o Options) (*Tracker, error) {
	if o.Store == nil {
		return nil, errors.New("sessions: nowhere to keep them")
	}
	if o.Keep <= 0 {
		o.Keep = 1000
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Tracker{options: o, log: o.Log, order: list.New(), entries: map[toolward.SessionKey]*list.Element{}}, nil
}

// Configure replaces the settings.
func (t *Tracker) Configure(s Settings) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.options.Settings = s
}

// Level computes the level of the call's conversation. Within one run it never falls: an agent must not relax by
// compacting or by waiting. Several runs of one conversation may take turns; a call without a run changes none.
func (t *Tracker) Level(ctx context.Context, call *toolward.Call) (toolward.Level, toolward.LevelInputs, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.get(ctx, call.Session)
	if err != nil {
		return toolward.Lockdown, toolward.LevelInputs{}, err
	}
	level, inputs := t.compute(e, e.reached(call.Run))
	e.note(call.Run, level)
	t.tell(e, level, inputs.Reasons, "")
	return level, inputs, nil
}

func (t *Tracker) compute(e *entry, previous toolward.Level) (toolward.Level, toolward.LevelInputs) {
	floor := e.floor().Level
	signals := Signals{
		ContextTokens: float64(e.ContextTokens), ContextWindow: float64(e.ContextWindow),
		Compacted: e.Compacted, External: e.External, Suspicious: e.Suspicious,
		Floor: floor, Previous: previous, HighWater: t.options.Settings.HighWater,
	}
	if !e.Reports {
		// A client without a context of its own: the configured level takes the place of the context's fullness.
		signals.ContextTokens, signals.ContextWindow = 0, 1
		signals.Floor = toolward.Tenser(floor, t.options.Settings.DefaultLevel)
	}
	level, reasons := Compute(signals)
	inputs := toolward.LevelInputs{
		ContextTokens: e.ContextTokens, ContextWindow: e.ContextWindow, Compacted: e.Compacted,
		External: e.External, Suspicious: e.Suspicious, Floor: floor, Reasons: reasons,
	}
	if !e.Reports {
		inputs.ContextTokens = -1
	}
	return level, inputs
}

// floor is the tensest floor in force now, and of equal ones that which lasts longest; level Normal if there is none.
func (s *State) floor() Floor {
	best := Floor{Level: toolward.Normal}
	for _, f := range s.Floors {
		switch {
		case !f.Until.IsZero() && time.Now().After(f.Until):
		case f.Level < best.Level, f.Level == best.Level && (f.Until.IsZero() || !best.Until.IsZero() && f.Until.After(best.Until)):
			best = f
		}
	}
	return best
}

// put sets a floor in the place of the one of the same kind, and drops those that have run out. A person's floor and
// an alarm's do not replace each other: when the alarm is over, what the person wanted still holds.
func (s *State) put(f Floor) {
	s.Floors = slices.DeleteFunc(slices.Clone(s.Floors), func(old Floor) bool {
		same := old.Until.IsZero() == f.Until.IsZero() && (f.Until.IsZero() || old.Level == f.Level)
		return same || !old.Until.IsZero() && time.Now().After(old.Until)
	})
	if f.Level != toolward.Normal {
		s.Floors = append(s.Floors, f)
	}
}

// tell reports a changed level once.
func (t *Tracker) tell(e *entry, level toolward.Level, reasons []string, by string) {
	if level == e.shown {
		return
	}
	change := Change{e.Key, e.shown, level, reasons, by}
	e.shown = level
	if t.options.OnChange != nil {
		t.options.OnChange(change)
	}
}

// get returns the conversation, from memory, from the store or new. A store that fails is an error: a conversation
// whose past cannot be read must not pass for a clean one.
func (t *Tracker) get(ctx context.Context, key toolward.SessionKey) (*entry, error) {
	if at, ok := t.entries[key]; ok {
		t.order.MoveToFront(at)
		return at.Value.(*entry), nil
	}
	e, err := t.load(ctx, key)
	if err != nil {
		return nil, err
	}
	t.entries[key] = t.order.PushFront(e)
	for t.order.Len() > t.options.Keep {
		// Everything but the run's own level is in the store, and a run that long idle has ended.
		oldest := t.order.Back()
		delete(t.entries, oldest.Value.(*entry).Key)
		t.order.Remove(oldest)
	}
	return e, nil
}

// load reads a conversation, or begins one.
func (t *Tracker) load(ctx context.Context, key toolward.SessionKey) (*entry, error) {
	state, found, err := t.options.Store.LoadSession(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", key, err)
	}
	e := &entry{State: state, shown: toolward.Normal}
	if !found {
		e.State = State{ContextTokens: -1}
	}
	e.Key = key
	if found {
		// What it was before a restart was told then.
		e.shown, _ = t.compute(e, toolward.Normal)
	}
	return e, nil
}
