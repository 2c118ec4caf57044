package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/consoletest"
)

// screen is what was printed so far.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// person sits at a terminal that is being attended.
type person struct {
	t      *testing.T
	w      *consoletest.World
	keys   io.Writer
	screen *screen
	ended  chan error
	from   int // where the text that was not looked at yet begins
}

func attended(t *testing.T, w *consoletest.World) *person {
	t.Helper()
	in, keys := io.Pipe()
	p := &person{t: t, w: w, keys: keys, screen: &screen{}, ended: make(chan error, 1)}
	terminal := &Terminal{
		in: in, out: p.screen, forget: func() {}, width: func() int { return 80 },
		secret: func() (string, error) { return consoletest.Passphrase, nil },
	}
	ctx, cancel := context.WithCancel(context.Background())
	by, signedIn, err := terminal.SignIn(ctx, w.People)
	if err != nil || !signedIn {
		t.Fatalf("sign-in: %v, %v", signedIn, err)
	}
	go func() { p.ended <- terminal.Attend(ctx, w.Approvals, by) }()
	t.Cleanup(func() { cancel(); keys.Close() })
	return p
}

func (p *person) types(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keys, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits for a text that has not been seen yet.
func (p *person) sees(text string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		all := p.screen.String()
		if at := strings.Index(all[p.from:], text); at >= 0 {
			p.from += at + len(text)
			return
		}
	}
	p.t.Fatalf("never printed: %q\n%s", text, p.screen.String()[p.from:])
}

// answers types an answer until it is not too early any more.
func (p *person) answers(line, then string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		p.types(line)
		time.Sleep(20 * time.Millisecond) // lets the reply arrive; what it says is checked below
		all := p.screen.String()[p.from:]
		if strings.Contains(all, then) {
			p.sees(then)
			return
		}
		if !strings.Contains(all, "before you could read") && strings.Contains(all, "Not") {
			p.t.Fatalf("%q: %s", line, all)
		}
	}
	p.t.Fatalf("%q never led to %q:\n%s", line, then, p.screen.String()[p.from:])
}

func TestAttend(t *testing.T) {
	for _, tt := range []struct {
		name, line, then string
		ran              bool
	}{
		{"allow", "a", "Allowed once by owner (daemon terminal).", true},
		{"deny", "d", "Denied by owner (daemon terminal).", false},
		{"deny with a reason", "d use the package manager", "Denied by owner", false},
		{"always", "A2", "and saved as a grant.", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := consoletest.New(t, consoletest.Options{})
			p := attended(t, w)
			call := w.Call("coder", "exec", map[string]any{"command": "make release"})
			p.sees("│ make release")
			p.sees("A2: from now on without a question")
			p.sees(prompt)
			p.answers(tt.line, tt.then)
			result := <-call
			if result.Ran != tt.ran {
				t.Errorf("ran %v (%v), want %v", result.Ran, result.Err, tt.ran)
			}
			var refusal *toolward.Refusal
			if _, reason, ok := strings.Cut(tt.line, "d "); ok && (!errors.As(result.Err, &refusal) || refusal.Detail != reason) {
				t.Errorf("the model is told %v", result.Err)
			}
		})
	}
}

func TestWhatAnswersNothing(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	p := attended(t, w)
	p.types("a")
	p.sees("No call is waiting.")
	w.Call("coder", "exec", map[string]any{"command": "make"})
	p.sees(prompt)
	p.types("a") // typed before anybody could read the call
	p.sees("before you could read")
	for _, tt := range []struct{ line, reply string }{
		{"", "Nothing was answered."},
		{"   ", "Nothing was answered."},
		{"y", "That is no answer."},
		{"allow", "That is no answer."},
		{"a a", "That is no answer."},
		{"aa", "That is no answer."},
		{"D", "That is no answer."},
		{"A", "Type the number"},
		{"A0", "Type the number"},
		{"A3", "Type the number"},
		{"A+1", "Type the number"},
		{"A01", "Type the number"},
		{"Always", "Type the number"},
		{"?", "deny it, and tell the agent why"},
	} {
		p.types(tt.line)
		p.sees(tt.reply)
		w.AwaitPending(1)
	}
	if grants := w.Approvals.Grants(); len(grants) != 0 {
		t.Errorf("grants: %+v", grants)
	}
}

func TestCallsQueue(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	p := attended(t, w)
	first := w.Call("coder", "exec", map[string]any{"command": "first"})
	p.sees("│ first")
	second := w.Call("coder", "exec", map[string]any{"command": "second"})
	p.sees("1 more call is waiting behind this one")
	id := ""
	for _, r := range w.AwaitPending(2) {
		if r.Request.Command == "first" {
			id = r.ID
		}
	}
	// The first one ends elsewhere: the second takes its place, and an "a" meant for the first does not count.
	if !w.Approvals.Expire(id, "cancelled") {
		t.Fatal("the first call could not be ended")
	}
	p.sees("The agent does not wait any more")
	p.sees("│ second")
	p.types("a")
	p.sees("before you could read")
	p.answers("d", "Denied by owner")
	for name, call := range map[string]<-chan consoletest.Result{"first": first, "second": second} {
		if result := <-call; result.Ran {
			t.Errorf("the %s call ran", name)
		}
	}
}

