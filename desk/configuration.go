package desk

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/toolward/toolward/audit"
)

// Configuration is the configuration file as people meet it here.
type Configuration interface {
	// PendingChange returns the changed file that waits for a person; false if none does.
	PendingChange() (ConfigChange, bool)
	// ApplyPending puts the waiting change in force if it still has this revision.
	ApplyPending(revision string) error
}

// ConfigChange is a changed configuration file that is sound and waits for a person.
type ConfigChange struct {
	File     string `json:"file"`
	Revision string `json:"revision"` // names exactly this content
	Diff     string `json:"diff"`     // unified
	// Changes are the settings that differ, in words: what counts in the end, whatever the file looks like.
	Changes []string `json:"changes"`
}

// PendingChange is the changed configuration that waits, which the visitor is shown now; false if none does.
func (d *Desk) PendingChange(v Visitor) (ConfigChange, bool, error) {
	if err := d.may(v, SeeConfiguration, d.config != nil); err != nil {
		return ConfigChange{}, false, err
	}
	change, waits := d.config.PendingChange()
	if waits {
		d.shown.mark(v.By.SignIn(), change.Revision)
	}
	return change, waits, nil
}

// ApplyChange puts the waiting configuration in force, if it is the one that the visitor was shown.
func (d *Desk) ApplyChange(ctx context.Context, v Visitor, revision string) error {
	if err := d.may(v, ApplyConfiguration, d.config != nil); err != nil {
		return err
	}
	if err := d.shown.check(v.By.SignIn(), revision); err != nil {
		return err
	}
	change, waits := d.config.PendingChange()
	if !waits || change.Revision != revision {
		return &Error{Changed, errors.New("the configuration file has changed since it was shown: look at the difference again")}
	}
	data := v.signed(map[string]any{"event": "approved", "hash": revision, "diff": change.Diff})
	if err := d.record(ctx, audit.Event{Type: audit.TypeConfig, Data: data}); err != nil {
		return err
	}
	if err := d.config.ApplyPending(revision); err != nil {
		d.note(ctx, audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "refused", "hash": revision, "error": err.Error()}})
		return &Error{Failed, err}
	}
	return nil
}

// shownChanges remembers which change each sign-in was shown, and when. A change can only be applied by somebody who
// has seen exactly this one for half a second: a click must not hit a card that has just appeared, nor apply a file
// that an agent changed again after it was read.
type shownChanges struct {
	mu   sync.Mutex
	seen map[string]shownChange // by sign-in
}

type shownChange struct {
	revision string
	at       time.Time
}

// leastShown is how long something must have been on the screen before an answer to it counts.
const leastShown = 500 * time.Millisecond

func (c *shownChanges) mark(signIn, revision string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[signIn].revision == revision {
		return
	}
	if c.seen == nil || len(c.seen) >= 1000 {
		c.seen = map[string]shownChange{}
	}
	c.seen[signIn] = shownChange{revision, time.Now()}
}

func (c *shownChanges) check(signIn, revision string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, ok := c.seen[signIn]
	switch {
	case !ok || revision == "" || seen.revision != revision:
		return &Error{NotShown, errors.New("this change was not shown here")}
	case time.Since(seen.at) < leastShown:
		return &Error{TooSoon, errors.New("answered within half a second of being shown: read it first, then answer again")}
	}
	return nil
}
