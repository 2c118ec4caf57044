package gateway

import (
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
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

// TestAuthorityIsHeldAgainstTheRecord: while no gateway runs a process of the same user puts back what was accepted once, takes it
// away, or puts a home of its own in its place. Nothing of it counts, people are told, and a sign-in brings nothing back.
func TestAuthorityIsHeldAgainstTheRecord(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, home string, older []byte) error{
		"older file": func(_ *testing.T, home string, older []byte) error {
			return os.WriteFile(filepath.Join(home, authority.FileName), older, 0o600)
		},
		"no file": func(_ *testing.T, home string, _ []byte) error {
			return os.Remove(filepath.Join(home, authority.FileName))
		},
		"a key of theirs, and their passphrase": func(t *testing.T, home string, _ []byte) error {
			return theirs(t, home, authority.FileName)
		},
		"the record without it": func(t *testing.T, home string, _ []byte) error {
			return errors.Join(changed(t, home, `DELETE FROM audit`, `DELETE FROM audit_seals`), os.Remove(filepath.Join(home, "audit.key")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := optionsFor(shortHome(t), "127.0.0.1:0")
			options.Log = slog.New(slog.DiscardHandler)
			g := reopened(t, nil, options)
			if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
				t.Fatal(err)
			}
			if err := g.allowAlways(t.Context(), "coder", []toolward.CommandEntry{{Pattern: "/usr/bin/id"}}); err != nil {
				t.Fatal(err)
			}
			older, err := os.ReadFile(filepath.Join(g.home, authority.FileName))
			if err != nil {
				t.Fatal(err)
			}
			if err := g.allowAlways(t.Context(), "coder", []toolward.CommandEntry{{Pattern: "/usr/bin/true"}}); err != nil {
				t.Fatal(err)
			}
			if g = reopened(t, g, options); !g.covers(t, "/usr/bin/id -u") || len(g.notices()) > 0 {
				t.Fatalf("before: %q", g.notices())
			}
			g.Close()
			if err := spoil(t, options.Home, older); err != nil {
				t.Fatal(err)
			}
			for range 2 { // what is wrong stays wrong
				g = reopened(t, nil, options)
				if g.covers(t, "/usr/bin/id -u") || len(g.notices()) == 0 {
					t.Errorf("counts, and people are told %q", g.notices())
				}
				records, err := g.audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig, Text: "authority cannot be trusted"})
				if err != nil || len(records) == 0 {
					t.Errorf("the record: %v %v", records, err)
				}
				g.Close()
			}
			g = reopened(t, nil, options)
			defer func() { g.Close() }()
			_, err = g.people.SignInForeground(t.Context(), "velvet anchor seven")
			if err == nil {
				t.Error("a passphrase of somebody else signs in")
			}
			_, err = g.people.SignInForeground(t.Context(), "correct horse battery")
			if foreign := strings.Contains(name, "theirs"); foreign == (err == nil) {
				t.Fatalf("the person's passphrase: %v", err)
			}
			if g.covers(t, "/usr/bin/id -u") || len(g.notices()) == 0 {
				t.Errorf("counts after a sign-in, and people are told %q", g.notices())
			}
			if err != nil {
				return
			}
			if err := os.WriteFile(filepath.Join(options.Home, authority.FileName), older, 0o600); err != nil {
				t.Fatal(err)
			}
			if g = reopened(t, g, options); g.covers(t, "/usr/bin/id -u") {
				t.Error("put back after the sign-in it counts")
			}
		})
	}
}

