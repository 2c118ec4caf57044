package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// journal is what is being done to a workspace, on disk before it is done.
type journal struct {
	Call      string `json:"call"` // the ID of the call that takes back
	Workspace []byte `json:"workspace"`
	Staging   string `json:"staging"` // name of the directory in which files wait
	Ready     bool   `json:"ready"`   // all of them wait: from here on the steps are carried out, after a crash too
	Steps     []step `json:"steps,omitempty"`
}

func (s *Store) journalDir() string { return filepath.Join(s.dir, "journals") }

func (s *Store) journalPath(c *Call) string {
	return filepath.Join(s.journalDir(), fmt.Sprintf("%012d.json", c.Number))
}

// carryOut does what a plan says, all of it or, unless it has begun to change the workspace, nothing.
func (s *Store) carryOut(p *plan, as *Call, read *folder) (begun bool, err error) {
	more := lockedParents(read, p.steps)
	j := &journal{Call: as.ID, Workspace: as.Workspace, Staging: newStagingName(), Steps: append(p.steps, more...)}
	w, err := openWorkspace(string(as.Workspace))
	if err != nil {
		return false, err
	}
	defer w.close()
	at := s.journalPath(as)
	if err := writeWhole(at, &journal{Call: j.Call, Workspace: j.Workspace, Staging: j.Staging}); err != nil {
		return false, err
	}
	if err := s.stage(w, j, read); err != nil {
		return false, errors.Join(err, w.removeStaging(), os.Remove(at))
	}
	j.Ready = true
	if err := writeWhole(at, j); err != nil {
		return false, errors.Join(err, w.removeStaging(), os.Remove(at))
	}
	if err := w.apply(j.Steps); err != nil {
		return true, fmt.Errorf("%w; the rest is done when the gateway starts next", err)
	}
	return true, errors.Join(w.removeStaging(), os.Remove(at))
}

func (s *Store) stage(w *workspace, j *journal, read *folder) error {
	if err := w.openStaging(j.Staging); err != nil {
		return err
	}
	if err := w.stage(s.objects, j.Steps); err != nil {
		return err
	}
	return w.unchanged(j.Steps, read)
}

// Problems is what [Open] could not finish. A person should look at these workspaces.
func (s *Store) Problems() []error { return s.problems }

// finishJournals finishes what a process was doing that was killed.
func (s *Store) finishJournals(ctx context.Context) error {
	names, err := filesOf(s.journalDir())
	if err != nil {
		return err
	}
	for _, name := range names {
		var j journal
		if err := readWhole(name, &j); err != nil {
			return err
		}
		if err := s.finish(ctx, &j); err != nil {
			// Somebody has changed the workspace since. That must not keep the gateway from starting.
			s.problems = append(s.problems, fmt.Errorf("a call was being taken back in %q and could not be finished; what is missing waits in its directory %s: %w", j.Workspace, j.Staging, err))
			if err := os.Rename(name, name+stuck); err != nil {
				return err
			}
			continue
		}
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) finish(ctx context.Context, j *journal) error {
	w, err := openWorkspace(string(j.Workspace))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody needs it any more
	}
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.openStaging(j.Staging); err != nil {
		return err
	}
	if j.Ready {
		if err := w.apply(j.Steps); err != nil {
			return err
		}
	}
	if err := w.removeStaging(); err != nil {
		return err
	}
	c, ok := s.Call(j.Call)
	if !ok {
		return nil
	}
	if !j.Ready {
		return s.end(c.ID, c.Before)
	}
	after, err := s.keep(ctx, string(j.Workspace), s.tree(string(j.Workspace)))
	if err != nil {
		return err
	}
	return s.end(c.ID, after)
}
