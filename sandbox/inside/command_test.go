//go:build linux

package inside_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

func TestCommands(t *testing.T) {
	b := newBox(t, func(s *inside.Setup) { s.Env = append(s.Env, "FROM=sandbox", "BOTH=sandbox") })
	b.put("sub/file", "content\n")
	b.put("script", "no program\n")
	must(t, os.Chmod(b.path("script"), 0o755))
	segment := func(op string, argv ...string) sandbox.Segment { return sandbox.Segment{Argv: argv, Operator: op} }
	for _, test := range []struct {
		name    string
		command sandbox.Command
		want    result
	}{
		{"a program", sandbox.Command{Argv: []string{"echo", "a  b"}}, result{out: "a  b\n"}},
		{"its status", sandbox.Command{Argv: []string{"sh", "-c", "exit 3"}}, result{ExitStatus: sandbox.ExitStatus{Code: 3}}},
		{"both outputs", sandbox.Command{Argv: []string{"sh", "-c", "echo out; echo err >&2"}}, result{out: "out\n", err: "err\n"}},
		{"a directory", sandbox.Command{Argv: []string{"cat", "file"}, Dir: b.path("sub")}, result{out: "content\n"}},
		{"a missing directory", sandbox.Command{Argv: []string{"pwd"}, Dir: b.path("none")}, result{
			out:        b.dir + "\n",
			ExitStatus: sandbox.ExitStatus{Warning: fmt.Sprintf("there is no directory %q: the command ran in %q", b.path("none"), b.dir)},
		}},
		{"environment", sandbox.Command{Argv: []string{"sh", "-c", "echo $FROM $BOTH $OWN $HOME"}, Env: []string{"BOTH=call", "OWN=call"}}, result{out: "sandbox call call " + b.dir + "\n"}},
		{"a missing program", sandbox.Command{Argv: []string{"no-such-program"}}, result{
			err: "toolward: no-such-program: command not found\n", ExitStatus: sandbox.ExitStatus{Code: 127},
		}},
		{"a missing path", sandbox.Command{Argv: []string{"./none"}}, result{err: "toolward: ./none: command not found\n", ExitStatus: sandbox.ExitStatus{Code: 127}}},
		{"no program", sandbox.Command{Argv: []string{"./script"}}, result{err: "toolward: ./script: it cannot be executed\n", ExitStatus: sandbox.ExitStatus{Code: 126}}},
		{"a directory as program", sandbox.Command{Argv: []string{"./sub"}}, result{err: "toolward: ./sub: it cannot be executed\n", ExitStatus: sandbox.ExitStatus{Code: 126}}},
		{"a signal", sandbox.Command{Argv: []string{"sh", "-c", "kill -USR1 $$"}}, result{ExitStatus: sandbox.ExitStatus{Code: -1, Signal: syscall.SIGUSR1}}},
		{"a shell", sandbox.Command{Shell: "echo $((1+1)) | cat"}, result{out: "2\n"}},
		{"a shell's path", sandbox.Command{Shell: `case "$PATH" in /first:*) echo yes "${TOOLWARD_PREPEND_PATH-unset}";; esac`, Env: []string{"PATH=/first:/bin:/usr/bin"}}, result{out: "yes unset\n"}},
		{"nothing to read", sandbox.Command{Argv: []string{"cat"}}, result{}},
		{"one understood program", sandbox.Command{Segments: []sandbox.Segment{{Argv: []string{"sh", "-c", "echo $X"}, Env: []string{"X=1"}}}}, result{out: "1\n"}},
		{"a pipe", sandbox.Command{Segments: []sandbox.Segment{segment("|", "echo", "b\na"), segment("", "sort")}}, result{out: "a\nb\n"}},
		{"and, or", sandbox.Command{Segments: []sandbox.Segment{segment("&&", "false"), segment("||", "echo", "no"), segment(";", "echo", "yes"), segment("", "echo", "end")}}, result{out: "yes\nend\n"}},
		{"a missing program among others", sandbox.Command{Segments: []sandbox.Segment{segment("||", "no-such-program"), segment("", "echo", "yes")}}, result{out: "yes\n", err: "toolward: no-such-program: command not found\n"}},
		{"a missing program at the end", sandbox.Command{Segments: []sandbox.Segment{segment(";", "true"), segment("", "no-such-program")}}, result{
			err: "toolward: no-such-program: command not found\n", ExitStatus: sandbox.ExitStatus{Code: 127},
		}},
		{"a program that is made before", sandbox.Command{Segments: []sandbox.Segment{
			segment("&&", "cp", "/bin/echo", "made"), segment("&&", "./made", "-n", "first "), segment("&&", "cp", "--remove-destination", "/usr/bin/printf", "made"), segment("", "./made", "%s", "then"),
		}}, result{out: "first then"}},
		{"cd", sandbox.Command{Segments: []sandbox.Segment{segment("&&", "cd", "sub"), segment(";", "cat", "file"), segment("", "pwd")}}, result{out: "content\n" + b.path("sub") + "\n"}},
		{"redirections", sandbox.Command{Segments: []sandbox.Segment{
			{Argv: []string{"sh", "-c", "cat; echo err >&2"}, Operator: ";", Redirects: []sandbox.Redirect{
				{Kind: sandbox.RedirectText, Text: "text\n"}, {Kind: sandbox.RedirectOut, FD: 1, Path: "out"}, {Kind: sandbox.RedirectCopy, FD: 2, From: 1},
			}},
			{Argv: []string{"cat"}, Redirects: []sandbox.Redirect{{Kind: sandbox.RedirectIn, Path: b.path("out")}}},
		}}, result{out: "text\nerr\n"}},
		{"where it ended", sandbox.Command{Argv: []string{"bash", "-c", "cd sub; pwd -P >&63"}, Reports: true}, result{ExitStatus: sandbox.ExitStatus{Dir: b.path("sub")}}},
		{"no report", sandbox.Command{Argv: []string{"bash", "-c", "cd sub"}, Reports: true}, result{}},
		{"a report that is no directory", sandbox.Command{Argv: []string{"bash", "-c", "printf '/a/../b' >&63"}, Reports: true}, result{}},
		{"a report without end", sandbox.Command{Argv: []string{"bash", "-c", "head -c 60000 /dev/zero >&63"}, Reports: true}, result{}},
		{"nobody asked for a report", sandbox.Command{Argv: []string{"bash", "-c", "{ echo /tmp >&63; } 2>/dev/null"}}, result{ExitStatus: sandbox.ExitStatus{Code: 1}}},
		{"a process left behind", sandbox.Command{Argv: []string{"sh", "-c", "sleep 1000 & echo started"}}, result{out: "started\n", ExitStatus: sandbox.ExitStatus{Leftover: true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := b.do(test.command); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// TestLeftToGoOn: what a command leaves behind goes on and can write; what it is then stopped with, or what is stopped, does not.
func TestLeftToGoOn(t *testing.T) {
	b := newBox(t)
	const server = "(echo before; while [ ! -e go ]; do sleep .01; done; echo after; echo done > written) & echo started"
	p, err := b.Start(b.context(), sandbox.Command{Argv: []string{"bash", "-c", server}, Keeps: true})
	must(t, err)
	out, err := io.ReadAll(p.Stdout())
	must(t, err)
	status, err := p.Wait(b.context())
	must(t, err)
	if status != (sandbox.ExitStatus{}) || !strings.Contains(string(out), "started") {
		t.Fatalf("%+v %q", status, out)
	}
	b.put("go", "")
	if got := b.shell("while [ ! -s written ]; do sleep .01; done; cat written"); got.out != "done\n" {
		t.Fatalf("what was left behind did not go on: %+v", got)
	}
	stopped, err := b.Start(b.context(), sandbox.Command{Argv: []string{"bash", "-c", "sleep 1000 & echo $!; wait"}, Keeps: true})
	must(t, err)
	var pid int
	_, err = fmt.Fscan(stopped.Stdout(), &pid)
	must(t, err)
	must(t, stopped.Signal(syscall.SIGKILL))
	_, err = stopped.Wait(b.context())
	must(t, err)
	if got := b.shell(fmt.Sprintf("for i in $(seq 500); do kill -0 %d 2>/dev/null || exit 0; sleep .01; done; exit 1", pid)); got.Code != 0 {
		t.Error("what a command had started that was killed goes on")
	}
}

func TestOutputAndInputOfAnySize(t *testing.T) {
	b := newBox(t)
	var text bytes.Buffer
	for i := range 1 << 19 { // 8 MiB, no two parts alike
		fmt.Fprintf(&text, "%015d\n", i)
	}
	big := text.Bytes()
	p, err := b.Start(b.context(), sandbox.Command{Argv: []string{"cat"}, Stdin: true})
	must(t, err)
	go func() {
		p.Stdin().Write(big)
		p.Stdin().Close()
	}()
	got, err := io.ReadAll(p.Stdout())
	must(t, err)
	if !bytes.Equal(got, big) {
		t.Errorf("%d bytes came back, which are not the %d that were sent", len(got), len(big))
	}
	if status, err := p.Wait(b.context()); err != nil || status.Code != 0 {
		t.Error(status, err)
	}
}

// Whoever does not read one command's output holds up nobody else, and nothing is lost meanwhile.
func TestASlowReaderIsAlone(t *testing.T) {
	b := newBox(t)
	slow, err := b.Start(b.context(), sandbox.Command{Shell: "head -c 5000000 /dev/zero"})
	must(t, err)
	for range 20 {
		if got := b.shell("echo fast"); got.out != "fast\n" {
			t.Fatal(got)
		}
	}
	n, err := io.Copy(io.Discard, slow.Stdout())
	must(t, err)
	if n != 5_000_000 {
		t.Errorf("%d bytes", n)
	}
}

func TestManyAtOnce(t *testing.T) {
	b := newBox(t)
	var wait sync.WaitGroup
	for i := range 40 {
		wait.Go(func() {
			text := fmt.Sprint("number ", i)
			p, err := b.Start(b.context(), sandbox.Command{Argv: []string{"cat"}, Stdin: true})
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(p.Stdin(), text)
			p.Stdin().Close()
			out, _ := io.ReadAll(p.Stdout())
			if string(out) != text {
				t.Errorf("%q, not %q", out, text)
			}
			p.Wait(b.context())
		})
	}
	wait.Wait()
	var running []sandbox.Process
	for range 48 {
		p, err := b.Start(b.context(), sandbox.Command{Argv: []string{"cat"}, Stdin: true})
		must(t, err)
		running = append(running, p)
	}
	if _, err := b.Start(b.context(), sandbox.Command{Argv: []string{"true"}}); err == nil {
		t.Error("a 49th command started")
	}
	b.put("file", "text")
	if data, _, err := b.ReadFile(b.context(), b.path("file"), 0, 100); string(data) != "text" {
		t.Error("files are held up by commands:", err)
	}
	for _, p := range running {
		p.Stdin().Close()
		p.Wait(b.context())
	}
	if got := b.shell("echo again"); got.out != "again\n" {
		t.Error(got)
	}
}

func TestTerminal(t *testing.T) {
	b := newBox(t)
	p, err := b.Start(b.context(), sandbox.Command{Argv: []string{"sh", "-c", "stty size; read x; stty size; echo got $x"}, Terminal: &sandbox.Size{Cols: 80, Rows: 24}})
	must(t, err)
	var seen strings.Builder
	buffer := make([]byte, 100)
	for !strings.Contains(seen.String(), "24 80") {
		n, err := p.Stdout().Read(buffer)
		must(t, err)
		seen.Write(buffer[:n])
	}
	must(t, p.Resize(sandbox.Size{Cols: 100, Rows: 30}))
	_, err = io.WriteString(p.Stdin(), "line\n")
	must(t, err)
	rest, err := io.ReadAll(p.Stdout())
	must(t, err)
	seen.Write(rest)
	for _, want := range []string{"30 100", "got line"} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("no %q in %q", want, seen.String())
		}
	}
	if status, err := p.Wait(b.context()); err != nil || status.Code != 0 {
		t.Error(status, err)
	}
}

// The context ends a command with all its processes, also one that does not want to.
func TestTheContextEndsACommand(t *testing.T) {
	for name, text := range map[string]string{
		"willing":                  "sleep 1000 & echo $! > pid; echo ready; wait; sleep 1000",
		"unwilling":                "trap '' TERM; sleep 1000 & echo $! > pid; echo ready; while :; do sleep 1; done",
		"its own group":            "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while ! [ -s pid ]; do sleep 0.01; done; echo ready; wait; sleep 1000",
		"its own group, unwilling": "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while ! [ -s pid ]; do sleep 0.01; done; echo ready; trap '' TERM; while :; do sleep 1; done",
		"full of output":           "sleep 1000 & echo $! > pid; echo ready; yes",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			ctx, cancel := context.WithCancel(b.context())
			command := sandbox.Command{Argv: []string{"sh", "-c", text}}
			p, err := b.Start(ctx, command)
			must(t, err)
			_, err = io.ReadFull(p.Stdout(), make([]byte, 6))
			must(t, err)
			pid := b.content("pid")
			if !alive(pid) {
				t.Fatal("the test's process does not run")
			}
			cancel()
			status, err := p.Wait(b.context())
			must(t, err)
			if status.Signal != syscall.SIGTERM && status.Signal != syscall.SIGKILL {
				t.Error(status)
			}
			eventually(t, "its process ends", func() bool { return !alive(pid) })
			if got := b.shell("echo works"); got.out != "works\n" {
				t.Error(got)
			}
		})
	}
}

func TestSignals(t *testing.T) {
	b := newBox(t)
	p, err := b.Start(b.context(), sandbox.Command{Argv: []string{"sh", "-c", "trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.05; done"}})
	must(t, err)
	_, err = io.ReadFull(p.Stdout(), make([]byte, 6))
	must(t, err)
	must(t, p.Signal(syscall.SIGUSR1))
	if got := b.finish(p); got.out != "caught\n" || got.Code != 5 {
		t.Error(got)
	}
}

// Commands that run when the gateway hangs up, or is killed, end with the program inside.
func TestHangingUpEndsEverything(t *testing.T) {
	b := newBox(t)
	p, err := b.Start(b.context(), sandbox.Command{Argv: []string{"sh", "-c", "trap '' TERM HUP; setsid sleep 1000 & echo $$; while :; do sleep 1; done"}})
	must(t, err)
	buffer := make([]byte, 20)
	n, err := p.Stdout().Read(buffer)
	must(t, err)
	pid := string(buffer[:n])
	b.Client.Close()
	if _, err := p.Wait(b.context()); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Error(err)
	}
	eventually(t, "the command ends", func() bool { return !alive(pid) })
	_, err = b.Start(b.context(), sandbox.Command{Argv: []string{"true"}})
	wantCode(t, "start after the end", err, sandbox.CodeUnavailable)
}

