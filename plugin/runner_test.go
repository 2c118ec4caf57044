package plugin_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/plugin"
)

// before is a handler of before_tool_call with what it is registered with.
type before struct {
	id      string
	f       plugin.BeforeToolCallFunc
	options []plugin.Option
}

func registryOf(t testing.TB, list ...before) *plugin.Registry {
	t.Helper()
	registry := plugin.NewRegistry()
	for _, b := range list {
		own, err := registry.Plugin(b.id)
		if err == nil {
			err = own.OnBeforeToolCall(b.f, b.options...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return registry
}

func says(r plugin.BeforeToolCallResult) plugin.BeforeToolCallFunc {
	return func(context.Context, plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) { return r, nil }
}

func sets(name string, value any) plugin.BeforeToolCallResult {
	return plugin.BeforeToolCallResult{Params: plugin.Change(map[string]any{name: value})}
}

func effects(runs []toolward.HookRun) (out []string) {
	for _, r := range runs {
		out = append(out, r.Plugin+" "+r.Effect)
	}
	return out
}

func TestHandlersInProcess(t *testing.T) {
	fails := func(context.Context, plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) {
		return plugin.BeforeToolCallResult{}, errors.New("db down")
	}
	panics := func(context.Context, plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) { panic("oops") }
	exits := func(context.Context, plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) {
		runtime.Goexit()
		panic("unreachable")
	}
	hangs := func(context.Context, plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) {
		time.Sleep(time.Hour)
		return sets("path", "late"), nil
	}
	asks := plugin.BeforeToolCallResult{RequireApproval: true}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	open := plugin.Config{Entries: map[string]plugin.Entry{"x": {Kind: plugin.KindCompiled, OnError: plugin.Open}}}
	for name, test := range map[string]struct {
		handlers []before
		config   plugin.Config
		code     toolward.Code
		asked    int
		ran      string
		effects  []string
		took     time.Duration
	}{
		"error":   {[]before{{id: "x", f: fails}, {id: "y", f: says(sets("path", "b"))}}, plugin.Config{}, toolward.CodeHookError, 0, "", []string{"x error"}, 0},
		"panic":   {[]before{{id: "x", f: panics}}, plugin.Config{}, toolward.CodeHookError, 0, "", []string{"x error"}, 0},
		"goexit":  {[]before{{id: "x", f: exits}}, plugin.Config{}, toolward.CodeHookError, 0, "", []string{"x error"}, 0},
		"cycle":   {[]before{{id: "x", f: says(plugin.BeforeToolCallResult{Params: plugin.Change(cyclic)})}}, plugin.Config{}, toolward.CodeHookError, 0, "", []string{"x error"}, 0},
		"no JSON": {[]before{{id: "x", f: says(sets("path", func() {}))}}, plugin.Config{}, toolward.CodeHookError, 0, "", []string{"x error"}, 0},
		"hang":    {[]before{{id: "x", f: hangs}}, plugin.Config{}, toolward.CodeHookTimeout, 0, "", []string{"x timeout"}, 15 * time.Second},
		"hang, short time": {
			[]before{{"x", hangs, []plugin.Option{plugin.Timeout(time.Second)}}}, plugin.Config{}, toolward.CodeHookTimeout, 0, "", []string{"x timeout"}, time.Second,
		},
		"hang, operator's time": {
			[]before{{"x", hangs, []plugin.Option{plugin.Timeout(time.Second)}}},
			plugin.Config{Entries: map[string]plugin.Entry{"x": {Kind: plugin.KindCompiled, TimeoutMs: new(2000)}}},
			toolward.CodeHookTimeout, 0, "",
			[]string{"x timeout"},
			2 * time.Second,
		},
		"the operator opens errors":    {[]before{{id: "x", f: fails}, {id: "y", f: says(sets("path", "b"))}}, open, "", 0, `{"path":"b"}`, []string{"x error", "y rewrite"}, 0},
		"the operator opens time-outs": {[]before{{id: "x", f: hangs}}, open, "", 0, `{"path":"a"}`, []string{"x timeout"}, 15 * time.Second},
		"open is no block's end":       {[]before{{id: "x", f: says(plugin.BeforeToolCallResult{Block: true})}}, open, toolward.CodeHookBlock, 0, "", []string{"x block"}, 0},
		"switched off":                 {[]before{{id: "x", f: fails}}, plugin.Config{Entries: map[string]plugin.Entry{"x": {Kind: plugin.KindCompiled, Enabled: new(false)}}}, "", 0, `{"path":"a"}`, nil, 0},
		"denied":                       {[]before{{id: "x", f: fails}}, plugin.Config{Deny: []string{"x"}}, "", 0, `{"path":"a"}`, nil, 0},
		"not allowed":                  {[]before{{id: "x", f: fails}, {id: "y", f: says(sets("path", "b"))}}, plugin.Config{Allow: []string{"y"}}, "", 0, `{"path":"b"}`, []string{"y rewrite"}, 0},
		"other tools":                  {[]before{{"x", fails, []plugin.Option{plugin.Tools("exec", "read*")}}}, plugin.Config{}, "", 0, `{"path":"a"}`, nil, 0},
		"these tools":                  {[]before{{"x", fails, []plugin.Option{plugin.Tools("exec", " WR*e ")}}}, plugin.Config{}, toolward.CodeHookError, 0, "", []string{"x error"}, 0},
		"asking freezes": {
			[]before{{id: "x", f: says(plugin.BeforeToolCallResult{RequireApproval: true, Params: plugin.Change(map[string]any{"path": "b"})})}, {id: "y", f: says(sets("path", "c"))}},
			plugin.Config{},
			"", 1, `{"path":"b"}`,
			[]string{"x ask", "y ignored"},
			0,
		},
		"asking twice asks once":  {[]before{{id: "x", f: says(asks)}, {id: "y", f: says(asks)}}, plugin.Config{}, "", 1, `{"path":"a"}`, []string{"x ask", "y pass"}, 0},
		"asked, then blocked":     {[]before{{id: "x", f: says(asks)}, {id: "y", f: says(plugin.BeforeToolCallResult{Block: true})}}, plugin.Config{}, toolward.CodeHookBlock, 0, "", []string{"x ask", "y block"}, 0},
		"asked, then failed":      {[]before{{id: "x", f: says(asks)}, {id: "y", f: fails}}, plugin.Config{}, toolward.CodeHookError, 0, "", []string{"x ask", "y error"}, 0},
		"same value is no change": {[]before{{id: "x", f: says(sets("path", "a"))}}, plugin.Config{}, "", 0, `{"path":"a"}`, []string{"x pass"}, 0},
		"the operator's order": {
			[]before{{id: "x", f: says(sets("path", "x"))}, {id: "y", f: says(sets("path", "y"))}},
			plugin.Config{Entries: map[string]plugin.Entry{"y": {Kind: plugin.KindCompiled, Priority: new(1)}}},
			"", 0, `{"path":"x"}`,
			[]string{"y rewrite", "x rewrite"},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuarded(t, toolward.Allow, registryOf(t, test.handlers...), test.config)
				start := time.Now()
				err := g.write(t, `{"path":"a"}`)
				if took := time.Since(start); took != test.took {
					t.Errorf("took %v", took)
				}
				if codeOf(err) != test.code || (err == nil) != (test.code == "") || len(g.Approver.Asked()) != test.asked || strings.Join(g.ran, " ") != test.ran {
					t.Errorf("%v, asked %d times, ran %q", err, len(g.Approver.Asked()), g.ran)
				}
				if diff := cmp.Diff(test.effects, effects(g.Auditor.Decisions()[0].Hooks)); diff != "" {
					t.Error(diff)
				}
				time.Sleep(2 * time.Hour) // what was given up ends, and changes nothing
				if strings.Join(g.ran, " ") != test.ran {
					t.Errorf("later: ran %q", g.ran)
				}
			})
		})
	}
}

