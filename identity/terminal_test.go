package identity

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// The test binary doubles as the programs of a terminal: started with helperVar set, it is one of them.
const helperVar = "TOOLWARD_DEVICE_TEST_SOCKET"

// noRaceSleep spares the helpers the second that the race detector waits before a program ends.
const noRaceSleep = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if socket := os.Getenv(helperVar); socket != "" {
		if err := helper(socket, os.Args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// helper is a program in the terminal. Its first argument says which:
//
//	say <word>             connect to the daemon and send the word
//	agent <word>           be an agent: start "say hook", then start "say <word>"
//	agent-exec <word>      be an agent: start "say hook", then become "say <word>"
//	run <binary> <args>    be the go tool, if the program's name is go
func helper(socket string, args []string) error {
	child := func(args ...string) error {
		c := exec.Command(args[0], args[1:]...)
		c.Stderr, c.Stdin = os.Stderr, os.Stdin
		return c.Run()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	switch args[1] {
	case "say":
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := fmt.Fprintln(conn, args[2]); err != nil {
			return err
		}
		_, err = io.ReadAll(conn)
		return err
	case "agent", "agent-exec":
		if err := child(self, "say", "hook"); err != nil {
			return err
		}
		if args[1] == "agent-exec" {
			return syscall.Exec(self, []string{self, "say", args[2]}, os.Environ())
		}
		return child(self, "say", args[2])
	case "run":
		return child(args[2:]...)
	}
	return fmt.Errorf("unknown helper %q", args)
}

// world is a daemon and one shell in one terminal.
type world struct {
	t       *testing.T
	keeper  *Keeper
	bin     string
	socket  string
	results chan result
	by      Authority // of the last sign-in
}

type result struct {
	word string
	by   Authority
	err  error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := &world{t: t, bin: bin, socket: filepath.Join(dir, "s"), results: make(chan result, 16)}
	w.keeper = setUp(t, newMemory(), func(o *Options) { o.SameBuild = nil })
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go w.serve(l)
	return w
}

func (w *world) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		w.handle(conn)
	}
}

func (w *world) handle(conn net.Conn) {
	defer conn.Close()
	peer, err := w.keeper.Peer(conn)
	word, _ := bufio.NewReader(conn).ReadString('\n')
	r := result{word: strings.TrimSpace(word), err: err}
	if err == nil {
		switch r.word {
		case "login":
			r.by, r.err = w.keeper.SignInTerminal(w.t.Context(), peer, passphrase)
		case "answer":
			r.by, r.err = w.keeper.Terminal(peer)
		case "hook":
			if err := w.keeper.RegisterAgent(peer); err != nil {
				w.t.Error(err)
			}
			return
		default:
			r.err = fmt.Errorf("unknown word %q", r.word)
		}
	}
	w.results <- r
}

// shell is an interactive shell in a terminal of its own.
type shell struct {
	w    *world
	tty  *os.File
	cmd  *exec.Cmd
	done chan struct{}
}

func (w *world) shell() *shell {
	w.t.Helper()
	cmd := exec.Command("sh", "-i")
	cmd.Env = append(os.Environ(), helperVar+"="+w.socket, "BIN="+w.bin, noRaceSleep, "ENV=", "PS1=$ ", "HISTFILE=")
	tty, err := startInTerminal(cmd)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &shell{w, tty, cmd, make(chan struct{})}
	go func() {
		_, _ = io.Copy(io.Discard, tty)
		close(s.done)
	}()
	w.t.Cleanup(s.exit)
	return s
}

// startInTerminal starts a program in a terminal of its own. Closing the file that it returns ends a read of it, unlike
// the one that pty makes: a shell in the shell may live on, and with it the terminal.
func startInTerminal(cmd *exec.Cmd) (*os.File, error) {
	opened, err := pty.Start(cmd)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	fd, err := unix.FcntlInt(opened.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), opened.Name()), nil
}

func (s *shell) exit() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = s.tty.Close()
	<-s.done
}

// types a line and returns what the daemon made of the request that it causes.
func (s *shell) types(line string) result {
	s.w.t.Helper()
	if _, err := s.tty.WriteString(line + "\n"); err != nil {
		s.w.t.Fatal(err)
	}
	select {
	case r := <-s.w.results:
		return r
	case <-time.After(20 * time.Second):
		s.w.t.Fatalf("%q: nothing reached the daemon", line)
		return result{}
	}
}

// signedIn is a shell whose person has signed in.
func (w *world) signedIn() *shell {
	w.t.Helper()
	s := w.shell()
	r := s.types(`"$BIN" say login`)
	if r.err != nil || r.by.MayAnswer() != nil {
		w.t.Fatalf("login: %v, %v", r.err, r.by.MayAnswer())
	}
	w.by = r.by
	return s
}

