package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// anchor is the shell that a terminal session is bound to. Its program counts as well: a shell can become an agent
// without getting another number ("exec agent").
type anchor struct {
	pid     int
	start   uint64
	session int
	tty     uint64
	program string
}

func anchorOf(p Process) anchor { return anchor{p.PID, p.Start, p.Session, p.TTY, p.program()} }

// lives returns nil while the shell runs in the terminal where the person signed in, and is one that people type into.
func (a anchor) lives(list Processes) error {
	p, err := list.Process(a.pid)
	if err != nil || anchorOf(p) != a || !p.isInteractiveShell() {
		return errors.New("the shell that signed in has ended")
	}
	return nil
}

// SignInTerminal checks the passphrase and signs in the one shell that started "toolward login". peer is the login
// process, as [Peer] found it when the connection was accepted.
func (k *Keeper) SignInTerminal(ctx context.Context, peer Process, passphrase string) (Authority, error) {
	shell, err := k.shellOf(peer)
	if err != nil {
		return Authority{}, fmt.Errorf("sign in this terminal: %w", err)
	}
	if !shell.isInteractiveShell() {
		return Authority{}, fmt.Errorf("sign in this terminal: `toolward login` was started by %s (process %d): start it by hand from the shell in your terminal",
			quoteProgram(shell), shell.PID)
	}
	from := k.shell(anchorOf(shell))
	if err := k.checkPerson(ctx, from, passphrase); err != nil {
		return Authority{}, err
	}
	s := newSession(Terminal, from.source, k.life.TerminalMax)
	s.shell = anchorOf(shell)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remember(s.shell)
	if old := k.shells[s.shell]; old != nil {
		k.end(old)
	}
	k.add(s)
	k.shells[s.shell] = s
	return k.authority(s), nil
}

// Terminal recognizes a command of a signed-in terminal: it must have been started by the very shell that signed
// in, in the same terminal, and be this program. It stops the agents that were started from that terminal: their
// commands are children of the agent or of its shells, and an agent that talks to the socket itself is another
// program.
func (k *Keeper) Terminal(peer Process) (Authority, error) {
	shell, err := k.shellOf(peer)
	if err != nil {
		return Authority{}, fmt.Errorf("%w: %w", err, ErrNotSignedIn)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.shells[anchorOf(shell)]
	if s == nil || !shell.isInteractiveShell() {
		return Authority{}, ErrNotSignedIn
	}
	if err := k.touch(s); err != nil {
		return Authority{}, err
	}
	return k.authority(s), nil
}

// shellOf finds the process that a terminal session of peer would be bound to, and checks everything about peer
// that does not depend on a session.
func (k *Keeper) shellOf(peer Process) (Process, error) {
	now, err := k.processes.Process(peer.PID)
	if err != nil || !now.Is(peer) {
		return Process{}, errors.New("the process that asks is gone")
	}
	peer = now
	if int(peer.UID) != os.Geteuid() {
		return Process{}, errOtherUser
	}
	if err := k.sameBuild(peer); err != nil {
		return Process{}, err
	}
	shell, err := starter(k.processes, peer)
	if err != nil {
		return Process{}, err
	}
	switch {
	case shell.UID != peer.UID:
		return Process{}, errors.New("it was started by another user's process")
	case peer.TTY == 0 || shell.TTY != peer.TTY || shell.Session != peer.Session:
		return Process{}, errors.New("it does not run in the terminal of the shell that started it")
	case k.descendsFromAgent(peer):
		return Process{}, errAgent
	}
	return shell, nil
}

// errOtherUser is what a person sees whose gateway runs under a user of its own: it cannot see which program of theirs asks, so
// an agent's could pass for the person's.
var errOtherUser = errors.New("this gateway has a user of its own, and cannot tell your terminal from an agent's: answer in the console")

func quoteProgram(p Process) string {
	if p.Exe == "" {
		return "a program"
	}
	return fmt.Sprintf("%q", p.program())
}
