package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/desk"
)

// authorityNews keeps what happens to the key of the home.
func (g *Gateway) authorityNews(e authority.Event) {
	if e.Err != nil {
		g.log.Error(e.Name, "err", e.Err)
	}
	// Not queued with other events: one that were left out would let an older file be put back unseen.
	event := e.Record()
	if _, err := g.audit.Append(context.Background(), event); err != nil {
		g.log.Error("the record does not know what became of the key of this home", "err", err)
	}
	g.events.counted(event)
}

// authorityAtStart tells what is signed, and what does not count of it.
func (g *Gateway) authorityAtStart() {
	g.anchorAuthority()
	g.rememberedAtStart()
	g.lookAtAllowlist()
}

// anchorAuthority has the record name the key of the home, and how often it has signed.
func (g *Gateway) anchorAuthority() {
	if now, there := g.authority.Now(); there {
		g.authorityNews(now)
	}
}

// rowsAtStart has the record tell which rows were written, changed or taken away without the key.
func (g *Gateway) rowsAtStart() {
	for _, found := range g.authority.Findings() {
		g.authorityNews(authority.Event{Name: "rows of authority altered", Key: g.authority.Fingerprint(), Err: errors.New(found)})
	}
}

// followAllowlist tells of entries that wait whenever exec-approvals.json changes.
func (g *Gateway) followAllowlist(ctx context.Context) {
	if err := config.Follow(ctx, g.commands.Path(), g.lookAtAllowlist); err != nil {
		g.log.Error("exec-approvals.json is not watched: what waits in it is seen when somebody looks", "err", err)
	}
}

// mostToldChanges is how many changes one record lists: whoever writes the file may write thousands.
const mostToldChanges = 100

// lookAtAllowlist tells once of each content of exec-approvals.json that somebody wrote who is not known to be a person.
func (g *Gateway) lookAtAllowlist() {
	waiting, err := g.commands.Waiting()
	g.logError("look what waits in exec-approvals.json", err)
	if waiting == nil {
		g.waiting.Store(nil)
		return
	}
	if last := g.waiting.Swap(&waiting.Revision); last != nil && *last == waiting.Revision {
		return
	}
	told := waiting.Changes[:min(len(waiting.Changes), mostToldChanges)]
	g.log.Warn("exec-approvals.json allows more than a person has accepted; it waits for you in the console, and does not count until then",
		"file", g.commands.Path(), "changes", told)
	g.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{
		"event": "exec-approvals proposed", "hash": waiting.Revision, "changes": told,
	}})
}

// PendingChange is the changed file of authority that waits for a person: the configuration, then exec-approvals.json.
func (g *Gateway) PendingChange() (desk.ConfigChange, bool) {
	pending := g.config.Pending()
	if pending == nil {
		return g.waitingEntries()
	}
	change := desk.ConfigChange{File: pending.Name, Revision: pending.Hash, Diff: g.config.Difference(pending), Changes: []string{}}
	changes, err := config.Changes(g.config.Current(), pending)
	g.logError("put a changed configuration into words", err) // the difference still shows it
	for _, one := range changes {
		change.Changes = append(change.Changes, one.String())
	}
	return change, true
}

// allowAlways adds to what an agent may run without a question. While the key is locked an answer counts once: one from a chat,
// say, whose device nobody has seen type the passphrase.
func (g *Gateway) allowAlways(ctx context.Context, agent string, entries []toolward.CommandEntry) error {
	err := g.exec.Allow(ctx, agent, entries)
	if errors.Is(err, authority.ErrLocked) {
		g.log.Warn("an answer of \"always\" counts once", "agent", agent, "why", err)
		return fmt.Errorf("%w: %w", approval.ErrOnlyOnce, err)
	}
	return err
}

// waitingEntries is what of exec-approvals.json waits for a person.
func (g *Gateway) waitingEntries() (desk.ConfigChange, bool) {
	waiting, err := g.commands.Waiting()
	g.logError("look what waits in exec-approvals.json", err)
	if waiting == nil {
		return desk.ConfigChange{}, false
	}
	return desk.ConfigChange{File: g.commands.Path(), Revision: waiting.Revision, Diff: waiting.Diff, Changes: waiting.Changes}, true
}

// ApplyPending lets the change that waits count if it is still the one of this revision. The desk has recorded who said so.
func (g *Gateway) ApplyPending(revision string) error {
	if pending := g.config.Pending(); pending != nil && pending.Hash == revision {
		return g.config.ApplyPending(revision)
	}
	if err := g.commands.Accept(context.Background(), revision); err != nil {
		return err
	}
	g.waiting.Store(nil)
	g.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "exec-approvals in force", "hash": revision}})
	return nil
}

// Accepted is what people accepted of the exec-approvals.json of a home, for whoever only looks.
func Accepted(home string) allowlist.Ledger {
	return authority.Open(home, nil).About(allowlist.FileName)
}
