package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/authority/signed"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/store"
)

// TestDeep looks into a real database: a record that was changed, and remembered answers of several widths.
func TestDeep(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	path := func(prefix string) approval.Match { return approval.Match{Kind: toolward.GrantPath, Prefix: prefix} }
	for _, test := range []struct {
		name  string
		grant *approval.Grant
		spoil string // SQL
		want  []string
	}{
		{"sound", nil, "", []string{}},
		{"changed record", nil, `UPDATE audit SET tool = 'other'`, []string{"critical teg.audit_gap"}},
		{"removed record", nil, `DELETE FROM audit WHERE seq = 1`, []string{"critical teg.audit_gap"}},
		{"everything removed", nil, `DELETE FROM audit; DELETE FROM audit_seals; DELETE FROM audit_times`, []string{"critical teg.audit_gap"}},
		{"all of the workspace", &approval.Grant{Scope: approval.ScopeSession, Match: path("/srv/shop/"), ExpiresMs: now.Add(day).UnixMilli()}, "", []string{"warn teg.wide_grant"}},
		{"above the workspace", &approval.Grant{Scope: approval.ScopeSession, Match: path("/srv"), ExpiresMs: now.Add(day).UnixMilli()}, "", []string{"warn teg.wide_grant"}},
		{"a directory in it", &approval.Grant{Scope: approval.ScopeAgent, Match: path("/srv/shop/docs"), ExpiresMs: now.Add(day).UnixMilli()}, "", []string{}},
		{"half a year", &approval.Grant{Scope: approval.ScopeAgent, Match: path("/srv/shop/docs"), ExpiresMs: now.Add(180 * day).UnixMilli()}, "", []string{"warn teg.wide_grant"}},
		{"half a year for one session", &approval.Grant{Scope: approval.ScopeSession, Match: path("/srv/shop/docs"), ExpiresMs: now.Add(180 * day).UnixMilli()}, "", []string{}},
		{"over", &approval.Grant{Scope: approval.ScopeAgent, Match: path("/srv/shop"), ExpiresMs: now.Add(-day).UnixMilli()}, "", []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := home(t, "{}")
			o := options(t, dir)
			o.Deep, o.Now = true, now
			record(t, dir, test.grant, test.spoil)
			if diff := cmp.Diff(test.want, found(examine(t, o))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			o.Deep = false
			if got := found(examine(t, o)); len(got) > 0 {
				t.Errorf("without Deep: %q", got)
			}
		})
	}
}

// The key of a record without the record: somebody deleted the database.
func TestDeepWithoutADatabase(t *testing.T) {
	dir := home(t, "{}")
	o := options(t, dir)
	o.Deep = true
	if got := found(examine(t, o)); len(got) > 0 {
		t.Errorf("before the first start: %q", got)
	}
	if _, _, err := audit.LoadKey(dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"critical teg.audit_gap"}, found(examine(t, o))); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// TestAuthorityAgainstTheRecord: an older authority.json, or none, is found by what the record knows of it.
