// Package identity knows who stands behind a request: a person who signed in, or only an agent that asks.
//
// A guarded agent usually runs with its user's uid, so being able to open Toolward's socket proves nothing. The
// socket alone, or an agent token, makes a requester. Answering approvals, granting, clearing levels, applying
// configuration and making tokens need a person, and a person is somebody who typed the passphrase:
//
//   - in the console: [Keeper.SignInWeb] returns a cookie token, [Keeper.Web] recognizes it; later a passkey does in
//     place of the passphrase, see [Passkeys];
//   - in one terminal: [Keeper.SignInTerminal] binds the session to the shell that started "toolward login", and
//     [Keeper.Terminal] accepts later commands only if that very shell started them;
//   - at the daemon's own terminal: [Keeper.SignInForeground];
//   - on a device of its own, once a person who is signed in elsewhere vouched for its key: [Pairings].
//
// All of them give an [Authority]. It is checked again whenever it is used, so a connection that was opened before
// the session ended can do nothing afterwards. Sessions and everything derived from the passphrase live in memory
// only: a restart signs everybody out.
//
// Agents are told apart by tokens ([Keeper.CreateToken]) and by process ([Keeper.RegisterAgent]): a process that
// descends from a registered agent is refused even in a terminal that a person signed in.
package identity

import (
	"errors"
	"fmt"
	"time"
)

// Right is one thing that not everybody may do.
type Right string

// The rights. A requester has [RightRequest] only; a signed-in person has all.
const (
	RightRequest    Right = "send calls"
	RightWatch      Right = "see approvals and records"
	RightAnswer     Right = "answer approvals"
	RightGrant      Right = "keep an answer for later calls"
	RightClearLevel Right = "change a session's level"
	RightConfigure  Right = "apply configuration"
	RightPair       Right = "pair devices"
	RightAdmin      Right = "manage tokens, grants and sign-ins"
)

// Known reports whether there is such a right.
func (r Right) Known() bool {
	switch r {
	case RightRequest, RightWatch, RightAnswer, RightGrant, RightClearLevel, RightConfigure, RightAdmin:
		return true
	}
	return false
}

// Surface is where a person signed in.
type Surface string

// The surfaces.
const (
	Console    Surface = "console"
	Terminal   Surface = "terminal"
	Foreground Surface = "daemon terminal"
)

// Errors that callers branch on.
var (
	// ErrNotSignedIn means that the request comes from a requester, not from a signed-in person.
	ErrNotSignedIn = errors.New("not signed in: a person must sign in with the passphrase first (toolward login, or the console)")
	// ErrPassphrase means that the passphrase is wrong.
	ErrPassphrase = errors.New("wrong passphrase")
	// ErrNeedsSetup means that no passphrase has been set yet.
	ErrNeedsSetup = errors.New("no passphrase has been set: use the setup code that `toolward up` printed")
	// ErrToken means that an agent token is unknown, revoked or expired. The three look alike from outside, so
	// that nobody learns which tokens once existed.
	ErrToken = errors.New("unknown, revoked or expired agent token")
)

// Authority is the proof of who is behind a request and the only way to get a person's rights. The zero value may
// do nothing. It is made by a [Keeper] and stays bound to its session: when the session ends, so do its rights.
type Authority struct {
	keeper *Keeper
	id     string  // of the session; "" for a requester
	person string  // display name
	via    Surface // where the person signed in
	asker  bool    // may send calls

	// Of a paired device, in place of a session.
	pairings *Pairings
	device   string
	scopes   []string // of the connection
}

// Requester is the authority of somebody who may only send calls: an agent, or anything on the local socket.
func Requester() Authority { return Authority{asker: true} }

// May returns nil if the authority has the right now. The session is looked up each time: a connection that is
// still open must not keep the rights of a sign-in that was revoked or ran out.
func (a Authority) May(right Right) error {
	if a.pairings != nil {
		return a.mayAs(right)
	}
	if a.keeper == nil || a.id == "" {
		if a.asker && right == RightRequest {
			return nil
		}
		return fmt.Errorf("may not %s: %w", right, ErrNotSignedIn)
	}
	if err := a.keeper.alive(a.id); err != nil {
		return fmt.Errorf("may not %s: %w", right, err)
	}
	return nil
}

// MayAnswer returns nil if the authority may answer approvals now.
func (a Authority) MayAnswer() error { return a.May(RightAnswer) }

// MayGrant returns nil if the authority may keep an answer for later calls now.
func (a Authority) MayGrant() error { return a.May(RightGrant) }

// IsPerson reports whether the authority came from a sign-in, or from a device that a signed-in person vouched for. It
// does not say that the session is still open.
func (a Authority) IsPerson() bool { return (a.keeper != nil || a.pairings != nil) && a.id != "" }

// Name is what records and prompts call the person, for instance "owner (console)"; "requester" for everybody
// else.
func (a Authority) Name() string {
	if !a.IsPerson() {
		return "requester"
	}
	return a.person + " (" + string(a.via) + ")"
}

// SignIn is the public id of the sign-in; "" for a requester. It is not a secret.
func (a Authority) SignIn() string { return a.id }

// Means is what let the person in, if that can be taken away from them: "device:" or "passkey:" and its id, "" for the passphrase. What
// they leave behind that lasts is to end with it.
func (a Authority) Means() string {
	switch {
	case a.pairings != nil:
		return DeviceMeans(a.device)
	case a.keeper == nil:
		return ""
	}
	a.keeper.mu.Lock()
	defer a.keeper.mu.Unlock()
	if s := a.keeper.sessions[a.id]; s != nil && s.Passkey != "" {
		return PasskeyMeans(s.Passkey)
	}
	return ""
}

// DeviceMeans are the [Authority.Means] of a paired device.
func DeviceMeans(id string) string { return "device:" + id }

// PasskeyMeans are the [Authority.Means] of whoever signed in with a passkey.
func PasskeyMeans(id string) string { return "passkey:" + id }

// SignIn describes one sign-in to people. It holds nothing that could be used to impersonate it.
type SignIn struct {
	ID       string    `json:"id"`
	Person   string    `json:"person"`
	Via      Surface   `json:"via"`
	Source   string    `json:"source"` // address or terminal
	Started  time.Time `json:"started"`
	LastSeen time.Time `json:"lastSeen"`
	Expires  time.Time `json:"expires"` // absolute end, if it does not idle out before
	// Passkey is the public id of the passkey that opened it; "" for the passphrase.
	Passkey string `json:"passkey,omitempty"`
}
