package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		k := setUp(t, store, nil)
		_, by := signIn(t, k)
		ctx := t.Context()
		spec := TokenSpec{Name: "laptop", Agent: "coder", Workspace: "/home/dev/ws", Owner: true, Life: time.Hour}
		if _, _, err := k.CreateToken(ctx, Requester(), spec, nil); !errors.Is(err, ErrNotSignedIn) {
			t.Errorf("an agent made a token: %v", err)
		}
		for name, bad := range map[string]TokenSpec{
			"no agent": {Workspace: "/ws"}, "colon": {Agent: "a:b", Workspace: "/ws"}, "capital": {Agent: "Coder", Workspace: "/ws"},
			"relative": {Agent: "a", Workspace: "ws"}, "dots": {Agent: "a", Workspace: "/ws/../x"}, "negative": {Agent: "a", Workspace: "/ws", Life: -1},
		} {
			if _, _, err := k.CreateToken(ctx, by, bad, nil); err == nil {
				t.Errorf("%s: created", name)
			}
		}
		secret, token, err := k.CreateToken(ctx, by, spec, nil)
		if err != nil || !strings.HasPrefix(secret, token.Prefix) || len(secret) < 29 || token.CreatedBy != "owner (console)" {
			t.Fatalf("%q %+v %v", secret, token, err)
		}
		if strings.Contains(fmt.Sprintf("%+v", store.tokens), secret) {
			t.Error("the secret is stored")
		}
		got, err := k.Token(ctx, secret)
		if err != nil || got.Agent != "coder" || !got.Owner || got.Workspace != "/home/dev/ws" {
			t.Errorf("%+v %v", got, err)
		}
		if store.tokens[token.ID].LastUsed.IsZero() {
			t.Error("last use not noted")
		}
		for _, bad := range []string{"", "tw_", secret[:len(secret)-1], secret + "A", strings.ToLower(secret), secret[3:]} {
			if _, err := k.Token(ctx, bad); !errors.Is(err, ErrToken) {
				t.Errorf("%q: %v", bad, err)
			}
		}
		if again := open(t, store, nil); func() error { _, err := again.Token(ctx, secret); return err }() != nil {
			t.Error("gone after a restart")
		}
		time.Sleep(time.Hour)
		if _, err := k.Token(ctx, secret); !errors.Is(err, ErrToken) {
			t.Errorf("expired: %v", err)
		}
		secret, token, err = k.CreateToken(ctx, by, TokenSpec{Agent: "coder", Workspace: "/ws"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.RevokeToken(ctx, Requester(), token.ID); err == nil {
			t.Error("a requester revoked a token")
		}
		store.fail = errors.New("disk is full")
		if _, err := k.RevokeToken(ctx, by, token.Prefix); err == nil {
			t.Error("the failing store was not mentioned")
		}
		store.fail = nil
		if _, err := k.Token(ctx, secret); !errors.Is(err, ErrToken) {
			t.Errorf("revoked: %v", err)
		}
		_, token, err = k.CreateToken(ctx, by, TokenSpec{Agent: "coder", Workspace: "/ws"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		gone, hangUp := context.WithCancel(ctx)
		hangUp()
		if _, err := k.RevokeToken(gone, by, token.ID); err != nil || store.tokens[token.ID].Revoked.IsZero() {
			t.Errorf("the caller went away: %v", err)
		}
		if list, err := k.Tokens(by); err != nil || len(list) != 3 {
			t.Errorf("%+v %v", list, err)
		}
	})
}

// A token of one use opens nothing else.
func TestTokensOfOneUse(t *testing.T) {
	k := setUp(t, newMemory(), nil)
	_, by := signIn(t, k)
	ctx := t.Context()
	if k.HasGatewayToken() {
		t.Error("a fresh keeper has a gateway token")
	}
	for name, bad := range map[string]TokenSpec{
		"agent": {Gateway: true, Agent: "a"}, "workspace": {Gateway: true, Workspace: "/ws"}, "owner": {Gateway: true, Owner: true},
		"metrics": {Gateway: true, Metrics: true},
	} {
		if _, _, err := k.CreateToken(ctx, by, bad, nil); err == nil {
			t.Errorf("%s: created", name)
		}
	}
	for _, c := range []struct {
		spec                    TokenSpec
		agent, metrics, gateway bool
	}{
		{TokenSpec{Gateway: true}, false, false, true},
		{TokenSpec{Metrics: true}, false, true, false},
		{TokenSpec{Agent: "a", Workspace: "/ws"}, true, false, false},
	} {
		secret, _, err := k.CreateToken(ctx, by, c.spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, agentErr := k.Token(ctx, secret)
		if (agentErr == nil) != c.agent || (k.MetricsToken(ctx, secret) == nil) != c.metrics || (k.GatewayToken(ctx, secret) == nil) != c.gateway {
			t.Errorf("%+v opens something else", c.spec)
		}
	}
	if !k.HasGatewayToken() {
		t.Error("the gateway token is not seen")
	}
}