func TestAuthorityAgainstTheRecord(t *testing.T) {
	for name, spoil := range map[string]func(path string, older []byte) error{
		"":           func(string, []byte) error { return nil },
		"older":      func(path string, older []byte) error { return os.WriteFile(path, older, 0o600) },
		"gone":       func(path string, _ []byte) error { return os.Remove(path) },
		"exchanged":  func(path string, _ []byte) error { return otherKey(path) },
		"not a file": func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Symlink("elsewhere", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := home(t, "{}")
			var events []audit.Event
			keys := authority.Open(dir, func(e authority.Event) { events = append(events, e.Record()) })
			if err := keys.Unlock("maple tractor lantern"); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, authority.FileName)
			older, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := keys.About("list").Accept(t.Context(), []byte("jq")); err != nil {
				t.Fatal(err)
			}
			record(t, dir, nil, "", events...)
			if err := spoil(path, older); err != nil {
				t.Fatal(err)
			}
			want := []string{"critical authority.damaged"}
			if name == "" {
				want = []string{}
			}
			o := options(t, dir)
			o.Deep = true
			if diff := cmp.Diff(want, found(examine(t, o))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRememberedConfigurationAgainstWhatIsSigned: the state has lost or exchanged the configuration that was last in force.
func TestRememberedConfigurationAgainstWhatIsSigned(t *testing.T) {
	for spoil, want := range map[string][]string{
		`INSERT INTO configuration (id, source, applied_ms) VALUES (1, CAST('{}' AS BLOB), 1)`:                {},
		`INSERT INTO configuration (id, source, applied_ms) VALUES (1, '{"config": {"autoApply": true}}', 1)`: {"critical config.remembered_altered"},
		``: {"critical config.remembered_altered"},
	} {
		dir := home(t, "{}")
		var events []audit.Event
		keys := authority.Open(dir, func(e authority.Event) { events = append(events, e.Record()) })
		if err := keys.Unlock("maple tractor lantern"); err != nil {
			t.Fatal(err)
		}
		if err := keys.About(config.FileName).Accept(t.Context(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		record(t, dir, nil, spoil, events...)
		o := options(t, dir)
		o.Deep = true
		if diff := cmp.Diff(want, found(examine(t, o))); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", spoil, diff)
		}
	}
}

func otherKey(path string) error {
	dir := filepath.Dir(path)
	if err := os.Remove(path); err != nil {
		return err
	}
	return authority.Open(dir, nil).Unlock("velvet anchor seven")
}

// record makes a database with a few records and an answer, and changes it as somebody could who can write it.
func record(t *testing.T, dir string, grant *approval.Grant, spoil string, events ...audit.Event) {
	t.Helper()
	db, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key, first, err := audit.LoadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.Context(), rows, audit.Options{Key: key, First: first, Redact: redact.Text, Escape: display.Block})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := log.Decide(t.Context(), &toolward.DecisionRecord{
			Time: time.Now(), Tool: "read", Verdict: toolward.Deny, Call: toolward.Call{Tool: "read", Session: "agent:a:main", Caller: toolward.Caller{Agent: "a"}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range events {
		if _, err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	log.Close()
	err = db.Write(t.Context(), true, func(tx *store.Tx) error {
		if grant != nil {
			grant.ID, grant.Tool, grant.Agent, grant.Workspace = "g1", "write", "a", "/srv/shop"
			body, err := json.Marshal(grant)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(`INSERT INTO grants (id, body, agent, tool, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?, ?)`, grant.ID, string(body), grant.Agent, grant.Tool, 1, grant.ExpiresMs); err != nil {
				return err
			}
		}
		if spoil != "" {
			_, err := tx.Exec(spoil)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// noTokens is a home without tokens.
type noTokens struct{ identity.Store }

func (noTokens) AgentTokens(context.Context) ([]identity.TokenRecord, error) { return nil, nil }

// TestRowsThatNobodySigned: the state has a token that no person made.
func TestRowsThatNobodySigned(t *testing.T) {
	for spoil, want := range map[string][]string{
		``: {},
		`INSERT INTO agent_tokens (id, hash, prefix, name, agent, workspace, owner, created_ms, created_by, expires_ms)
			VALUES ('t2', zeroblob(32), 'tw_forge', '', 'main', '/', 1, 1, 'owner (console)', 0)`: {"critical authority.rows_altered"},
	} {
		dir := home(t, "{}")
		var events []audit.Event
		keys := authority.Open(dir, func(e authority.Event) { events = append(events, e.Record()) })
		if _, err := signed.NewPeople(noTokens{}, keys).AgentTokens(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := keys.Unlock("maple tractor lantern"); err != nil {
			t.Fatal(err)
		}
		record(t, dir, nil, spoil, events...)
		o := options(t, dir)
		o.Deep = true
		if diff := cmp.Diff(want, found(examine(t, o))); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", spoil, diff)
		}
	}
}
