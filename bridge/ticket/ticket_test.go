//go:build unix

package ticket_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/ticket"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/sandbox"
)

// world is an office at a socket, the real toolward-run, and commands that run on this machine in the place of a sandbox.
type world struct {
	testing.TB
	office  *ticket.Office
	home    string // of the socket
	dir     string // where shells stand
	text    string // of the command that tickets are for
	started atomic.Int64
	ended   atomic.Int64
	terms   ticket.Terms
	uid     atomic.Int64
	mu      sync.Mutex // of what follows
	refuse  error
	making  func(context.Context) error // in the place of what makes a sandbox
	moved   string                      // where the command ended
	group   atomic.Int64
	gateway *toolward.Gateway
}

var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "toolward-run")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "toolward-run")
	out, err := exec.Command("go", "build", "-o", path, "github.com/toolward/toolward/cmd/toolward-run").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

func newWorld(t testing.TB) *world {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	// Socket addresses are short, and those of temporary directories of tests are not.
	home, err := os.MkdirTemp("", "tw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	w := &world{TB: t, home: home, dir: t.TempDir(), text: "true"}
	w.gateway = gatetest.New(t, toolward.Allow, &toolward.Tool{Name: "exec", Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
		return toolward.Result{}, nil
	}}).With(t, func(*toolward.Config) {})
	w.office, err = ticket.Open(ticket.Options{
		Program: path + " --home " + home, Start: w.start,
		UserOf: func(context.Context) (int, bool) { return int(w.uid.Load()), w.uid.Load() >= 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(home, "toolward.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: w.office}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return w
}

// issue gives a ticket, and what the shell runs.
func (w *world) issue(moves bool) (*ticket.Ticket, string) {
	w.Helper()
	pass, err := w.gateway.Admit(w.Context(), toolward.Call{
		ID: "1", Tool: "exec", Arguments: []byte(`{}`), Session: "agent:coder:main", Surface: toolward.SurfaceMCP, Caller: toolward.Caller{Agent: "coder"},
	})
	if err != nil {
		w.Fatal(err)
	}
	given, command, err := w.office.Issue(w.Context(), pass, moves)
	if err != nil {
		w.Fatal(err)
	}
	return given, command
}

// result is what a shell sees.
type result struct {
	out, err string
	code     int
}

// shell runs a text as a client's shell does.
func (w *world) shell(text string, change ...func(*exec.Cmd)) result {
	w.Helper()
	var out, err bytes.Buffer
	c := exec.Command("bash", "-c", text)
	c.Dir, c.Stdout, c.Stderr = w.dir, &out, &err
	for _, f := range change {
		f(c)
	}
	_ = c.Run() // its status says it
	return result{out.String(), err.String(), c.ProcessState.ExitCode()}
}

// running is a process of this machine as one of a sandbox.
type running struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out, err *os.File
	world    *world
}

func (w *world) start(ctx context.Context, _ *toolward.Pass, terms ticket.Terms) (ticket.Command, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return nil, w.refuse
	}
	if w.making != nil {
		if err := w.making(ctx); err != nil {
			return nil, err
		}
	}
	w.started.Add(1)
	w.terms = terms
	c := exec.Command("bash", "-c", w.text)
	c.Dir, c.SysProcAttr = w.dir, &syscall.SysProcAttr{Setpgid: true}
	r := &running{cmd: c, world: w}
	var out, errs *os.File
	r.out, out, _ = os.Pipe()
	r.err, errs, _ = os.Pipe()
	c.Stdout, c.Stderr = out, errs
	if terms.Merged {
		c.Stderr = out
	}
	if terms.Stdin {
		r.in, _ = c.StdinPipe()
	}
	err := c.Start()
	_ = out.Close()
	_ = errs.Close()
	w.group.Store(int64(c.Process.Pid))
	return r, err
}

func (r *running) PID() int              { return r.cmd.Process.Pid }
func (r *running) Stdin() io.WriteCloser { return r.in }
func (r *running) Stdout() io.Reader     { return r.out }
func (r *running) Stderr() io.Reader     { return r.err }

func (r *running) Resize(sandbox.Size) error { return nil }

func (r *running) Signal(s syscall.Signal) error {
	if errors.Is(syscall.Kill(-r.cmd.Process.Pid, s), syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return nil
}

func (r *running) Wait(ctx context.Context) (sandbox.ExitStatus, error) {
	ended := make(chan *os.ProcessState, 1)
	go func() {
		state, _ := r.cmd.Process.Wait() // it was started
		ended <- state
	}()
	select {
	case state := <-ended:
		status := state.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			return sandbox.ExitStatus{Code: -1, Signal: status.Signal()}, nil
		}
		return sandbox.ExitStatus{Code: status.ExitStatus()}, nil
	case <-ctx.Done():
		_ = r.Signal(syscall.SIGKILL)
		<-ended
		return sandbox.ExitStatus{}, ctx.Err()
	}
}

func (r *running) Ended(status sandbox.ExitStatus, _ error, tail []byte) (note, dir string) {
	r.world.ended.Add(1)
	if status.Code == 77 {
		note = "it said: " + string(tail)
	}
	return note, r.world.moved
}

// TestLikeTheShell: a command through its ticket is for its shell what it is without.
func TestLikeTheShell(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":      "true",
		"a status":     "exit 3",
		"both outputs": "echo out; echo err >&2; echo more",
		"a signal":     "kill -TERM $$",
		"killed":       "kill -KILL $$",
		"much":         "seq 200000",
		"binary":       `printf 'a\0b\377'`,
		"reads":        "cat",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.text = text
			input := func(c *exec.Cmd) { c.Stdin = strings.NewReader("line\nwithout end") }
			want := w.shell(text, input)
			_, command := w.issue(false)
			if strings.HasPrefix(text, "kill") {
				command = "exec " + command
			}
			if got := w.shell(command, input); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestOrderOfOutputs: what goes to one place is there in the order in which it was written.
func TestOrderOfOutputs(t *testing.T) {
	w := newWorld(t)
	w.text = "for i in $(seq 300); do echo o$i; echo e$i >&2; done"
	want := w.shell("{ " + w.text + "; } 2>&1")
	_, command := w.issue(false)
	if got := w.shell(command + " 2>&1"); got != want {
		t.Error("the lines come in another order")
	}
	w.mu.Lock()
	terms := w.terms
	w.mu.Unlock()
	if !terms.Merged || terms.Stdin {
		t.Errorf("%+v", terms)
	}
	w.text = "echo appended"
	_, command = w.issue(false)
	w.shell("echo first > file; " + command + " >> file; echo last >> file") // a file that is only appended to takes no moved pages
	if got := w.shell("cat file"); got.out != "first\nappended\nlast\n" {
		t.Errorf("%q", got.out)
	}
}

func TestTheShellFollows(t *testing.T) {
	w := newWorld(t)
	w.text, w.moved = "echo out; echo err >&2; exit 0", "/usr"
	_, command := w.issue(true)
	if got := w.shell(command + "; echo $? $PWD"); got.out != "out\n0 /usr\n" || got.err != "err\n" {
		t.Errorf("%+v", got)
	}
	w.text, w.moved = "exit 5", ""
	_, command = w.issue(true)
	if got := w.shell(command + "; echo $? $PWD"); got.out != "5 "+w.dir+"\n" {
		t.Errorf("%+v", got)
	}
}

func TestNote(t *testing.T) {
	w := newWorld(t)
	w.text = "echo last words >&2; exit 77"
	_, command := w.issue(false)
	if got := w.shell(command); got.err != "last words\nit said: last words\n" || got.code != 77 {
		t.Errorf("%+v", got)
	}
}

// TestTicketsRefuse: whatever is not as expected, nothing runs, and one line says so.
func TestTicketsRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(w *world, given *ticket.Ticket, command string) string
		want  string
	}{
		"used":         {func(w *world, _ *ticket.Ticket, c string) string { w.shell(c); w.started.Store(0); return c }, "already"},
		"unknown":      {func(_ *world, _ *ticket.Ticket, c string) string { return c[:len(c)-2] + "aa" }, "not known"},
		"cut":          {func(_ *world, _ *ticket.Ticket, c string) string { return c[:len(c)-3] }, "not known"},
		"void":         {func(_ *world, g *ticket.Ticket, c string) string { g.Void(); return c }, "not known"},
		"another user": {func(w *world, _ *ticket.Ticket, c string) string { w.uid.Store(4711); return c }, "another user"},
		"nobody":       {func(w *world, _ *ticket.Ticket, c string) string { w.uid.Store(-1); return c }, "refused toolward-run itself"},
		"not started": {func(w *world, _ *ticket.Ticket, c string) string {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.refuse = errors.New("there is no sandbox")
			return c
		}, "did not run: there is no sandbox"},
		"no daemon": {func(_ *world, _ *ticket.Ticket, c string) string {
			return strings.Replace(c, "--home /", "--home /none/", 1)
		}, "not running"},
		"by hand":    {func(_ *world, _ *ticket.Ticket, c string) string { return strings.Fields(c)[0] }, "not to be called by hand"},
		"more words": {func(_ *world, _ *ticket.Ticket, c string) string { return c + " rm -rf /" }, "not to be called by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			given, command := w.issue(false)
			got := w.shell(test.spoil(w, given, command))
			if got.code != 126 || got.out != "" || !strings.Contains(got.err, test.want) || strings.Count(got.err, "\n") != 1 {
				t.Errorf("%+v, want %q", got, test.want)
			}
			if w.started.Load() != 0 {
				t.Error("something ran")
			}
		})
	}
}

