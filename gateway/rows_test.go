package gateway

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/identity"
)

// TestRowsThatNobodySigned: while no gateway runs a process of the same user writes rights of each kind into the database. None
// counts, the record and every page say so, and a token that a person made goes on. See package signed for each column.
func TestRowsThatNobodySigned(t *testing.T) {
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	options.Log = slog.New(slog.DiscardHandler)
	g := reopened(t, nil, options)
	defer func() { g.Close() }()
	if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	by, err := g.people.SignInForeground(t.Context(), "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	spec := identity.TokenSpec{Agent: "coder", Workspace: "/srv/shop"}
	secret, _, err := g.people.CreateToken(t.Context(), by, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
	if err := changed(t, g.home,
		`INSERT INTO agent_tokens (id, hash, prefix, name, agent, workspace, owner, created_ms, created_by, expires_ms, gateway)
			VALUES ('tforged', zeroblob(32), 'tw_forge', '', '', '', 0, 1, 'owner (console)', 0, 1)`,
		`INSERT INTO passkeys VALUES ('p-forged', x'01', 'localhost', x'02', x'03', 'theirs', '[]', 0, 0, 0, 1, 'owner (console)', 0, 0)`,
		`INSERT INTO paired_devices VALUES ('dforged', x'01', 'phone', '["operator"]', '["operator.admin"]', '["operator.admin"]', 'owner (console)', '', '', '', '', '', '{}', 1, 1, 1)`,
		`INSERT INTO grants (id, body, agent, tool, created_ms, expires_ms) VALUES ('gforged', '{"tool":"write","agentId":"coder","scope":"agent","host":"gateway","match":{"kind":"path","prefix":"/"}}', 'coder', 'write', 1, 99999999999999)`,
	); err != nil {
		t.Fatal(err)
	}
	g = reopened(t, nil, options)
	device, known := g.pairings.Device("dforged")
	if _, err := g.people.Token(t.Context(), secret); err != nil || g.people.HasGatewayToken() || g.passkeys.Any("localhost") ||
		!known || len(device.Vouched) > 0 || len(g.approver.Grants()) > 0 {
		t.Errorf("%v, gateway token %v, passkey %v, device %+v, %d grants", err, g.people.HasGatewayToken(), g.passkeys.Any("localhost"), device, len(g.approver.Grants()))
	}
	notices := strings.Join(g.notices(), "\n")
	for _, want := range []string{"tforged", "p-forged", "dforged", "gforged"} {
		if !strings.Contains(notices, want) {
			t.Errorf("people are not told of %s: %s", want, notices)
		}
		records, err := g.audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig, Text: want})
		if err != nil || len(records) != 1 {
			t.Errorf("%s: %d records, %v", want, len(records), err)
		}
	}
	if _, _, err := g.people.CreateToken(t.Context(), by, spec, nil); err == nil {
		t.Error("a sign-in outlived the restart")
	}
}

// TestNothingLastsWithoutTheFile: without authority.json no row counts, nor after the next sign-in.
func TestNothingLastsWithoutTheFile(t *testing.T) {
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	options.Log = slog.New(slog.DiscardHandler)
	g := reopened(t, nil, options)
	if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	by, err := g.people.SignInForeground(t.Context(), "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	secret, _, err := g.people.CreateToken(t.Context(), by, identity.TokenSpec{Agent: "coder", Workspace: "/srv/shop"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
	if err := os.Remove(filepath.Join(g.home, authority.FileName)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		g = reopened(t, nil, options)
		if _, err := g.people.Token(t.Context(), secret); err == nil {
			t.Error("a token counts")
		}
		if _, err := g.people.SignInForeground(t.Context(), "correct horse battery"); err != nil {
			t.Fatal(err)
		}
		g.Close()
	}
}

// TestRowsFromBeforeThePassphrase: a home that somebody prepared before the first start.
func TestRowsFromBeforeThePassphrase(t *testing.T) {
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	options.Log = slog.New(slog.DiscardHandler)
	reopened(t, nil, options).Close()
	if err := changed(t, options.Home,
		`INSERT INTO agent_tokens (id, hash, prefix, name, agent, workspace, owner, created_ms, created_by, expires_ms, gateway)
			VALUES ('tforged', zeroblob(32), 'tw_forge', '', '', '', 0, 1, 'owner (console)', 0, 1)`); err != nil {
		t.Fatal(err)
	}
	g := reopened(t, nil, options)
	defer func() { g.Close() }()
	if err := g.people.SetUp(t.Context(), "test", g.people.SetupCode(), "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if g.people.HasGatewayToken() {
			t.Error("the token counts")
		}
		g = reopened(t, g, options)
	}
}