// TestRememberedConfigurationIsSigned is M1: a process of the same user that writes a configuration, and takes away or exchanges
// what the state remembers of the last one, puts nothing in force: the difference waits, and people are told.
func TestRememberedConfigurationIsSigned(t *testing.T) {
	const confirmed, forged = `{"tools": {"deny": ["exec"]}}`, `{"config": {"autoApply": true}}`
	for name, spoil := range map[string]func(t *testing.T, home string) error{
		"removed": func(t *testing.T, home string) error { return changed(t, home, `DELETE FROM configuration`) },
		"exchanged": func(t *testing.T, home string) error {
			return changed(t, home, `UPDATE configuration SET source = '`+forged+`'`)
		},
		"damaged": func(t *testing.T, home string) error {
			return changed(t, home, `UPDATE configuration SET source = '{"no": 1}'`)
		},
		"another": func(t *testing.T, home string) error {
			return changed(t, home, `UPDATE configuration SET source = '{}'`)
		},
		"with what was signed": func(t *testing.T, home string) error {
			return errors.Join(changed(t, home, `DELETE FROM configuration`), os.Remove(filepath.Join(home, authority.FileName)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := optionsFor(shortHome(t), "127.0.0.1:0")
			options.Log = slog.New(slog.DiscardHandler)
			write := func(text string) {
				if err := os.WriteFile(filepath.Join(options.Home, config.FileName), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(confirmed)
			g := reopened(t, nil, options)
			if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
				t.Fatal(err)
			}
			if g = reopened(t, g, options); len(g.notices()) > 0 {
				t.Fatalf("before: %q", g.notices())
			}
			g.Close()
			if err := spoil(t, options.Home); err != nil {
				t.Fatal(err)
			}
			write(forged)
			g = reopened(t, nil, options)
			defer func() { g.Close() }()
			inForce := confirmed
			if strings.HasPrefix(name, "with") {
				inForce = "{}"
			}
			if got := string(g.config.Current().Source); got != inForce || g.config.Pending() == nil || len(g.notices()) != 1 {
				t.Errorf("in force is %s, waiting %v, and people are told %q", got, g.config.Pending(), g.notices())
			}
			// What a signed-in person then confirms counts, and is signed.
			change, _ := g.PendingChange()
			if err := g.applied(t, change.Revision); err != nil {
				t.Fatal(err)
			}
			if g = reopened(t, g, options); string(g.config.Current().Source) != forged || g.config.Pending() != nil || len(g.notices()) > 0 {
				t.Errorf("after a person confirmed: %s, %q", g.config.Current().Source, g.notices())
			}
		})
	}
}

// TestConfigurationFromBeforeTheKey: what was in force before there was a key is signed with the first passphrase; what a person
// put in force while the key was locked, with the next.
func TestConfigurationFromBeforeTheKey(t *testing.T) {
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	g := reopened(t, nil, options)
	defer func() { g.Close() }()
	signed := func() []byte { return authority.Open(g.home, nil).About(config.FileName).Accepted() }
	if signed() != nil {
		t.Fatal("signed without a key")
	}
	if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil || signed() == nil {
		t.Fatalf("%v %q", err, signed())
	}
	g = reopened(t, g, options)
	const source = `{"tools": {"deny": ["exec"]}}`
	if err := os.WriteFile(g.configPath(), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	g.config.Reload()
	if err := g.config.ApplyPending(g.config.Pending().Hash); !errors.Is(err, config.ErrNotKept) || !errors.Is(err, authority.ErrLocked) {
		t.Errorf("while locked: %v", err)
	}
	if string(g.config.Current().Source) != source || string(signed()) == source {
		t.Errorf("%s", signed())
	}
	if _, err := g.people.SignInForeground(t.Context(), "correct horse battery"); err != nil || string(signed()) != source {
		t.Errorf("%v %s", err, signed())
	}
	if g = reopened(t, g, options); len(g.notices()) > 0 || g.config.Pending() != nil {
		t.Errorf("%q", g.notices())
	}
}

// changed changes the state as whoever can write it.
func changed(t *testing.T, home string, statements ...string) error {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(home, "state.db"))
	for _, s := range statements {
		if err == nil {
			_, err = db.ExecContext(t.Context(), s)
		}
	}
	return errors.Join(err, db.Close())
}

// theirs puts a file of a home that somebody else made, and their stored passphrase, in place of a home's own.
func theirs(t *testing.T, home, file string) error {
	t.Helper()
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	g := reopened(t, nil, options)
	err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "velvet anchor seven")
	g.Close()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(options.Home, file))
	if err == nil {
		err = os.WriteFile(filepath.Join(home, file), content, 0o600)
	}
	return errors.Join(err, changed(t, home, `ATTACH '`+filepath.Join(options.Home, "state.db")+`' AS other`, `DELETE FROM people`,
		`INSERT INTO people SELECT * FROM other.people`))
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

// TestAnswersEndWithWhatGaveThem: a person answered "always" with a paired device or a passkey that is taken away from them later. The
// entry waits for a person again, also if a program took the mark of who gave it out of the file.
func TestAnswersEndWithWhatGaveThem(t *testing.T) {
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	g := reopened(t, nil, options)
	defer func() { g.Close() }()
	if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	for program, means := range map[string]string{"/usr/bin/id": "device:d1", "/usr/bin/jq": "device:d2", "/usr/bin/wc": ""} {
		if err := g.allowAlways(t.Context(), "coder", []toolward.CommandEntry{{Pattern: program, GivenBy: means}}); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(g.commands.Path())
	if err != nil || !strings.Contains(string(content), `"givenBy": "device:d1"`) {
		t.Fatalf("%s %v", content, err)
	}
	// Without the marks, and without one entry, so that what is accepted becomes less.
	file := g.commands.Current().File
	for _, a := range file.Agents {
		a.Allowlist = slices.DeleteFunc(a.Allowlist, func(e allowlist.Entry) bool { return e.Pattern == "/usr/bin/jq" })
		for i := range a.Allowlist {
			a.Allowlist[i].GivenBy = ""
		}
	}
	if content, err = file.Encode(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.commands.Path(), content, 0o600); err != nil {
		t.Fatal(err)
	}
	g = reopened(t, g, options)
	if _, err := g.people.SignInForeground(t.Context(), "correct horse battery"); err != nil || !g.covers(t, "/usr/bin/id -u") || !g.covers(t, "/usr/bin/wc -l") {
		t.Fatalf("before: %v", err)
	}
	if n, err := g.commands.Withdraw("device:d1"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for range 2 {
		change, waits := g.PendingChange()
		if g.covers(t, "/usr/bin/id -u") || !g.covers(t, "/usr/bin/wc -l") || !waits || !strings.Contains(change.Diff, "/usr/bin/id") {
			t.Errorf("id %v, wc %v, waits %v: %s", g.covers(t, "/usr/bin/id -u"), g.covers(t, "/usr/bin/wc -l"), waits, change.Diff)
		}
		g = reopened(t, g, options)
	}
}
