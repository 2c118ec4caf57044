package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/plugin"
)

// guarded is a real gateway with plug-ins and one tool, "write", which notes the arguments that it really ran with.
type guarded struct {
	*gatetest.Harness
	gateway *toolward.Gateway
	runner  *plugin.Runner
	log     *safeBuffer

	mu  sync.Mutex
	ran []string
}

// safeBuffer is a log that can be read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// configure puts a configuration in force.
func configure(r *plugin.Runner, c plugin.Config) error {
	commit, err := r.Prepare(c)
	if err == nil {
		commit()
	}
	return err
}

func newGuarded(t testing.TB, verdict toolward.Verdict, registry *plugin.Registry, config plugin.Config) *guarded {
	t.Helper()
	g := &guarded{log: &safeBuffer{}}
	g.Harness = gatetest.New(t, verdict, &toolward.Tool{Name: "write", Run: g.run})
	g.Approver.Decision = toolward.AllowOnce
	log := slog.New(slog.NewTextHandler(g.log, nil))
	g.runner = plugin.New(plugin.Options{Registry: registry, Log: log, Environ: os.LookupEnv})
	t.Cleanup(g.runner.Close)
	if err := configure(g.runner, config); err != nil {
		t.Fatal(err)
	}
	g.gateway = g.With(t, func(c *toolward.Config) { c.Hooks, c.Log = g.runner, log })
	return g
}

func (g *guarded) run(_ context.Context, r *toolward.Request) (toolward.Result, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ran = append(g.ran, string(r.Params.Canonical()))
	return toolward.TextResult("done"), nil
}

func (g *guarded) write(t testing.TB, arguments string) error { return g.writeAs(t, "c1", arguments) }

// writeAs makes a call with an id: answers of people are used up by it.
func (g *guarded) writeAs(t testing.TB, id, arguments string) error {
	_, err := g.gateway.Call(t.Context(), toolward.Call{
		ID: id, Run: "r1", Tool: "write", Arguments: json.RawMessage(arguments), Session: "agent:main:main",
		Caller: toolward.Caller{Agent: "main", Owner: true}, Surface: toolward.SurfaceMCP,
	})
	return err
}

func codeOf(err error) toolward.Code {
	var refusal *toolward.Refusal
	if err == nil || !errors.As(err, &refusal) {
		return ""
	}
	return refusal.Code
}

// program is the entry of a plug-in that behaves so.
func program(t testing.TB, behavior string, arguments ...string) plugin.Entry {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	timeout := 5000
	return plugin.Entry{
		Kind: plugin.KindCommand, Command: append([]string{self, "plugin", behavior}, arguments...),
		Hooks: []plugin.Name{plugin.BeforeToolCall}, TimeoutMs: &timeout,
	}
}

func only(e plugin.Entry) plugin.Config {
	return plugin.Config{Entries: map[string]plugin.Entry{"guard": e}}
}

// Every way of a program to misbehave is a refusal, and the tool does not run.
func TestProgramsAreContained(t *testing.T) {
	for behavior, want := range map[string]toolward.Code{
		"hangs":                toolward.CodeHookTimeout,
		"answers late":         toolward.CodeHookTimeout,
		"crashes":              toolward.CodeHookError,
		"crashes at start":     toolward.CodeHookError,
		"panics":               toolward.CodeHookError,
		"talks first":          toolward.CodeHookError,
		"reports an error":     toolward.CodeHookError,
		"answers garbage":      toolward.CodeHookError,
		"answers half":         toolward.CodeHookError,
		"answers broken text":  toolward.CodeHookError,
		"answers twice in one": toolward.CodeHookError,
		"answers another":      toolward.CodeHookError,
		"answers a number":     toolward.CodeHookError,
		"floods":               toolward.CodeHookError,
		"floods lines":         toolward.CodeHookError,
		"closes its output":    toolward.CodeHookError,
		"floods errors":        "",
	} {
		t.Run(behavior, func(t *testing.T) {
			t.Parallel()
			e := program(t, behavior)
			if want == toolward.CodeHookTimeout {
				*e.TimeoutMs = 200
			}
			g := newGuarded(t, toolward.Allow, nil, only(e))
			start := time.Now()
			err := g.write(t, `{"path":"a"}`)
			if codeOf(err) != want || (want == "") != (err == nil) {
				t.Errorf("%v, want %q\n%s", err, want, g.log)
			}
			if (len(g.ran) == 0) != (want != "") {
				t.Errorf("the tool ran with %q", g.ran)
			}
			if took := time.Since(start); want == toolward.CodeHookTimeout && took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
			if run := g.Auditor.Decisions()[0].Hooks[0]; run.Plugin != "guard" || run.Hook != "before_tool_call" || (want != "") != (run.Detail != "") {
				t.Errorf("recorded: %+v", run)
			}
			if strings.Contains(g.log.String(), "sk-ant-api03") {
				t.Error("a secret is in the log")
			}
		})
	}
}

