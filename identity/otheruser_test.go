package identity

import (
	"errors"
	"os"
	"testing"
)

// TestNoTerminalOfAnotherUser: a gateway with a user of its own cannot see which program of the person's asks, so that an agent's, with a
// name and arguments like a shell's, would pass for one.
func TestNoTerminalOfAnotherUser(t *testing.T) {
	other := uint32(os.Geteuid()) + 1
	shell := Process{PID: 20, Parent: 10, Start: 5, Session: 20, TTY: 1, UID: other, Exe: "/usr/bin/bash", Args: []string{"bash"}}
	login := Process{PID: 30, Parent: 20, Start: 6, Session: 20, TTY: 1, UID: other, Exe: "/usr/bin/toolward", Args: []string{"toolward", "login"}}
	k := &Keeper{processes: fakeProcesses{20: shell, 30: login}, sameBuild: func(Process) error { return nil }, clients: []uint32{other}}
	if _, err := k.SignInTerminal(t.Context(), login, "anything"); !errors.Is(err, errOtherUser) {
		t.Errorf("signed in: %v", err)
	}
	if _, err := k.Terminal(login); !errors.Is(err, errOtherUser) || !errors.Is(err, ErrNotSignedIn) {
		t.Errorf("recognized: %v", err)
	}
}

// TestWhoIsServed: nobody but the gateway's own user and the one whose agents it guards; root is neither.
func TestWhoIsServed(t *testing.T) {
	own := uint32(os.Geteuid())
	k := &Keeper{clients: []uint32{own + 5}}
	for uid, want := range map[uint32]bool{own: true, own + 5: true, own + 4: false, own + 6: false, 1<<32 - 1: false} {
		if k.serves(uid) != want {
			t.Errorf("user %d: %v", uid, !want)
		}
	}
	if (&Keeper{}).serves(own + 5) {
		t.Error("a gateway of one user serves another")
	}
}