func TestLongCallsAreReadBeforeTheyAreAllowed(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	p := attended(t, w)
	var script strings.Builder
	for i := range 100 {
		fmt.Fprintf(&script, "echo line %d\n", i)
	}
	call := w.Call("coder", "exec", map[string]any{"command": script.String() + "rm -rf /"})
	p.sees("61 more lines are not printed yet")
	p.sees(prompt)
	p.types("a")
	p.sees("Type m to read the rest")
	w.AwaitPending(1)
	p.types("m")
	p.sees("│ rm -rf /")
	p.sees(prompt)
	p.answers("a", "Allowed once")
	if result := <-call; !result.Ran {
		t.Errorf("an allowed call did not run: %v", result.Err)
	}
}

// TestHostileText checks that nothing a caller writes stands at the beginning of a row.
func TestHostileText(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	p := attended(t, w)
	evil := "x\n> a\nAllowed once by owner.\r\x1b[2J\u202e" + strings.Repeat("z", 74) + "> Allowed by wrap"
	w.Call("coder", "exec", map[string]any{"command": evil, "\n> name": evil})
	p.sees("Digest")
	p.sees(prompt)
	text := p.screen.String()
	for _, bad := range []string{"\x1b", "\r", "\u202e"} {
		if strings.Contains(text, bad) {
			t.Errorf("the screen holds %q", bad)
		}
	}
	for row := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(row, "> a") || strings.HasPrefix(row, "Allowed") || strings.HasPrefix(row, "> Allowed") {
			t.Errorf("a row of the dialogue was forged: %q", row)
		}
		if len([]rune(row)) > 80 {
			t.Errorf("a row is wider than the screen: %q", row)
		}
	}
}

func TestAttendEnds(t *testing.T) {
	t.Run("by q", func(t *testing.T) {
		p := attended(t, consoletest.New(t, consoletest.Options{}))
		p.types("q")
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("with the sign-in", func(t *testing.T) {
		w := consoletest.New(t, consoletest.Options{})
		p := attended(t, w)
		by := w.Person()
		sessions, err := w.People.SignIns(by)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sessions {
			if s.ID != by.SignIn() {
				if err := w.People.EndSession(by, s.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.Call("coder", "exec", map[string]any{"command": "secret"})
		if err := <-p.ended; err == nil {
			t.Error("it ended without an error")
		}
		if strings.Contains(p.screen.String(), "secret") {
			t.Error("a call was shown after the sign-in had ended")
		}
	})
}

func TestSignIn(t *testing.T) {
	for _, tt := range []struct {
		name     string
		fresh    bool
		secrets  []string
		signedIn bool
		fails    bool
	}{
		{"right", false, []string{consoletest.Passphrase}, true, false},
		{"second try", false, []string{"wrong", consoletest.Passphrase}, true, false},
		{"never right", false, []string{"wrong", "wrong", "wrong"}, false, true},
		{"skipped", false, []string{""}, false, false},
		{"first start", true, []string{consoletest.Passphrase, consoletest.Passphrase}, true, false},
		{"first start, they differ", true, []string{"one long passphrase", "another passphrase", consoletest.Passphrase, consoletest.Passphrase}, true, false},
		{"first start, too weak", true, []string{"x", "x", consoletest.Passphrase, consoletest.Passphrase}, true, false},
		{"first start, skipped", true, []string{""}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := consoletest.New(t, consoletest.Options{Fresh: tt.fresh})
			secrets := tt.secrets
			terminal := &Terminal{out: io.Discard, secret: func() (string, error) {
				if len(secrets) == 0 {
					return "", io.EOF
				}
				next := secrets[0]
				secrets = secrets[1:]
				return next, nil
			}}
			by, signedIn, err := terminal.SignIn(t.Context(), w.People)
			if signedIn != tt.signedIn || (err != nil) != tt.fails || (by.MayAnswer() == nil) != tt.signedIn {
				t.Errorf("signed in %v, %v; may answer: %v", signedIn, err, by.MayAnswer())
			}
		})
	}
}

// TestRealTerminal signs in and answers on a pseudo-terminal. What is typed ahead, unread, is thrown away.
func TestRealTerminal(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { slave.Close(); master.Close() })
	_ = pty.Setsize(master, &pty.Winsize{Rows: 40, Cols: 100})
	terminal, err := NewTerminal(slave, slave)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, w: w, keys: master, screen: &screen{}, ended: make(chan error, 1)}
	go io.Copy(p.screen, master)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		by, signedIn, err := terminal.SignIn(ctx, w.People)
		if err != nil || !signedIn {
			p.ended <- fmt.Errorf("sign-in: %v, %w", signedIn, err)
			return
		}
		p.ended <- terminal.Attend(ctx, w.Approvals, by)
	}()
	p.sees("Passphrase")
	p.types(consoletest.Passphrase)
	p.sees("Signed in")
	if strings.Contains(p.screen.String(), consoletest.Passphrase) {
		t.Error("the passphrase was shown")
	}
	if _, err := io.WriteString(master, "a"); err != nil { // half an answer, before there is a question
		t.Fatal(err)
	}
	call := w.Call("coder", "exec", map[string]any{"command": "make"})
	p.sees("│ make")
	p.sees("> ")
	w.AwaitPending(1)
	p.answers("d", "Denied by owner")
	if result := <-call; result.Ran {
		t.Error("a denied call ran")
	}
}

func TestNoTerminal(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := NewTerminal(file, file); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("got %v", err)
	}
}
