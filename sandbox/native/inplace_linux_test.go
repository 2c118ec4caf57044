package native

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
	"github.com/toolward/toolward/schema"
)

// inPlace is the tools on sandboxes that a Manager makes, for one session of an agent.
type inPlace struct {
	*testing.T
	manager   *fleet.Manager
	workspace string
	tools     map[string]*toolward.Tool
}

// Confinement is where the manager says that a call works.
func (w *inPlace) Confinement(ctx context.Context, call *toolward.Call) (*builtin.Confinement, error) {
	q := settings.Request{Agent: call.Caller.Agent, Session: string(call.Session), Workspace: call.Caller.Workspace}
	layout, err := w.manager.Layout(ctx, q)
	if err != nil {
		return nil, err
	}
	return &builtin.Confinement{
		Workdir: layout.Workdir, Mounts: layout.Mounts(), Env: w.manager.Settings().For(q.Agent).EnvRules(),
		Acquire: func(ctx context.Context, _ string) (sandbox.Handle, func(), error) {
			lease, err := w.manager.Acquire(ctx, q)
			if err != nil {
				return nil, nil, err
			}
			return lease, lease.Release, nil
		},
	}, nil
}

// newInPlace is a world on a machine that refuses namespaces.
func newInPlace(t *testing.T, c settings.Config) *inPlace {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, home := filepath.Join(base, "state"), filepath.Join(base, "home")
	w := &inPlace{T: t, workspace: filepath.Join(base, "project"), tools: map[string]*toolward.Tool{}}
	for _, dir := range []string{state, home, w.workspace + "/.git/hooks", w.workspace + "/cache"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{w.workspace + "/AGENTS.md": "be kind\n", home + "/secret": "secret\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range c.Binds {
		c.Binds[i] = strings.ReplaceAll(c.Binds[i], "WORKSPACE", w.workspace)
	}
	c.Mode, c.Scope, c.DegradeOK = "all", "session", []string{"cgroup", "namespaces"}
	around := settings.Surroundings{StateDir: state, Home: home, Instance: t.Name()}
	compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}}, around)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w.manager = fleet.NewManager(fleet.ManagerOptions{
		Engines: []sandbox.Engine{landlockEngine(t)}, StateDir: state, Settings: compiled,
	})
	if err := w.manager.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.manager.Close)
	places, err := place.New(place.Layout{Workspace: w.workspace, Home: home, StateDir: state, ConfigFile: state + "/toolward.jsonc"})
	if err != nil {
		t.Fatal(err)
	}
	file := allowlist.Open(state, allowlist.Options{Ledger: gatetest.AsItStands(filepath.Join(state, allowlist.FileName))})
	t.Cleanup(file.Close)
	box, err := builtin.New(builtin.Config{}, builtin.Deps{
		Places: func(toolward.Caller) (*place.Classifier, error) { return places, nil }, Sandboxes: w,
		Commands: command.NewCommands(file, home, false),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	for _, tool := range box.Tools() {
		w.tools[tool.Name] = tool
	}
	return w
}

// call runs one call that the gate lets through and returns its text, or why it was refused.
func (w *inPlace) call(tool string, arguments map[string]any) string {
	w.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		w.Fatal(err)
	}
	params, _ := schema.FileParams(tool)
	compiled, err := schema.Compile(w.tools[tool].Schema, schema.Options{Params: params})
	if err != nil {
		w.Fatal(err)
	}
	value, err := compiled.Decode(raw)
	if err != nil {
		w.Fatal(err)
	}
	caller := toolward.Caller{Agent: "coder", Workspace: w.workspace}
	r := &toolward.Request{
		Call: toolward.Call{Tool: tool, WorkDir: w.workspace, Session: "agent:coder:test", Caller: caller},
		Tool: w.tools[tool], Params: toolward.NewParams(value.Canonical, value.Object), Level: toolward.Normal,
	}
	if r.Facts, err = r.Tool.Facts(w.Context(), r); err != nil {
		return err.Error()
	}
	result, err := r.Tool.Run(w.Context(), r)
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, block := range result.Content {
		text.WriteString(block.Text)
	}
	return text.String()
}