// A caller that goes away is refused, even by a plug-in that fails open.
func TestWithdrawnCallIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context, _ plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) {
			<-ctx.Done()
			return plugin.BeforeToolCallResult{}, nil
		}
		g := newGuarded(t, toolward.Allow, registryOf(t, before{id: "x", f: hangs}),
			plugin.Config{Entries: map[string]plugin.Entry{"x": {Kind: plugin.KindCompiled, OnError: plugin.Open}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := g.gateway.Call(ctx, toolward.Call{
			Tool: "write", Arguments: []byte(`{}`), Session: "agent:main:main", Caller: toolward.Caller{Agent: "main"},
		})
		if len(g.ran) > 0 || codeOf(err) != toolward.CodeHookError {
			t.Errorf("%v, ran %q", err, g.ran)
		}
	})
}

func TestHandlerThatNeverEndsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int32
		end := make(chan struct{})
		hangs := func(context.Context, plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) {
			started.Add(1)
			<-end
			return plugin.BeforeToolCallResult{}, nil
		}
		g := newGuarded(t, toolward.Allow, registryOf(t, before{id: "x", f: hangs}), plugin.Config{})
		for range 100 {
			if err := g.write(t, `{}`); err == nil {
				t.Fatal("allowed")
			}
		}
		if n := started.Load(); n != 64 {
			t.Errorf("%d calls of a handler that never ends", n)
		}
		close(end)
		synctest.Wait()
		if err := g.write(t, `{}`); err != nil {
			t.Errorf("after they ended: %v", err)
		}
	})
}

