package builtin

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/ticket"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/light"
)

// lightWorld is a world in which commands of clients are confined lightly, for real.
func lightWorld(t *testing.T) *world {
	t.Helper()
	if _, err := inside.FindProgram(t.Context()); err != nil {
		t.Skip(err)
	}
	l := light.New(light.Options{Program: func(ctx context.Context) (*os.File, []string, error) {
		program, err := inside.FindProgram(ctx)
		if err != nil {
			return nil, nil, err
		}
		return program.File, program.Args, nil
	}})
	t.Cleanup(l.Close)
	if check := l.Check(); check.Mode != light.Namespaces {
		t.Skipf("%+v", check)
	}
	w := newWorld(t)
	w.box.deps.Light, w.box.deps.ByTicket = l, func() bool { return true }
	w.put("ws/t.sh", `eval "$*"`)
	if err := os.Mkdir(filepath.Join(w.workspace, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

// clientCommand is a command of a client as it was judged.
func (w *world) clientCommand(text string) *toolward.Request {
	w.Helper()
	r, err := w.request("exec", args{"command": text})
	if err != nil {
		w.Fatal(err)
	}
	r.Call.ByClient, r.Call.WorkDir = true, w.workspace
	if r.Facts, err = w.box.ClientCommand(w.Context(), r, text, false); err != nil {
		w.Fatalf("%s: %v", text, err)
	}
	return r
}

// started is a command of a client that runs.
func (w *world) started(ctx context.Context, text string, terms ticket.Terms) ticket.Command {
	w.Helper()
	r := w.clientCommand(text)
	terms.Dir = w.workspace
	run, err := w.box.startLightly(r, r.Facts.Prepared.(*execPlan), &terms)
	if err != nil {
		w.Fatalf("%s: %v", text, err)
	}
	return run
}

// What no person saw is started by ticket; what one saw, or wrote down word by word, is run by the client's shell.
func TestWhatStartsByTicket(t *testing.T) {
	w := lightWorld(t)
	cat, err := filepath.EvalSymlinks("/bin/cat")
	if err != nil {
		t.Fatal(err)
	}
	r := w.clientCommand("cat t.sh")
	if yes, moves := ByTicket(r); !yes || moves {
		t.Errorf("unseen: %v, %v", yes, moves)
	}
	if yes, moves := ByTicket(w.clientCommand("cd sub && ls")); !yes || !moves {
		t.Errorf("unseen, and moves: %v, %v", yes, moves)
	}
	r.Seen = true
	if yes, _ := ByTicket(r); yes {
		t.Error("a person saw it")
	}
	if _, err := w.commands.Configure(command.Configuration{Gateway: command.Config{Preset: command.Developer}, Writes: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.commands.Allow(t.Context(), w.agent, []toolward.CommandEntry{{Pattern: cat, Argv: []string{cat, "t.sh"}}}); err != nil {
		t.Fatal(err)
	}
	if yes, _ := ByTicket(w.clientCommand("cat t.sh")); yes {
		t.Error("a person wrote it down word by word")
	}
	w.box.deps.ByTicket = func() bool { return false }
	if yes, _ := ByTicket(w.clientCommand("ls")); yes {
		t.Error("nobody could start it")
	}
}

func TestAClientsCommandOnTheMachine(t *testing.T) {
	w := lightWorld(t)
	for name, c := range map[string]struct {
		command, in string
		terms       ticket.Terms
		out, err    string
		code        int
		note, dir   string
	}{
		"streams and status":    {command: `bash t.sh 'cat; echo said >&2; exit 7'`, in: "given", terms: ticket.Terms{Stdin: true}, out: "given", err: "said\n", code: 7},
		"one output":            {command: `bash t.sh 'echo a; echo b >&2; echo c'`, terms: ticket.Terms{Merged: true}, out: "a\nb\nc\n"},
		"it moves":              {command: "cd sub && pwd", terms: ticket.Terms{Reports: true}, out: "WS/sub\n", dir: "WS/sub"},
		"what fails moves, too": {command: "cd sub && cat nothing 2>/dev/null", terms: ticket.Terms{Reports: true}, code: 1, dir: "WS/sub"},
		"the environment judged": {
			command: `bash t.sh 'echo $TERM ${GH_TOKEN-unset} ${LD_PRELOAD-unset}; exit 1'`, out: "dumb unset unset\n", code: 1, note: "differ there: GH_TOKEN, LD_PRELOAD",
			terms: ticket.Terms{Environ: []string{"TERM=dumb", "GH_TOKEN=x", "LD_PRELOAD=/x.so", "PWD=/", "CLAUDECODE=1"}},
		},
		"a signal": {command: `bash t.sh 'kill -TERM $$'`, code: -int(syscall.SIGTERM)},
	} {
		t.Run(name, func(t *testing.T) {
			run := w.started(t.Context(), c.command, c.terms)
			if in := run.Stdin(); in != nil {
				go func() {
					_, _ = io.WriteString(in, c.in) // what it reads shows
					_ = in.Close()                  // the same
				}()
			}
			errs := make(chan string)
			go func() {
				text, _ := io.ReadAll(run.Stderr())
				errs <- string(text)
			}()
			outs := make(chan string)
			go func() {
				text, _ := io.ReadAll(run.Stdout())
				outs <- string(text)
			}()
			status, err := run.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			here := func(s string) string { return strings.ReplaceAll(s, "WS", w.workspace) }
			if out, errText := <-outs, <-errs; out != here(c.out) || errText != c.err {
				t.Errorf("wrote %q, %q", out, errText)
			}
			code := status.Code
			if status.Signal != 0 {
				code = -int(status.Signal)
			}
			note, dir := run.Ended(status, nil, nil)
			if code != c.code || dir != here(c.dir) || !strings.Contains(note, c.note) || c.note == "" && note != "" {
				t.Errorf("ended with %+v, %q, %q", status, note, dir)
			}
		})
	}
}

// A runner that is killed ends what it stands for, with all that it has started.
func TestAClientsCommandIsGivenUp(t *testing.T) {
	w := lightWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	run := w.started(ctx, `bash t.sh 'sleep 1000 & echo began; sleep 1000'`, ticket.Terms{})
	if _, err := io.ReadFull(run.Stdout(), make([]byte, len("began"))); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err := run.Wait(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if rest, err := io.ReadAll(run.Stdout()); err != nil || string(rest) != "\n" { // it would wait for what goes on
		t.Errorf("%q, %v", rest, err)
	}
	run.Ended(sandbox.ExitStatus{}, err, nil)
}

// What was exchanged after it was judged does not run.
func TestAClientsCommandThatWasExchanged(t *testing.T) {
	w := lightWorld(t)
	r := w.clientCommand("bash t.sh 'echo x'")
	w.put("ws/t.sh", "touch made")
	if _, err := w.box.startLightly(r, r.Facts.Prepared.(*execPlan), &ticket.Terms{Dir: w.workspace}); err == nil {
		t.Error("it runs")
	}
	if names, err := os.ReadDir(w.workspace); err != nil || slices.ContainsFunc(names, func(e os.DirEntry) bool { return e.Name() == "made" }) {
		t.Errorf("%v, %v", names, err)
	}
}