// The configuration reaches sandboxes without namespaces: every path inside is that of the host.
func TestToolsInPlace(t *testing.T) {
	if asUser(t) {
		return
	}
	type step struct {
		tool string
		args map[string]any
		want string
	}
	for access, steps := range map[string]func(w *inPlace, workdir string) []step{
		"rw": func(w *inPlace, workdir string) []step {
			if workdir != w.workspace {
				t.Errorf("it works in %s", workdir)
			}
			return []step{
				{"exec", map[string]any{"command": "pwd"}, w.workspace + "\n"},
				{"write", map[string]any{"path": "made", "content": "by a tool\n"}, "Created"},
				{"exec", map[string]any{"command": "cat made; echo more >> made; cat " + w.workspace + "/made"}, "by a tool\nby a tool\nmore\n"},
				{"read", map[string]any{"path": w.workspace + "/made"}, "more"},
				{"edit", map[string]any{"path": "made", "oldText": "more", "newText": "less"}, "Changed"},
				{"list", map[string]any{}, "AGENTS.md"},
				{"search", map[string]any{"pattern": "less"}, "made"},
				{"write", map[string]any{"path": ".git/hooks/pre-commit", "content": "x"}, "read-only"},
			}
		},
		"ro": func(w *inPlace, workdir string) []step {
			return []step{
				{"exec", map[string]any{"command": "pwd; cat " + w.workspace + "/AGENTS.md"}, w.workspace + "\nbe kind\n"},
				{"exec", map[string]any{"command": "cd " + workdir + " && pwd && cat AGENTS.md"}, workdir + "\nbe kind\n"},
				{"exec", map[string]any{"command": "echo x > made || echo x > " + w.workspace + "/made || echo refused"}, "refused\n"},
				{"read", map[string]any{"path": w.workspace + "/AGENTS.md"}, "be kind"},
			}
		},
		"none": func(w *inPlace, workdir string) []step {
			return []step{
				{"exec", map[string]any{"command": "pwd; cat AGENTS.md; echo x > made && echo wrote"}, workdir + "\nbe kind\nwrote\n"},
				{"exec", map[string]any{"command": "cat " + w.workspace + "/AGENTS.md"}, "denied"},
				{"read", map[string]any{"path": w.workspace + "/AGENTS.md"}, "sandbox"},
			}
		},
	} {
		t.Run(access, func(t *testing.T) {
			w := newInPlace(t, settings.Config{WorkspaceAccess: access})
			layout, err := w.manager.Layout(t.Context(), settings.Request{Agent: "coder", Session: "agent:coder:test", Workspace: w.workspace})
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range append(steps(w, layout.Workdir),
				step{"exec", map[string]any{"command": "cat " + w.workspace + "/../home/secret"}, "denied"},
				step{"exec", map[string]any{"command": `f=$(mktemp) && echo kept > "$f" && cat "$f"`}, "kept\n"},
				step{"exec", map[string]any{"command": "echo x > /tmp/made-by-a-sandbox || echo refused"}, "refused\n"},
				step{"read", map[string]any{"path": "../home/secret"}, "sandbox"},
				step{"read", map[string]any{"path": "/workspace/AGENTS.md"}, "sandbox"},
			) {
				if got := w.call(step.tool, step.args); !strings.Contains(got, step.want) {
					t.Errorf("%s %v: %q, want %q", step.tool, step.args, got, step.want)
				}
			}
			if err := w.manager.Remove(t.Context(), layout.Name, "test"); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), sandbox.Brand+"-????????-*")); len(left) > 0 {
				t.Errorf("temporary files are left: %v", left)
			}
		})
	}
}

// A bind that would have to be mounted elsewhere is refused before anything is made; one at its own place is shown.
func TestBindsInPlace(t *testing.T) {
	if asUser(t) {
		return
	}
	w := newInPlace(t, settings.Config{WorkspaceAccess: "ro", Binds: []string{"WORKSPACE/cache:WORKSPACE/cache"}})
	if got := w.call("exec", map[string]any{"command": "echo x > " + w.workspace + "/cache/made && echo wrote"}); got != "wrote\n" {
		t.Errorf("a bind at its place: %q", got)
	}
	w = newInPlace(t, settings.Config{Binds: []string{"WORKSPACE/cache:/cache"}})
	_, err := w.manager.Acquire(t.Context(), settings.Request{Agent: "coder", Session: "agent:coder:test", Workspace: w.workspace})
	if sandbox.CodeOf(err) != sandbox.CodeConfig || !strings.Contains(err.Error(), "cannot be shown as /cache") {
		t.Errorf("a bind elsewhere: %v", err)
	}
	if states, err := w.manager.List(t.Context()); err != nil || len(states) > 0 {
		t.Errorf("there is %v, %v", states, err)
	}
}