func TestRegistration(t *testing.T) {
	nothing := says(plugin.BeforeToolCallResult{})
	for name, options := range map[string][]plugin.Option{
		"no tools":         {plugin.Tools()},
		"an empty tool":    {plugin.Tools("exec", " ")},
		"no time":          {plugin.Timeout(0)},
		"too long":         {plugin.Timeout(601 * time.Second)},
		"opening itself":   {plugin.OnError(plugin.Open)},
		"unknown on error": {plugin.OnError("maybe")},
	} {
		own, err := plugin.NewRegistry().Plugin("x")
		if err != nil {
			t.Fatal(err)
		}
		if err := own.OnBeforeToolCall(nothing, options...); err == nil {
			t.Errorf("%s: registered", name)
		}
	}
	registry := plugin.NewRegistry()
	own, err := registry.Plugin("x")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"x", "", "A", "a b", "-a", strings.Repeat("a", 65)} {
		if _, err := registry.Plugin(id); err == nil {
			t.Errorf("id %q: registered", id)
		}
	}
	if err := own.OnBeforeToolCall(nil); err == nil {
		t.Error("no function: registered")
	}
	plugin.New(plugin.Options{Registry: registry})
	if err := own.OnBeforeToolCall(nothing); err == nil {
		t.Error("registered after the start")
	}
	if _, err := registry.Plugin("late"); err == nil {
		t.Error("announced after the start")
	}
}

// after is what a handler of after_tool_call was told.
type told struct {
	mu     sync.Mutex
	events []plugin.AfterToolCallEvent
}

func (o *told) after(_ context.Context, e plugin.AfterToolCallEvent) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
	return errors.New("whatever a listener says is its own matter")
}