// TestRace: of runners that show one ticket at the same time one starts its command.
func TestRace(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		w.started.Store(0)
		_, command := w.issue(false)
		var all sync.WaitGroup
		var well atomic.Int64
		for range 8 {
			all.Go(func() {
				if w.shell(command).code == 0 {
					well.Add(1)
				}
			})
		}
		all.Wait()
		if w.started.Load() != 1 || well.Load() != 1 {
			t.Fatalf("%d started, %d went well", w.started.Load(), well.Load())
		}
	}
}

// TestGuessing: a million tickets that nobody has given find nothing.
func TestGuessing(t *testing.T) {
	w := newWorld(t)
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	w.issue(false)
	guess := make([]byte, 26)
	for range 1_000_000 {
		for i := range guess {
			guess[i] = alphabet[rand.IntN(len(alphabet))]
		}
		if w.office.Knows(string(guess)) {
			t.Fatalf("%s is known", guess)
		}
	}
}

// TestKilled: who kills toolward-run, at any moment, ends the command with all that it has started, and nothing runs twice.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	w.text = "sleep 300 & sleep 300"
	for i := range 40 {
		w.started.Store(0)
		w.ended.Store(0)
		_, command := w.issue(false)
		c := exec.Command("bash", "-c", "exec "+command)
		c.Dir = w.dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(time.Minute)
		for i%2 == 0 && w.started.Load() == 0 && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(6000)) * time.Microsecond)
		_ = c.Process.Kill() // it runs
		_ = c.Wait()         // it was killed
		for w.started.Load() != w.ended.Load() && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if w.started.Load() > 1 || w.started.Load() != w.ended.Load() {
			t.Fatalf("%d started, %d ended", w.started.Load(), w.ended.Load())
		}
		if out, _ := exec.Command("pgrep", "-r", "R,S,D,T", "-g", strconv.FormatInt(w.group.Load(), 10)).Output(); len(out) > 0 && w.started.Load() > 0 {
			t.Fatalf("left: %s", out)
		}
	}
}

