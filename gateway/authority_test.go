package gateway

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
)

func reopened(t *testing.T, g *Gateway, options Options) *Gateway {
	t.Helper()
	if g != nil {
		g.Close()
	}
	next, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func (g *Gateway) covers(t *testing.T, text string) bool {
	t.Helper()
	r := &command.Request{Command: text, Dir: t.TempDir(), Level: toolward.Normal, Getenv: func(string) (string, bool) { return "", false }}
	ruling, err := g.exec.Judge(toolward.Caller{Agent: "coder"}, command.HostParams{}, r)
	if err != nil {
		t.Fatal(err)
	}
	return ruling.Satisfied
}

// TestOthersEntriesWait is C3 of the security review: entries that a program writes into exec-approvals.json run nothing, wait for
// a person who is shown what differs, are in the record, and count from then on, also after a restart.
func TestOthersEntriesWait(t *testing.T) {
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	g := reopened(t, nil, options)
	everything := []byte(`{"version":1,"agents":{"*":{"allowlist":[{"pattern":"*"}]}}}`)
	if err := os.WriteFile(g.commands.Path(), everything, 0o600); err != nil {
		t.Fatal(err)
	}
	g.lookAtAllowlist()
	if g.covers(t, "/usr/bin/id -u") {
		t.Fatal("an entry that nobody accepted runs commands")
	}
	g = reopened(t, g, options)
	change, waits := g.PendingChange()
	if !waits || g.covers(t, "/usr/bin/id -u") || !strings.Contains(change.Diff, `"*"`) || len(change.Changes) != 1 {
		t.Fatalf("%v %+v", waits, change)
	}
	if err := g.applied(t, change.Revision); err != nil || !g.covers(t, "/usr/bin/id -u") {
		t.Fatalf("accepted: %v", err)
	}
	g = reopened(t, g, options)
	if _, waits := g.PendingChange(); waits || !g.covers(t, "/usr/bin/id -u") {
		t.Error("forgotten")
	}
	if err := os.WriteFile(filepath.Join(g.home, authority.FileName), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	g = reopened(t, g, options)
	if g.covers(t, "/usr/bin/id -u") {
		t.Error("counts without a signature")
	}
	g.events.close()
	defer func() { g.events = nil; g.Close() }()
	records, err := g.audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig})
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, r := range records {
		said += r.JSON + "\n"
	}
	for _, want := range []string{`"exec-approvals proposed"`, `"approved"`, `"exec-approvals in force"`, `"authority key made"`, `"subject":"exec-approvals.json"`, "cannot be trusted"} {
		if !strings.Contains(said, want) {
			t.Errorf("the record lacks %s:\n%s", want, said)
		}
	}
}

// TestAnotherPassphraseOpensNothing is M1: who takes the stored passphrase out of the database sets none of their own, and who
// puts another one there does not sign in.
func TestAnotherPassphraseOpensNothing(t *testing.T) {
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	g := reopened(t, nil, options)
	if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	g.Close()
	db, err := sql.Open("sqlite", filepath.Join(options.Home, "state.db"))
	if err == nil {
		_, err = db.Exec(`DELETE FROM people`)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	g = reopened(t, nil, options)
	defer g.Close()
	if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "velvet anchor seven"); !errors.Is(err, authority.ErrForeign) || !g.people.NeedsSetup() {
		t.Errorf("another passphrase: %v", err)
	}
	if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
		t.Errorf("the person's own: %v", err)
	}
}

// TestAlwaysCountsOnceWhileLocked: nobody has typed the passphrase since the start, so nothing can be signed.
func TestAlwaysCountsOnceWhileLocked(t *testing.T) {
	g := reopened(t, nil, optionsFor(shortHome(t), "127.0.0.1:0"))
	defer g.Close()
	entries := []toolward.CommandEntry{{Pattern: "/usr/bin/id"}}
	if err := g.allowAlways(t.Context(), "coder", entries); !errors.Is(err, approval.ErrOnlyOnce) || !errors.Is(err, authority.ErrLocked) || g.covers(t, "/usr/bin/id -u") {
		t.Errorf("locked: %v", err)
	}
	if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	if err := g.allowAlways(t.Context(), "coder", entries); err != nil || !g.covers(t, "/usr/bin/id -u") {
		t.Errorf("signed in: %v", err)
	}
	if list := g.commands.Current().Allowlist("coder"); len(list) != 1 || list[0].Pattern != "/usr/bin/id" {
		t.Errorf("%+v in %s", list, allowlist.FileName)
	}
}