// After a call the listeners hear of it once, with what really ran, whatever its end was.
func TestAfterToolCallOnce(t *testing.T) {
	for name, test := range map[string]struct {
		verdict  toolward.Verdict
		decision toolward.Decision
		block    bool
		runErr   error
		status   toolward.Status
		params   string
		failed   bool
	}{
		"success":         {verdict: toolward.Allow, status: toolward.StatusOK, params: `{"path":"b"}`},
		"approved":        {verdict: toolward.Ask, decision: toolward.AllowOnce, status: toolward.StatusOK, params: `{"path":"b"}`},
		"failure":         {verdict: toolward.Allow, runErr: errors.New("disk full"), status: toolward.StatusError, params: `{"path":"b"}`, failed: true},
		"refused":         {verdict: toolward.Deny, status: toolward.StatusDenied, params: `{"path":"a"}`, failed: true},
		"declined":        {verdict: toolward.Ask, decision: toolward.DenyCall, status: toolward.StatusDenied, params: `{"path":"b"}`, failed: true},
		"blocked by hook": {verdict: toolward.Allow, block: true, status: toolward.StatusDenied, params: `{"path":"a"}`, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := sets("path", "b")
				answer.Block = test.block
				registry := registryOf(t, before{id: "x", f: says(answer)})
				listener, err := registry.Plugin("listener")
				if err != nil {
					t.Fatal(err)
				}
				var heard told
				if err := listener.OnAfterToolCall(heard.after); err != nil {
					t.Fatal(err)
				}
				g := newGuarded(t, test.verdict, registry, plugin.Config{})
				g.Approver.Decision = test.decision
				g.Policy.All[0].Run = func(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
					time.Sleep(3 * time.Millisecond)
					return toolward.TextResult("done"), test.runErr
				}
				err = g.write(t, `{"path":"a"}`)
				synctest.Wait()
				if len(heard.events) != 1 {
					t.Fatalf("heard %d times (%v)", len(heard.events), err)
				}
				e := heard.events[0]
				if e.Status != test.status || string(e.Params.Canonical()) != test.params || (e.Error != "") != test.failed || e.Call.ToolCallID != "c1" || e.Call.RunID != "r1" {
					t.Errorf("heard %+v with %s", e, e.Params.Canonical())
				}
				ran := test.status == toolward.StatusOK || test.status == toolward.StatusError
				if ran != (e.Duration == 3*time.Millisecond) {
					t.Errorf("duration %v", e.Duration)
				}
			})
		})
	}
}

// Listeners cost the call nothing: they run side by side, wait in a bounded queue, and what does not fit is dropped.
func TestListenersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := plugin.NewRegistry()
		own, err := registry.Plugin("slow")
		if err != nil {
			t.Fatal(err)
		}
		var running, most, ended atomic.Int32
		err = own.OnAfterToolCall(func(context.Context, plugin.AfterToolCallEvent) error {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			time.Sleep(time.Second)
			ended.Add(1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		g := newGuarded(t, toolward.Allow, registry, plugin.Config{})
		start := time.Now()
		for range 16 + 1024 + 10 {
			if err := g.write(t, `{}`); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("calls waited %v", took)
		}
		time.Sleep(2 * time.Minute)
		if most.Load() != 16 || ended.Load() != 16+1024 || g.runner.Stats().Dropped != 10 {
			t.Errorf("%d at once, %d ended, %d dropped", most.Load(), ended.Load(), g.runner.Stats().Dropped)
		}
	})
}