func copyProgram(t *testing.T, from, to, more string) string {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, append(raw, more...), 0o700); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestOnlyTheShellThatSignedInMayAnswer(t *testing.T) {
	w := newWorld(t)
	s := w.signedIn()
	dir := t.TempDir()
	goTool := copyProgram(t, w.bin, filepath.Join(dir, "go"), "")
	stranger := copyProgram(t, w.bin, filepath.Join(dir, "agent"), "x")
	twin := copyProgram(t, w.bin, filepath.Join(dir, "toolward"), "")

	for _, tt := range []struct {
		name, line string
		ok         bool
	}{
		{"directly", `"$BIN" say answer`, true},
		{"in a pipe", `"$BIN" say answer | cat`, true},
		{"in the background", `"$BIN" say answer & wait`, true},
		{"the same build elsewhere", `'` + twin + `' say answer`, true},
		{"under go run", `'` + goTool + `' run "$BIN" say answer`, true},
		{"under two go runs", `'` + goTool + `' run '` + goTool + `' run "$BIN" say answer`, false},
		{"under a go that is no go run", `'` + goTool + `' agent answer`, false},
		{"by a command of a shell", `sh -c '"$BIN" say answer; true'`, false},
		{"by an interactive shell in it", `printf '"$BIN" say answer\nexit\n' | sh -i`, false},
		{"in a subshell", `( "$BIN" say answer; true )`, false},
		{"in another session", `setsid -w "$BIN" say answer`, false},
		{"in another session, by the shell itself", `true | setsid "$BIN" say answer`, false},
		{"by a program that a program started", `env true; nice sh -c '"$BIN" say answer; true'`, false},
		{"by another program", `'` + stranger + `' say answer`, false},
		{"by an agent's child", `"$BIN" agent answer`, false},
		{"by an agent that became us", `"$BIN" agent-exec answer`, false},
		{"directly, after all that", `"$BIN" say answer`, true},
	} {
		r := s.types(tt.line)
		if (r.err == nil) != tt.ok || r.by.IsPerson() != tt.ok || r.word != "answer" {
			t.Errorf("%s: %q by %q, %v; want allowed = %v", tt.name, r.word, r.by.Name(), r.err, tt.ok)
		}
		if !tt.ok && !errors.Is(r.err, ErrNotSignedIn) {
			t.Errorf("%s: %v does not say that a sign-in is missing", tt.name, r.err)
		}
	}

	t.Run("a hook started by hand does not lock the shell out", func(t *testing.T) {
		if r := s.types(`"$BIN" say hook; "$BIN" say answer`); r.err != nil {
			t.Error(r.err)
		}
	})
	t.Run("another terminal", func(t *testing.T) {
		if r := w.shell().types(`"$BIN" say answer`); r.err == nil {
			t.Error("allowed")
		}
	})
	t.Run("no terminal", func(t *testing.T) {
		cmd := exec.Command(w.bin, "say", "answer")
		cmd.Env = append(os.Environ(), helperVar+"="+w.socket, noRaceSleep)
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if r := <-w.results; r.err == nil {
			t.Error("allowed")
		}
	})
	t.Run("a second login replaces the first", func(t *testing.T) {
		first := w.by
		if r := s.types(`"$BIN" say login`); r.err != nil || r.by.MayAnswer() != nil || first.MayAnswer() == nil {
			t.Errorf("%v; first %v, second %v", r.err, first.MayAnswer(), r.by.MayAnswer())
		}
	})
}

func TestTerminalSignInEndsWithItsShell(t *testing.T) {
	w := newWorld(t)
	s := w.signedIn()
	s.exit()
	if err := w.by.MayAnswer(); !errors.Is(err, ErrNotSignedIn) {
		t.Errorf("after the shell ended: %v", err)
	}
}

// A shell can become another program without getting another number: "exec agent". What that program starts is started
// by the very process that signed in, but no person types there any more.
func TestTerminalSignInEndsWhenItsShellBecomesAnotherProgram(t *testing.T) {
	w := newWorld(t)
	s := w.signedIn()
	if r := s.types(`exec "$BIN" run "$BIN" say answer`); !errors.Is(r.err, ErrNotSignedIn) {
		t.Errorf("answered as %q: %v", r.by.Name(), r.err)
	}
	if err := w.by.MayAnswer(); !errors.Is(err, ErrNotSignedIn) {
		t.Errorf("the connection that signed in may still answer: %v", err)
	}
}

func TestSignOutOfATerminal(t *testing.T) {
	w := newWorld(t)
	s := w.signedIn()
	w.keeper.SignOut(w.by)
	if r := s.types(`"$BIN" say answer`); !errors.Is(r.err, ErrNotSignedIn) {
		t.Errorf("%v", r.err)
	}
}

func TestWhereLoginWorks(t *testing.T) {
	w := newWorld(t)
	goTool := copyProgram(t, w.bin, filepath.Join(t.TempDir(), "go"), "")
	script := filepath.Join(t.TempDir(), "login.sh")
	if err := os.WriteFile(script, []byte("\"$BIN\" say login\ntrue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.shell()
	for _, tt := range []struct {
		name, line string
		ok         bool
	}{
		{"by a script", "sh '" + script + "'", false},
		{"by a command of a shell", `sh -c '"$BIN" say login; true'`, false},
		{"by an agent", `"$BIN" agent login`, false},
		{"under go run", `'` + goTool + `' run "$BIN" say login`, true},
		{"by a shell in the shell", "sh -i", true}, // typed below
	} {
		if tt.line == "sh -i" {
			if _, err := s.tty.WriteString("sh -i\n"); err != nil {
				t.Fatal(err)
			}
			tt.line = `"$BIN" say login`
		}
		if r := s.types(tt.line); (r.err == nil) != tt.ok {
			t.Errorf("%s: %v, want allowed = %v", tt.name, r.err, tt.ok)
		}
	}
}

func TestAShellOfAnAgentCannotSignIn(t *testing.T) {
	w := newWorld(t)
	s := w.shell()
	// The shell itself is noted as an agent: everything below it is the agent's.
	p, err := System().Process(s.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	w.keeper.agents.add(System(), p)
	if r := s.types(`"$BIN" say login`); !errors.Is(r.err, errAgent) {
		t.Errorf("%v", r.err)
	}
}