// TestSignals: what the shell is sent reaches the command.
func TestSignals(t *testing.T) {
	byDefault(t)
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		t.Run(sent.String(), func(t *testing.T) {
			w := newWorld(t)
			w.text = "trap 'echo got it; exit 9' INT TERM HUP USR1; echo ready; while :; do sleep .01; done"
			_, command := w.issue(false)
			c := exec.Command("bash", "-c", "exec "+command)
			c.Dir = w.dir
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			ready := make([]byte, 6)
			if _, err := io.ReadFull(out, ready); err != nil {
				t.Fatal(err)
			}
			_ = c.Process.Signal(sent) // it runs
			rest, _ := io.ReadAll(out) // it ends with the command
			_ = c.Wait()               // its status says it
			if string(rest) != "got it\n" || c.ProcessState.ExitCode() != 9 {
				t.Errorf("%q, %v", rest, c.ProcessState)
			}
		})
	}
}

// TestHostileRunner: whoever speaks to the office as he likes gets nothing started, and the office goes on.
func TestHostileRunner(t *testing.T) {
	w := newWorld(t)
	_, command := w.issue(false)
	secret := command[strings.LastIndexByte(command, ' ')+1:]
	head := "POST /v1/run HTTP/1.1\r\nHost: x\r\nToolward-Ticket: " + secret + "\r\nToolward-Directory: /tmp\r\n"
	for name, say := range map[string]string{
		"nothing":            "",
		"half a head":        head,
		"no directory":       "POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nToolward-Ticket: " + secret + "\r\n\r\n",
		"odd streams":        head + "Toolward-Streams: zz\r\nContent-Length: 0\r\n\r\n",
		"odd terminal":       head + "Toolward-Streams: im\r\nToolward-Terminal: 0x-1\r\nContent-Length: 0\r\n\r\n",
		"no streams at last": head + "Content-Length: 0\r\n\r\nx",
		"environment's lie":  head + "Content-Length: 99999999\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", filepath.Join(w.home, "toolward.sock"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = conn.Write([]byte(say))
			_ = conn.(*net.UnixConn).CloseWrite()
			_, _ = io.ReadAll(conn)
			_ = conn.Close()
			if w.started.Load() != 0 {
				t.Error("something was started")
			}
		})
	}
	if got := w.shell(command); got.code != 0 || w.started.Load() != 1 {
		t.Errorf("afterwards: %+v", got)
	}
}