func TestResultHandlers(t *testing.T) {
	appends := func(s string) plugin.ToolResultPersistFunc {
		return func(e plugin.ToolResultEvent) (plugin.Replacement, error) {
			e.Message.Content[0].Text += s
			e.Message.External = nil
			return plugin.Replace(e.Message), nil
		}
	}
	for name, test := range map[string]struct {
		handlers []plugin.ToolResultPersistFunc
		open     bool
		want     string
	}{
		"none":  {nil, false, "page"},
		"chain": {[]plugin.ToolResultPersistFunc{appends("+a"), appends("+b")}, false, "page+a+b"},
		"no answer": {[]plugin.ToolResultPersistFunc{func(e plugin.ToolResultEvent) (plugin.Replacement, error) {
			e.Message.Content[0].Text = "x"
			return plugin.Replacement{}, nil
		}}, false, "page"},
		"error": {[]plugin.ToolResultPersistFunc{appends("+a"), func(plugin.ToolResultEvent) (plugin.Replacement, error) {
			return plugin.Replacement{}, errors.New("no")
		}}, false, "The call ran, but its result is withheld: a check of it failed."},
		"panic": {[]plugin.ToolResultPersistFunc{func(plugin.ToolResultEvent) (plugin.Replacement, error) { panic("no") }}, false, "The call ran, but its result is withheld: a check of it failed."},
		"hang": {[]plugin.ToolResultPersistFunc{func(plugin.ToolResultEvent) (plugin.Replacement, error) {
			time.Sleep(time.Hour)
			return plugin.Replacement{}, nil
		}}, false, "The call ran, but its result is withheld: a check of it failed."},
		"open, error": {[]plugin.ToolResultPersistFunc{func(plugin.ToolResultEvent) (plugin.Replacement, error) {
			return plugin.Replacement{}, errors.New("no")
		}, appends("+b")}, true, "page+b"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := plugin.NewRegistry()
				own, err := registry.Plugin("x")
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range test.handlers {
					options := []plugin.Option{}
					if test.open {
						options = append(options, plugin.OnError(plugin.Open))
					}
					if err := own.OnToolResultPersist(h, options...); err != nil {
						t.Fatal(err)
					}
				}
				g := newGuarded(t, toolward.Allow, registry, plugin.Config{})
				g.Policy.All[0].Run = func(context.Context, *toolward.Request) (toolward.Result, error) {
					r := toolward.TextResult("page")
					r.External = []string{"example.org"}
					return r, nil
				}
				result, err := g.gateway.Call(t.Context(), toolward.Call{
					Tool: "write", Arguments: []byte(`{}`), Session: "agent:main:main", Caller: toolward.Caller{Agent: "main"},
				})
				if err != nil || result.Content[0].Text != test.want {
					t.Errorf("%v, %+v", err, result)
				}
				if !slices.Equal(g.Sessions.Exposed("agent:main:main"), []string{"example.org"}) {
					t.Error("the exposure is gone")
				}
				if !strings.HasPrefix(test.want, "The call ran") && !slices.Equal(result.External, []string{"example.org"}) {
					t.Errorf("the result's sources are %q", result.External)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// Who delays results is named.
func TestSlowResultHandlerIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := plugin.NewRegistry()
		own, err := registry.Plugin("snail")
		if err != nil {
			t.Fatal(err)
		}
		if err := own.OnToolResultPersist(func(plugin.ToolResultEvent) (plugin.Replacement, error) {
			time.Sleep(51 * time.Millisecond)
			return plugin.Replacement{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		runner := plugin.New(plugin.Options{Registry: registry, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if _, err := runner.Result(t.Context(), &toolward.Request{Tool: &toolward.Tool{Name: "read"}}, toolward.TextResult("x")); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "snail") || !strings.Contains(log.String(), "WARN") {
			t.Errorf("log: %s", &log)
		}
	})
}

// A plug-in that fails open still gets the person that it asks for: an agent could make its parameters go wrong, such as
// by a secret in them.
func TestAskSurvivesParametersThatAreNotUnderstood(t *testing.T) {
	wants := plugin.BeforeToolCallResult{RequireApproval: true, Params: plugin.Change(map[string]any{"f": func() {}})}
	runner := plugin.New(plugin.Options{Registry: registryOf(t, before{id: "x", f: says(wants)})})
	open := plugin.Config{Entries: map[string]plugin.Entry{"x": {Kind: plugin.KindCompiled, OnError: plugin.Open}}}
	if err := configure(runner, open); err != nil {
		t.Fatal(err)
	}
	request := &toolward.Request{Tool: &toolward.Tool{Name: "exec"}, Params: toolward.NewParams([]byte(`{}`), map[string]any{})}
	if a := runner.Before(t.Context(), request); !a.Ask || a.Block || a.Code != "" {
		t.Errorf("%+v", a)
	}
}

func TestListsOfToolsThatMatchNothingAreRefused(t *testing.T) {
	for entry, fine := range map[string]bool{
		"exec": true, "Bash": true, "mcp__*": true, "claude-code/webfetch": true,
		"group:fs": false, " Group:FS": false, "exec,write": false, "read write": false, "": false,
	} {
		c := plugin.Config{Entries: map[string]plugin.Entry{"g": {
			Kind: plugin.KindCommand, Command: []string{"/bin/true"}, Hooks: []plugin.Name{plugin.BeforeToolCall}, Tools: []string{entry},
		}}}
		if problems := c.Check(nil); (len(problems) == 0) != fine {
			t.Errorf("%q: %v", entry, problems)
		}
	}
}
