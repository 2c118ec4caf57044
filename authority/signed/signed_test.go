package signed_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/authority/signed"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/store"
)

const passphrase = "correct horse battery"

// household is a home in which a person has let in a token, a device and a passkey, and remembered an answer.
type household struct {
	db       *store.DB
	keys     *authority.Keys
	people   *signed.People
	passkeys *signed.Passkeys
	devices  *signed.Devices
	answers  *signed.Answers

	tokens []identity.TokenRecord // that count since the start
	have   []string               // all that does
}

// started is the home as a gateway finds it.
func started(t *testing.T, home string) *household {
	t.Helper()
	db, err := store.Open(t.Context(), home, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := authority.Open(home, nil)
	h := &household{
		db: db, keys: keys, people: signed.NewPeople(store.NewDevices(db), keys), passkeys: signed.NewPasskeys(store.NewPasskeys(db), keys),
		devices: signed.NewDevices(store.NewPaired(db), keys), answers: signed.NewAnswers(store.NewApprovals(db), keys),
	}
	var errs [4]error
	var keysThere []identity.PasskeyRecord
	var devices []identity.PairedDevice
	var grants []*approval.Grant
	h.tokens, errs[0] = h.people.AgentTokens(t.Context())
	devices, errs[1] = h.devices.PairedDevices(t.Context())
	keysThere, errs[2] = h.passkeys.Passkeys(t.Context())
	grants, errs[3] = h.answers.Grants(t.Context(), time.Now().UnixMilli())
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for _, one := range h.tokens {
		if one.Revoked.IsZero() {
			h.have = append(h.have, "token of "+one.Agent)
		}
	}
	for _, one := range devices {
		if len(one.Vouched) > 0 {
			h.have = append(h.have, "device with "+strings.Join(one.Vouched, ","))
		}
	}
	for _, one := range keysThere {
		h.have = append(h.have, one.Name)
	}
	for _, one := range grants {
		h.have = append(h.have, "answer for "+one.Match.Prefix)
	}
	return h
}

func (h *household) rights() string { return strings.Join(h.have, ", ") }

func (h *household) again(t *testing.T, between ...string) *household {
	t.Helper()
	home := h.db.Home()
	if err := h.db.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(home, store.FileName))
	for _, statement := range between {
		if err == nil {
			_, err = db.ExecContext(t.Context(), statement)
		}
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return started(t, home)
}

func (h *household) unlock(t *testing.T) {
	t.Helper()
	if err := h.keys.Unlock(passphrase); err != nil {
		t.Fatal(err)
	}
}

// fill lets all four in.
func (h *household) fill(t *testing.T) {
	t.Helper()
	now := time.Now()
	if err := errors.Join(
		h.people.AddAgentToken(t.Context(), aToken("t1")),
		h.devices.SavePairedDevice(t.Context(), identity.PairedDevice{
			ID: "d1", Key: []byte("key"), Name: "phone", Roles: []identity.Role{identity.RoleOperator}, Scopes: []string{"operator.approvals"},
			Vouched: []string{"operator.approvals"}, Person: "owner (console)", Created: now, Approved: now,
		}),
		h.passkeys.SavePasskey(t.Context(), aPasskey()),
		h.remember(t.Context(), "g1"),
	); err != nil {
		t.Fatal(err)
	}
}

func aToken(id string) identity.TokenRecord {
	return identity.TokenRecord{Hash: sha256.Sum256([]byte(id)), Token: identity.Token{
		ID: id, Prefix: "tw_" + id, Agent: "coder", Workspace: "/srv/shop", Created: time.Now(), CreatedBy: "owner (console)", Expires: time.Now().Add(time.Hour),
	}}
}

func aPasskey() identity.PasskeyRecord {
	return identity.PasskeyRecord{
		Passkey: identity.Passkey{ID: "p1", Name: "laptop", Site: "localhost", Created: time.Now()}, Credential: []byte("c"), Handle: []byte("h"), Key: []byte("k"),
	}
}

// remember answers a question with an answer for later calls.
func (h *household) remember(ctx context.Context, id string) error {
	now := time.Now()
	record := &approval.Record{
		ID: approval.NewID(), Kind: approval.KindTool, State: approval.StatePending, Binding: "b", Request: &approval.Details{Tool: "write"},
		Allowed: []toolward.Decision{toolward.AllowOnce, toolward.AllowAlways}, CreatedMs: now.UnixMilli(), ExpiresMs: now.Add(time.Minute).UnixMilli(),
	}
	grant := &approval.Grant{
		ID: id, Tool: "write", Agent: "coder", Scope: approval.ScopeAgent, Contexts: []string{"interactive"}, Host: toolward.HostGateway,
		Match:     approval.Match{Kind: toolward.GrantPath, Prefix: "/srv/shop", Ops: []toolward.Op{toolward.OpWrite}},
		CreatedMs: now.UnixMilli(), CreatedBy: "owner (console)", ExpiresMs: now.Add(time.Hour).UnixMilli(), MaxUses: 2,
	}
	return errors.Join(h.answers.AddApproval(ctx, record),
		h.answers.ResolveApproval(ctx, record.Key(), approval.Resolution{Decision: toolward.AllowAlways, By: "owner", AtMs: now.UnixMilli()}, grant))
}

func filled(t *testing.T) *household {
	t.Helper()
	h := started(t, t.TempDir())
	h.unlock(t)
	h.fill(t)
	return h
}

const (
	device, answer = "device with operator.approvals", "answer for /srv/shop"
	all            = "token of coder, " + device + ", laptop, " + answer
)

// TestRowsThatNobodySigned: while no gateway runs a process of the same user writes rights into the database, or more of them, or
// takes some away. What it wrote counts for nothing, people are told, and it does not come back.
func TestRowsThatNobodySigned(t *testing.T) {
	for name, tt := range map[string]struct {
		statements []string
		want, said string
	}{
		"nothing": {nil, all, ""},
		"a token": {
			[]string{`INSERT INTO agent_tokens (id, hash, prefix, name, agent, workspace, owner, created_ms, created_by, expires_ms)
				VALUES ('t2', zeroblob(32), 'tw_forge', '', 'main', '/', 1, 1, 'owner (console)', 0)`}, all, "t2 (tw_forge)",
		},
		"a token of another agent":        {[]string{`UPDATE agent_tokens SET agent = 'main'`}, device + ", laptop, " + answer, "1 tokens"},
		"another secret of a token":       {[]string{`UPDATE agent_tokens SET hash = randomblob(32)`}, device + ", laptop, " + answer, "1 tokens"},
		"a token that is the owner's":     {[]string{`UPDATE agent_tokens SET owner = 1`}, device + ", laptop, " + answer, "1 tokens"},
		"a token that opens the protocol": {[]string{`UPDATE agent_tokens SET gateway = 1`}, device + ", laptop, " + answer, "1 tokens"},
		"a token that lasts":              {[]string{`UPDATE agent_tokens SET expires_ms = 0`}, device + ", laptop, " + answer, "1 tokens"},
		"more scopes of a device":         {[]string{`UPDATE paired_devices SET vouched = '["operator.admin"]'`}, "token of coder, laptop, " + answer, "1 paired devices"},
		"another key of a device":         {[]string{`UPDATE paired_devices SET public_key = x'01'`}, "token of coder, laptop, " + answer, "1 paired devices"},
		"a passkey of theirs":             {[]string{`UPDATE passkeys SET public_key = x'01'`}, "token of coder, " + device + ", " + answer, "1 passkeys"},
		"a second passkey": {
			[]string{`INSERT INTO passkeys SELECT 'p2', x'02', site, handle, x'01', 'theirs', transports, 0, 0, 0, created_ms, created_by, 0, 0 FROM passkeys`},
			all, "p2 (theirs)",
		},
		"a wider answer":                {[]string{`UPDATE grants SET body = replace(body, '"/srv/shop"', '"/"')`}, "token of coder, " + device + ", laptop", "1 remembered answers"},
		"an answer for longer":          {[]string{`UPDATE grants SET expires_ms = expires_ms + 1`}, "token of coder, " + device + ", laptop", "1 remembered answers"},
		"an answer without end of uses": {[]string{`UPDATE grants SET max_uses = 0`}, "token of coder, " + device + ", laptop", "1 remembered answers"},
		"a passkey that is gone":        {[]string{`DELETE FROM passkeys`}, "token of coder, " + device + ", " + answer, "gone from the database"},
		"a used passkey and device":     {[]string{`UPDATE passkeys SET count = 9, used_ms = 9`, `UPDATE paired_devices SET seen_ms = 9, ip = '::1'`, `UPDATE grants SET uses = 1`}, all, ""},
		"ended ones":                    {[]string{`UPDATE agent_tokens SET revoked_ms = 9`, `UPDATE grants SET uses = 2`}, device + ", laptop", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := filled(t).again(t)
			if h.rights() != all || len(h.keys.Findings()) > 0 {
				t.Fatalf("before: %s, %q", h.rights(), h.keys.Findings())
			}
			h = h.again(t, tt.statements...)
			if said := strings.Join(h.keys.Findings(), "\n"); h.rights() != tt.want || !strings.Contains(said, tt.said) || tt.said == "" && said != "" {
				t.Errorf("counts %q, said %q", h.rights(), said)
			}
			h.unlock(t)
			if h = h.again(t); h.rights() != tt.want || len(h.keys.Findings()) > 0 {
				t.Errorf("after a sign-in and a restart %q, %q", h.rights(), h.keys.Findings())
			}
			_ = h.db.Close()
		})
	}
}