// The program inside can be killed by what it runs. Everything that waits is told.
func TestKilledFromInside(t *testing.T) {
	b := newBox(t)
	waiting, err := b.Start(b.context(), sandbox.Command{Argv: []string{"cat"}, Stdin: true})
	must(t, err)
	_, err = b.Start(b.context(), sandbox.Command{Argv: []string{"sh", "-c", "kill -9 $PPID"}})
	if err != nil {
		wantCode(t, "the killer", err, sandbox.CodeUnavailable)
	}
	_, err = waiting.Wait(b.context())
	wantCode(t, "a waiting command", err, sandbox.CodeUnavailable)
	select {
	case <-b.Done():
	case <-time.After(patience):
		t.Error("the client did not notice")
	}
}

// What was started inside cannot look into the program inside: its memory, its files, its environment.
func TestItCannotBeReadByWhatItRuns(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root may read everything: what is checked is the mark that keeps others out")
	}
	b := newBox(t)
	got := b.shell("stat -c %u /proc/$PPID/mem; stat -c %U /proc/self/mem")
	if !strings.HasPrefix(got.out, "0\n") {
		t.Errorf("%+v", got)
	}
}

// The parents of orphans are gone; somebody must collect them.
func TestOrphansAreCollected(t *testing.T) {
	b := newBox(t)
	for range 20 {
		b.shell("(setsid sh -c 'sleep 0.1' &)")
	}
	eventually(t, "no process waits to be collected", func() bool {
		out := b.shell(fmt.Sprintf("cat /proc/[0-9]*/stat 2>/dev/null | awk '$4 == %d && $3 == \"Z\"' | wc -l", b.program.Process.Pid)).out
		return strings.TrimSpace(out) == "0"
	})
}
