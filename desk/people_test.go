package desk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/passkeytest"
)

// tokens counts what the store has: the keeper is busy while it makes one.
func (w *world) tokens(inForce bool) int {
	list, err := w.people.AgentTokens(w.t.Context())
	must(w.t, err)
	n := 0
	for _, t := range list {
		if t.Revoked.IsZero() == inForce {
			n++
		}
	}
	return n
}

var coder = identity.TokenSpec{Agent: "coder", Workspace: "/home/ada/shop"}

func TestTokens(t *testing.T) {
	made := operation{"create", "token-created", nil, func(ctx context.Context, w *world, v desk.Visitor) error {
		_, _, err := w.desk.CreateToken(ctx, v, coder)
		return err
	}, func(w *world) bool { return w.tokens(true) == 1 }}
	made.loosens(t)
	revoked := operation{
		"revoke", "token-revoked",
		func(t *testing.T, w *world) { must(t, made.do(t.Context(), w, w.person())) },
		func(ctx context.Context, w *world, v desk.Visitor) error {
			list, err := w.keeper.Tokens(somebody.here)
			must(t, err)
			_, err = w.desk.RevokeToken(ctx, v, list[0].ID)
			return err
		},
		func(w *world) bool { return w.tokens(false) == 1 },
	}
	revoked.takesAway(t)
}

func TestTokenCodes(t *testing.T) {
	w := newWorld(t)
	if _, _, err := w.desk.CreateToken(t.Context(), w.person(), identity.TokenSpec{Agent: "No Agent", Workspace: "/ws"}); desk.CodeOf(err) != desk.Invalid {
		t.Errorf("an agent with a wrong name: %v", err)
	}
	if _, err := w.desk.RevokeToken(t.Context(), w.person(), "no-such"); desk.CodeOf(err) != desk.Unknown {
		t.Errorf("no such token: %v", err)
	}
	if len(w.events) != 0 {
		t.Errorf("recorded: %v", w.events)
	}
}

func TestPassphraseIsChanged(t *testing.T) {
	signed := func(t *testing.T, w *world) {
		must(t, w.keeper.SetUp(t.Context(), "test", w.keeper.SetupCode(), passphrase))
	}
	o := operation{"change", "passphrase-changed", signed, func(ctx context.Context, w *world, v desk.Visitor) error {
		return w.desk.ChangePassphrase(ctx, v, passphrase, "another "+passphrase)
	}, func(w *world) bool {
		_, err := w.keeper.SignInForeground(t.Context(), "another "+passphrase)
		return err == nil
	}}
	o.needsRight(t)
	w := o.world(t)
	if err := w.desk.ChangePassphrase(t.Context(), w.person(), "wrong "+passphrase, "another "+passphrase); desk.CodeOf(err) != desk.WrongPhrase {
		t.Errorf("without the old one: %v", err)
	}
	if err := w.desk.ChangePassphrase(t.Context(), w.person(), passphrase, "short"); desk.CodeOf(err) != desk.Invalid {
		t.Errorf("a short one: %v", err)
	}
	must(t, o.do(t.Context(), w, w.person()))
	o.isRecorded(t, w)
}

func TestSignInsEnd(t *testing.T) {
	w := newWorld(t)
	must(t, w.keeper.SetUp(t.Context(), "test", w.keeper.SetupCode(), passphrase))
	other, err := w.keeper.SignInForeground(t.Context(), passphrase)
	must(t, err)
	own, err := w.keeper.SignInForeground(t.Context(), passphrase)
	must(t, err)
	if err := w.desk.EndSignIn(desk.Visitor{By: identity.Requester()}, other.SignIn()); desk.CodeOf(err) != desk.NotAllowed || other.MayAnswer() != nil {
		t.Errorf("an agent ends a sign-in: %v", err)
	}
	list, err := w.desk.SignIns(desk.Visitor{By: own})
	if err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	must(t, w.desk.EndSignIn(desk.Visitor{By: own}, other.SignIn()))
	if other.MayAnswer() == nil {
		t.Error("the sign-in has not ended")
	}
	if err := w.desk.EndSignIn(desk.Visitor{By: own}, other.SignIn()); desk.CodeOf(err) != desk.Unknown {
		t.Errorf("again: %v", err)
	}
}

var site = identity.Site{Name: "localhost", Origin: "http://localhost:7411"}

func (w *world) keys() []identity.Passkey {
	list, err := w.passkeys.List(somebody.here)
	must(w.t, err)
	return list
}