// TestRevokedStaysRevoked: whoever takes the mark of a revocation out of the database brings nothing back.
func TestRevokedStaysRevoked(t *testing.T) {
	h := filled(t)
	row := `INSERT INTO passkeys VALUES ` + h.passkeyValues(t)
	now := time.Now()
	_, err := h.people.RevokeAgentToken(t.Context(), "t1", now)
	if err := errors.Join(err, h.passkeys.RemovePasskey(t.Context(), "p1"), h.answers.RevokeGrants(t.Context(), []string{"g1"}, "owner", now.UnixMilli())); err != nil {
		t.Fatal(err)
	}
	h = h.again(t, `UPDATE agent_tokens SET revoked_ms = 0`, `UPDATE grants SET revoked_ms = 0`, row)
	if h.rights() != device {
		t.Errorf("came back: %s", h.rights())
	}
	_ = h.db.Close()
}

// passkeyValues is the row of the passkey as whoever reads the database may keep it.
func (h *household) passkeyValues(t *testing.T) (values string) {
	t.Helper()
	if err := h.db.Reader().QueryRowContext(t.Context(), `SELECT format('(%Q, x''%s'', %Q, x''%s'', x''%s'', %Q, %Q, %d, %d, %d, %d, %Q, %d, %d)', id, hex(credential), site, hex(handle),
		hex(public_key), name, transports, count, synced, backup, created_ms, created_by, used_ms, suspect_ms) FROM passkeys`).Scan(&values); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestRowsFromBeforeTheKey: what was let in before there was a key counts, and is signed with the first passphrase.
func TestRowsFromBeforeTheKey(t *testing.T) {
	h := filled(t)
	if err := os.Remove(filepath.Join(h.db.Home(), authority.FileName)); err != nil {
		t.Fatal(err)
	}
	h = h.again(t) // a home from before: nothing here compares it with the record
	if h.rights() != all {
		t.Errorf("before the key: %s", h.rights())
	}
	h.unlock(t)
	if h = h.again(t, `UPDATE agent_tokens SET owner = 1`); h.rights() != device+", laptop, "+answer {
		t.Errorf("after it: %s", h.rights())
	}
	_ = h.db.Close()
}

// TestWhileLocked: nobody has typed the passphrase since the start. What would last is refused; what is taken away is gone; an answer
// counts until the gateway ends, and lasts if somebody types it before.
func TestWhileLocked(t *testing.T) {
	h := filled(t).again(t)
	wider := identity.PairedDevice{ID: "d1", Key: []byte("key"), Vouched: []string{"operator.admin"}, Person: "owner"}
	fresh := aPasskey()
	fresh.ID, fresh.Credential = "p2", []byte("d")
	for what, err := range map[string]error{
		"token": h.people.AddAgentToken(t.Context(), aToken("t2")), "passkey": h.passkeys.SavePasskey(t.Context(), fresh),
		"device": h.devices.SavePairedDevice(t.Context(), wider),
	} {
		if !errors.Is(err, authority.ErrLocked) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// What every connection and sign-in writes goes on.
	known := aPasskey()
	known.Created, known.Count = h.createdPasskey(t), 7
	seen := identity.PairedDevice{ID: "d1", Key: []byte("key"), Vouched: []string{"operator.approvals"}, Person: "owner (console)", Seen: time.Now()}
	silent := identity.PairedDevice{ID: "d2", Key: []byte("other"), Scopes: []string{"operator.read"}}
	if err := errors.Join(h.passkeys.SavePasskey(t.Context(), known), h.devices.SavePairedDevice(t.Context(), seen),
		h.devices.SavePairedDevice(t.Context(), silent), h.passkeys.RemovePasskey(t.Context(), "p1"), h.remember(t.Context(), "g2")); err != nil {
		t.Fatal(err)
	}
	h = h.again(t)
	if h.rights() != "token of coder, "+device+", "+answer {
		t.Errorf("after a restart: %s", h.rights())
	}
	if err := h.remember(t.Context(), "g3"); err != nil {
		t.Fatal(err)
	}
	h.unlock(t)
	if h = h.again(t); h.rights() != "token of coder, "+device+", "+answer+", "+answer || len(h.keys.Findings()) > 0 {
		t.Errorf("signed later: %s, %q", h.rights(), h.keys.Findings())
	}
	_ = h.db.Close()
}

func (h *household) createdPasskey(t *testing.T) time.Time {
	t.Helper()
	list, err := store.NewPasskeys(h.db).Passkeys(t.Context())
	i := slices.IndexFunc(list, func(r identity.PasskeyRecord) bool { return r.ID == "p1" })
	if err != nil || i < 0 {
		t.Fatal(list, err)
	}
	return list[i].Created
}

// TestFailingStore: what could not be kept is on no roll.
func TestFailingStore(t *testing.T) {
	h := filled(t)
	taken := aToken("t1") // there is one of this id
	if err := h.people.AddAgentToken(t.Context(), taken); err == nil {
		t.Fatal("two tokens of one id")
	}
	if err := h.answers.ResolveApproval(t.Context(), approval.Key{ID: "none"}, approval.Resolution{}, &approval.Grant{ID: "g9", ExpiresMs: time.Now().Add(time.Hour).UnixMilli()}); err == nil {
		t.Fatal("an answer to no question")
	}
	if h = h.again(t); len(h.keys.Findings()) > 0 {
		t.Errorf("%q", h.keys.Findings())
	}
	_ = h.db.Close()
}