// A late answer does not count for the next call, and the program is there again after its end.
func TestProgramComesBack(t *testing.T) {
	e := program(t, "answers late")
	*e.TimeoutMs = 100
	g := newGuarded(t, toolward.Allow, nil, only(e))
	if code := codeOf(g.write(t, `{"path":"a"}`)); code != toolward.CodeHookTimeout {
		t.Fatalf("%q", code)
	}
	if code := codeOf(g.write(t, `{"path":"b"}`)); code != toolward.CodeHookTimeout && code != toolward.CodeHookError {
		t.Fatalf("%q", code)
	}
	*e.TimeoutMs = 10_000
	if err := configure(g.runner, only(e)); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 50 {
		if err = g.write(t, `{"path":"c"}`); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond) // back-off of a real program
	}
	if err != nil || len(g.ran) != 1 || g.ran[0] != `{"path":"late"}` {
		t.Errorf("%v, ran %q", err, g.ran)
	}
}

// A program is ended with everything that it started.
func TestChildrenEndWithTheProgram(t *testing.T) {
	for _, behavior := range []string{"forks", "forks and ends"} {
		t.Run(behavior, func(t *testing.T) {
			note := filepath.Join(t.TempDir(), "pid")
			e := program(t, behavior, note)
			*e.TimeoutMs = 3000
			g := newGuarded(t, toolward.Allow, nil, only(e))
			if err := g.write(t, `{}`); err == nil {
				t.Fatal("allowed")
			}
			raw, err := os.ReadFile(note)
			if err != nil {
				t.Fatal(err)
			}
			child, err := strconv.Atoi(string(raw))
			if err != nil {
				t.Fatal(err)
			}
			if !eventually(5*time.Second, func() bool { return ended(child) }) {
				t.Errorf("process %d is still there", child)
			}
		})
	}
}

// ended reports whether a process is gone, or only waits to be collected by its parent.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func eventually(limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return done()
}

// A program gets next to nothing of the gateway's environment.
func TestProgramsGetAMinimalEnvironment(t *testing.T) {
	t.Setenv("TOOLWARD_TEST_KEY", "secret-of-the-gateway")
	t.Setenv("GUARD_REGION", "north")
	e := program(t, "environment")
	e.Env = []string{"GUARD_REGION", "NOT_SET"}
	err := newGuarded(t, toolward.Allow, nil, only(e)).write(t, `{}`)
	if want := "PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 GUARD_REGION=north"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// Around a call the hooks run in this order, and the listener gets the result as the tool gave it.
func TestOrderAroundACall(t *testing.T) {
	registry := plugin.NewRegistry()
	own, err := registry.Plugin("all")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	note := func(s string) { mu.Lock(); defer mu.Unlock(); order = append(order, s) }
	heard := make(chan string, 1)
	err = errors.Join(
		own.OnBeforeToolCall(func(context.Context, plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) {
			note("before_tool_call")
			return plugin.BeforeToolCallResult{}, nil
		}),
		own.OnToolResultPersist(func(plugin.ToolResultEvent) (plugin.Replacement, error) {
			note("tool_result_persist")
			return plugin.Replace(toolward.TextResult("cleaned")), nil
		}),
		own.OnAfterToolCall(func(_ context.Context, e plugin.AfterToolCallEvent) error {
			note("after_tool_call")
			heard <- e.Result.Content[0].Text
			return nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	g := newGuarded(t, toolward.Allow, registry, plugin.Config{})
	if err := g.write(t, `{}`); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "done" || strings.Join(order, " ") != "before_tool_call tool_result_persist after_tool_call" {
		t.Errorf("heard %q; order %q", got, order)
	}
}