func TestPasskeys(t *testing.T) {
	signed := func(t *testing.T, w *world) {
		must(t, w.keeper.SetUp(t.Context(), "test", w.keeper.SetupCode(), passphrase))
	}
	add := func(ctx context.Context, w *world, v desk.Visitor) error {
		question, err := w.passkeys.BeginAdd(t.Context(), somebody.here, site, identity.Presence{Passphrase: passphrase})
		must(t, err)
		_, err = w.desk.AddPasskey(ctx, v, site, "laptop", passkeytest.New(site.Origin).Make(t, question))
		return err
	}
	for _, o := range []operation{{"add", "passkey-added", signed, add, func(w *world) bool { return len(w.keys()) == 1 }}} {
		o.loosens(t)
	}
	added := func(t *testing.T, w *world) {
		signed(t, w)
		must(t, add(t.Context(), w, w.person()))
	}
	for _, o := range []operation{{"remove", "passkey-removed", added, func(ctx context.Context, w *world, v desk.Visitor) error {
		_, err := w.desk.RemovePasskey(ctx, v, w.keys()[0].ID)
		return err
	}, func(w *world) bool { return len(w.keys()) == 0 }}} {
		o.takesAway(t)
	}
	w := newWorld(t)
	if err := w.desk.RenamePasskey(t.Context(), w.person(), "no-such", "phone"); desk.CodeOf(err) != desk.Unknown {
		t.Errorf("no such passkey: %v", err)
	}
	for who, v := range strangers() {
		_, a := w.desk.Passkeys(v)
		_, b := w.desk.AskPresence(v, site)
		_, c := w.desk.BeginPasskey(t.Context(), v, "10.0.0.7", site, identity.Presence{Passphrase: passphrase})
		for _, err := range []error{a, b, c} {
			if desk.CodeOf(err) != desk.NotAllowed {
				t.Errorf("%s: %v", who, err)
			}
		}
	}
}

// Where a passkey signs somebody in of which there is a copy, and where it adds another, that is recorded with whence it came.
func TestASuspectPasskeyIsRecorded(t *testing.T) {
	w := newWorld(t)
	must(t, w.keeper.SetUp(t.Context(), "test", w.keeper.SetupCode(), passphrase))
	question, err := w.desk.BeginPasskey(t.Context(), w.person(), "10.0.0.1", site, identity.Presence{Passphrase: passphrase})
	must(t, err)
	mine := passkeytest.New(site.Origin)
	_, err = w.desk.AddPasskey(t.Context(), w.person(), site, "laptop", mine.Make(t, question))
	must(t, err)
	copied := mine.Copy()
	signIn := func(a *passkeytest.Authenticator) error {
		token, question, err := w.passkeys.BeginSignIn(site)
		must(t, err)
		_, err = w.desk.SignInWithPasskey(t.Context(), "10.0.0.7", token, site, a.Sign(t, question))
		return err
	}
	presence, err := w.desk.AskPresence(w.person(), site)
	must(t, err)
	stolen := copied.Sign(t, presence) // before it is known that there are two
	must(t, signIn(mine))
	must(t, signIn(mine))
	w.events = nil
	_, err = w.desk.BeginPasskey(t.Context(), w.person(), "10.0.0.9", site, identity.Presence{Answer: stolen})
	if desk.CodeOf(err) != desk.NotProven || len(w.events) != 1 || w.events[0].Data["event"] != "passkey-suspect" || w.events[0].Data["from"] != "10.0.0.9" {
		t.Errorf("adding another: %v, recorded %v", err, w.events)
	}
	w.events = nil
	if err := signIn(copied); err == nil || len(w.events) != 1 || w.events[0].Data["from"] != "10.0.0.7" {
		t.Errorf("signing in: %v, recorded %v", err, w.events)
	}
}

// TestLocked: whoever came in without the passphrase gives nothing that lasts before somebody types it, and nothing of it is recorded
// as done.
func TestLocked(t *testing.T) {
	w := newWorld(t)
	w.locked = errors.New("nobody has typed the passphrase")
	v := w.person()
	_, _, token := w.desk.CreateToken(t.Context(), v, coder)
	_, device := w.desk.ApproveDevice(t.Context(), v, "any")
	_, seen := w.desk.ApproveDeviceSeen(t.Context(), v, "any", "any")
	_, passkey := w.desk.AddPasskey(t.Context(), v, identity.Site{}, "laptop", nil)
	for what, err := range map[string]error{"token": token, "device": device, "seen device": seen, "passkey": passkey} {
		if desk.CodeOf(err) != desk.Locked || !errors.Is(err, w.locked) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(w.events) != 0 || w.tokens(true) != 0 {
		t.Errorf("recorded: %v", w.events)
	}
}

// TestWhatAPasskeyGaveEndsWithIt: as with a device.
func TestWhatAPasskeyGaveEndsWithIt(t *testing.T) {
	w := newWorld(t)
	must(t, w.keeper.SetUp(t.Context(), "test", w.keeper.SetupCode(), passphrase))
	question, err := w.desk.BeginPasskey(t.Context(), w.person(), "10.0.0.1", site, identity.Presence{Passphrase: passphrase})
	must(t, err)
	mine := passkeytest.New(site.Origin)
	made, err := w.desk.AddPasskey(t.Context(), w.person(), site, "laptop", mine.Make(t, question))
	must(t, err)
	token, asked, err := w.passkeys.BeginSignIn(site)
	must(t, err)
	_, by, err := w.passkeys.SignIn(t.Context(), "10.0.0.7", token, site, mine.Sign(t, asked))
	must(t, err)
	_, err = w.allowlist.Permit(t.Context(), func(f *allowlist.File) bool {
		return f.Allow("coder", allowlist.Entry{Pattern: "/usr/bin/jq", GivenBy: by.Means()}, 1)
	}, nil)
	must(t, err)
	_, err = w.desk.RemovePasskey(t.Context(), w.person(), made.ID)
	must(t, err)
	if waiting := w.allowlist.Current().Unaccepted(); len(waiting) != 1 {
		t.Errorf("%+v", waiting)
	}
}
