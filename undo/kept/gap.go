package kept

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/undo"
)

// fit is whether a workspace can be kept.
type fit struct {
	gap string // why not
	at  time.Time
}

// looksAgain is after what time a workspace that could not be kept is looked through again.
const looksAgain = time.Minute

// Gap implements [toolward.Keeper].
func (w *Workspaces) Gap(ctx context.Context, r *toolward.Request) string {
	if !writes(r) {
		return ""
	}
	if gap := w.whole(ctx, r); gap != "" {
		return gap
	}
	return w.losses(ctx, r)
}

// whole says why a workspace is not kept at all. The first look goes through all of its names; later ones go by that, because the
// snapshots themselves find out when it does not fit any more.
func (w *Workspaces) whole(ctx context.Context, r *toolward.Request) string {
	workspace, err := w.options.Workspace(r.Call.Caller.Workspace)
	if err != nil {
		return "nobody could take it back, because no such directory is kept: " + err.Error()
	}
	w.mu.Lock()
	known, ok := w.fits[workspace]
	w.mu.Unlock()
	if ok && (known.gap == "" || time.Since(known.at) < looksAgain) {
		return known.gap
	}
	store, err := w.opened(ctx)
	if err != nil {
		return "" // Begin refuses it
	}
	return w.remember(workspace, store.Fits(ctx, workspace))
}

// maxFits bounds what is known of workspaces.
const maxFits = 1000

// remember notes whether a workspace can be kept. An error that may pass is no gap: Begin meets it again, and refuses.
func (w *Workspaces) remember(workspace string, err error) (gap string) {
	switch {
	case errors.Is(err, undo.ErrTooMany):
		gap = "nobody could take it back: the workspace has more files than are kept"
	case errors.Is(err, undo.ErrTooMuch):
		gap = "nobody could take it back: the workspace is larger than all that is kept"
	case err != nil:
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.fits) >= maxFits {
		clear(w.fits)
	}
	w.fits[workspace] = fit{gap, time.Now()}
	return gap
}

// Bounds of one look at what a call takes.
const (
	lossPatience = 2 * time.Second
	mostNamed    = 3 // people are told by name
)

// losses says what of a call nobody could bring back although the workspace is kept: what no snapshot holds of that which it would
// delete or write over. It is judged by what lies there now. What cannot be looked through in time is lost, for all that is known.
func (w *Workspaces) losses(ctx context.Context, r *toolward.Request) string {
	takes := takesOf(r)
	if len(takes) == 0 {
		return ""
	}
	workspace, err := w.options.Workspace(r.Call.Caller.Workspace)
	if err != nil {
		return ""
	}
	store, err := w.opened(ctx)
	if err != nil {
		return "" // Begin refuses it
	}
	ctx, cancel := context.WithTimeout(ctx, lossPatience)
	defer cancel()
	var lost []string
	for i := range takes {
		for _, text := range takenLosses(ctx, store, workspace, &takes[i]) {
			if !slices.Contains(lost, text) {
				lost = append(lost, text)
			}
		}
		if len(lost) > mostNamed {
			break
		}
	}
	if len(lost) == 0 {
		return ""
	}
	more := ""
	if len(lost) > mostNamed {
		lost, more = lost[:mostNamed], "; and more"
	}
	text := "nobody could bring back " + strings.Join(lost, "; ") + more
	if w.options.Redact != nil {
		text = w.options.Redact(text)
	}
	return text
}

// takesOf is what a call takes: what its tool says, and of files on this machine its targets.
func takesOf(r *toolward.Request) []toolward.Take {
	takes := slices.Clip(r.Facts.Takes)
	if r.Facts.Sandbox != "" {
		return takes
	}
	for _, t := range r.Facts.Targets {
		if t.Op != toolward.OpRead && t.Zone != toolward.ZoneOutside {
			takes = append(takes, toolward.Take{Path: t.Path, Real: t.Real})
		}
	}
	return takes
}

// takenLosses are the losses of one path, for people.
func takenLosses(ctx context.Context, store *undo.Store, workspace string, t *toolward.Take) (lost []string) {
	if t.Real == "" {
		return []string{plainPath(t.Path) + ": nobody can tell what that is"}
	}
	within, err := filepath.Rel(workspace, t.Real)
	if err != nil || !filepath.IsLocal(within) {
		return outsideLoss(t)
	}
	losses, err := store.Losses(ctx, workspace, within, t.Tree)
	if err != nil {
		return []string{plainPath(t.Path) + ": it holds more than can be looked through"}
	}
	for _, l := range losses {
		switch {
		case t.Name != "" && !named(t.Name, within, l.Path), t.Git != "" && !gitTakes(workspace, l.Path, t.Git):
		case l.Size > 0:
			lost = append(lost, plainPath(l.Path)+": "+display.Bytes(l.Size)+", more than is kept")
		default:
			lost = append(lost, plainPath(l.Path)+": "+l.Why)
		}
	}
	return lost
}

// outsideLoss is that of a path that is not in the workspace.
func outsideLoss(t *toolward.Take) []string {
	info, err := os.Lstat(t.Real)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() && !t.Tree {
		return nil
	}
	return []string{plainPath(t.Path) + ": it is not in the workspace, and only that is kept"}
}

// named reports whether a path, or a directory above it that lies below another, has a name that matches. A pattern that nobody
// understands matches all.
func named(pattern, below, p string) bool {
	rest := strings.TrimPrefix(p, path.Clean(below)+"/")
	return slices.ContainsFunc(strings.Split(rest, "/"), func(name string) bool {
		ok, err := path.Match(pattern, name)
		return ok || err != nil
	})
}
