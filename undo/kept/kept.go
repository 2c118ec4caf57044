// Package kept keeps the workspaces of a gateway before calls and after them, and knows which call did what: it stands between the
// gate, which asks it before the first effect of a call, and the store of package undo.
package kept

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/undo"
)

// Options says what is kept, and where.
type Options struct {
	Dir    string // out of every agent's reach
	Limits undo.Limits
	// Workspace returns the real path of a directory that may be somebody's workspace, or why it may not be.
	Workspace func(dir string) (string, error)
	Redact    func(string) string
	Log       *slog.Logger
}

// Workspaces implements [toolward.Keeper]. Its methods may be called from any goroutine.
type Workspaces struct {
	options Options

	mu    sync.Mutex
	store *undo.Store
	open  map[string]*begun // calls that have begun and not ended, by ID
	fits  map[string]fit    // what is known of workspaces
	ends  sync.WaitGroup    // of calls in the background
	done  chan struct{}     // closed by Close
}

// begun is a call between Begin and End.
type begun struct {
	workspace  string
	background chan struct{} // closed when nobody waits any more for what the call left running; nil as long as the call runs
}

// Open opens the store. Without one it keeps nothing, so that calls are refused, and tries again with the next.
func Open(ctx context.Context, o Options) *Workspaces {
	w := &Workspaces{options: o, open: map[string]*begun{}, fits: map[string]fit{}, done: make(chan struct{})}
	if _, err := w.opened(ctx); err != nil {
		o.Log.Error("undo_unavailable: calls that write to a workspace are refused", "err", err)
	}
	return w
}

// opened is the store.
func (w *Workspaces) opened(ctx context.Context) (*undo.Store, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store != nil {
		return w.store, nil
	}
	select {
	case <-w.done:
		return nil, errors.New("the gateway ends")
	default:
	}
	store, err := undo.Open(ctx, w.options.Dir, w.options.Limits)
	if err != nil {
		return nil, err
	}
	for _, problem := range store.Problems() {
		w.options.Log.Error("a call was not taken back as a whole: look at the workspace", "err", problem)
	}
	w.store = store
	return store, nil
}

// writes reports whether a call may write to its caller's workspace.
func writes(r *toolward.Request) bool {
	f := &r.Facts
	return f.Mutates && r.Call.Caller.Workspace != "" && (f.Analysis == nil || !f.Analysis.Reads)
}

// Begin implements [toolward.Keeper].
func (w *Workspaces) Begin(ctx context.Context, r *toolward.Request) (id string, err error) {
	if !writes(r) || w.whole(ctx, r) != "" {
		return "", nil
	}
	workspace, err := w.options.Workspace(r.Call.Caller.Workspace)
	if err != nil {
		return "", err
	}
	store, err := w.opened(ctx)
	if err != nil {
		return "", err
	}
	w.endBackground(ctx, workspace)
	id = NewID()
	w.begin(id, workspace)
	err = store.Begin(ctx, undo.Call{
		ID: id, Workspace: []byte(workspace), Agent: r.Call.Caller.Agent, Session: string(r.Call.Session), Tool: r.Tool.Name,
		Text: w.textOf(r), At: time.Now(),
	})
	if err != nil {
		w.ended(id)
		if w.remember(workspace, err) != "" {
			return "", fmt.Errorf("%w; the same call again asks a person", err)
		}
		return "", err
	}
	return id, nil
}

// NewID is an ID that nobody has, short enough to be typed.
func NewID() string { return strings.ToLower(rand.Text()[:10]) }

// textOf says what a call does.
func (w *Workspaces) textOf(r *toolward.Request) string {
	const most = 300
	text := r.Facts.Command
	if text == "" {
		var paths []string
		for _, t := range r.Facts.Targets {
			paths = append(paths, t.Path)
		}
		text = strings.Join(paths, ", ")
	}
	if w.options.Redact != nil {
		text = w.options.Redact(text)
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

func (w *Workspaces) begin(id, workspace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[id] = &begun{workspace: workspace}
}

// ended takes a call out of those that have not ended; false if it is out already.
func (w *Workspaces) ended(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, was := w.open[id]
	delete(w.open, id)
	return was
}

// endPatience bounds how long a workspace is read after a call.
const endPatience = 2 * time.Minute

// End implements [toolward.Keeper]. What goes on in the background ends for us when the next call of its workspace begins, at the
// latest: what that one changes must not count as its.
func (w *Workspaces) End(ctx context.Context, id string, running <-chan struct{}) {
	if running == nil || isClosed(running) {
		w.end(ctx, id)
		return
	}
	w.mu.Lock()
	call := w.open[id]
	if call == nil {
		w.mu.Unlock()
		return
	}
	next := make(chan struct{})
	call.background = next
	w.ends.Add(1)
	w.mu.Unlock()
	go func() {
		defer w.ends.Done()
		select {
		case <-running:
			w.end(context.WithoutCancel(ctx), id)
		case <-next:
		case <-w.done:
		}
	}()
}

func isClosed(running <-chan struct{}) bool {
	select {
	case <-running:
		return true
	default:
		return false
	}
}

// endBackground ends what goes on in the background of a workspace.
func (w *Workspaces) endBackground(ctx context.Context, workspace string) {
	var ids []string
	w.mu.Lock()
	for id, call := range w.open {
		if call.background != nil && call.workspace == workspace {
			close(call.background)
			call.background = nil
			ids = append(ids, id)
		}
	}
	w.mu.Unlock()
	for _, id := range ids {
		w.end(ctx, id)
	}
}

// end keeps what the workspace is now. Without that the call stays as one of which nobody knows how it ended.
func (w *Workspaces) end(ctx context.Context, id string) {
	if !w.ended(id) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	store, err := w.opened(ctx)
	if err == nil {
		err = store.End(ctx, id)
	}
	if err != nil && !errors.Is(err, undo.ErrGone) && !errors.Is(err, fs.ErrNotExist) {
		w.options.Log.Error("what a call changed could not be kept; nobody knows how it ended", "undo", id, "err", err)
	}
}

// Drop implements [toolward.Keeper].
func (w *Workspaces) Drop(id string) {
	w.ended(id)
	if store, err := w.opened(context.Background()); err == nil {
		if err := store.Drop(id); err != nil {
			w.options.Log.Error("a call that did not run could not be forgotten", "undo", id, "err", err)
		}
	}
}

// collectEvery is how often what is too old goes.
const collectEvery = time.Hour

// Collect lets go of what is too old or too much, now and from time to time, until the context ends.
func (w *Workspaces) Collect(ctx context.Context) {
	ticker := time.NewTicker(collectEvery)
	defer ticker.Stop()
	for {
		store, err := w.opened(ctx)
		if err == nil {
			err = errors.Join(store.Collect(ctx, time.Now()), store.Remember())
		}
		if err != nil && ctx.Err() == nil {
			w.options.Log.Error("what is kept of workspaces could not be tidied", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Close gives the store free. Of calls that still run nobody will know how they ended.
func (w *Workspaces) Close() error {
	w.mu.Lock()
	select {
	case <-w.done:
	default:
		close(w.done)
	}
	w.mu.Unlock()
	w.ends.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store == nil {
		return nil
	}
	err := w.store.Close()
	w.store = nil
	return err
}
