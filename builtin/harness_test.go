package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/schema"
)

// world is a workspace, a home and an outside on a real disk, with the tools on it.
type world struct {
	testing.TB
	root, workspace, home, outside string
	box                            *Toolbox
	file                           *allowlist.Store
	commands                       *command.Commands
	tools                          map[string]*toolward.Tool
	level                          toolward.Level
	agent                          string
}

// newWorld makes the tools; change may alter the configuration.
func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		TB: t, root: root, workspace: root + "/ws", home: root + "/home", outside: root + "/outside",
		tools: map[string]*toolward.Tool{}, level: toolward.Normal, agent: "coder",
	}
	for _, dir := range []string{w.workspace, w.home, w.outside, w.home + "/.toolward"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	places, err := place.New(place.Layout{
		Workspace: w.workspace, Home: w.home, StateDir: w.home + "/.toolward", ConfigFile: w.home + "/.toolward/toolward.jsonc",
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{KillGraceMs: 500}
	for _, f := range change {
		f(&cfg)
	}
	w.file = allowlist.Open(w.home+"/.toolward", allowlist.Options{Ledger: gatetest.AsItStands(w.home + "/.toolward/" + allowlist.FileName)})
	t.Cleanup(w.file.Close)
	w.commands = command.NewCommands(w.file, w.home, false)
	w.box, err = New(cfg, Deps{
		Commands: w.commands,
		Places:   func(toolward.Caller) (*place.Classifier, error) { return places, nil },
		Environ:  []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + w.home, "LANG=C.UTF-8", "SECRET_TOKEN=s3cret", "TOOLWARD_KEY=k", "LD_PRELOAD=x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.box.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, tool := range w.box.Tools() {
		w.tools[tool.Name] = tool
	}
	return w
}

// args are the arguments of a call.
type args map[string]any

// request decodes the arguments by the tool's own schema and finds the facts.
func (w *world) request(tool string, a args) (*toolward.Request, error) {
	w.Helper()
	raw, err := json.Marshal(a)
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
		return nil, err
	}
	r := &toolward.Request{
		Call: toolward.Call{
			Tool: tool, WorkDir: w.workspace, Session: toolward.SessionKey("agent:" + w.agent + ":test"),
			Caller: toolward.Caller{Agent: w.agent, Workspace: w.workspace},
		},
		Tool: w.tools[tool], Params: toolward.NewParams(value.Canonical, value.Object), Level: w.level,
	}
	r.Facts, err = w.tools[tool].Facts(context.Background(), r)
	return r, err
}

// facts is request that must succeed.
func (w *world) facts(tool string, a args) *toolward.Request {
	w.Helper()
	r, err := w.request(tool, a)
	if err != nil {
		w.Fatalf("%s: %.300v", tool, err)
	}
	return r
}

// run is one whole call that the gate lets through.
func (w *world) run(tool string, a args) toolward.Result {
	w.Helper()
	return w.finish(w.facts(tool, a))
}

func (w *world) finish(r *toolward.Request) toolward.Result {
	w.Helper()
	result, err := r.Tool.Run(context.Background(), r)
	if err != nil {
		w.Fatalf("%s: %v", r.Tool.Name, err)
	}
	return result
}

// ok runs a call that must succeed and returns its text.
func (w *world) ok(tool string, a args) string {
	w.Helper()
	result := w.run(tool, a)
	if result.IsError {
		w.Fatalf("%s failed: %.300s", tool, text(result))
	}
	return text(result)
}

// fails runs a call that must fail with a text that contains want.
func (w *world) fails(tool string, a args, want string) {
	w.Helper()
	result := w.run(tool, a)
	if !result.IsError || !strings.Contains(text(result), want) {
		w.Errorf("%s: error %t %.300q, want an error with %q", tool, result.IsError, text(result), want)
	}
}

func text(r toolward.Result) string {
	var parts []string
	for _, c := range r.Content {
		parts = append(parts, c.Text)
	}
	return strings.Join(parts, "\n")
}

// details decodes the structured part of a result.
func details[T any](t testing.TB, r toolward.Result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(r.Structured, &v); err != nil {
		t.Fatalf("structured result %q: %v", r.Structured, err)
	}
	return v
}

// put writes a file below the root of the world: "ws/a", "outside/b".
func (w *world) put(name, content string) string {
	w.Helper()
	file := w.root + "/" + name
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		w.Fatal(err)
	}
	return file
}

// holds checks the content of a file below the root; "<gone>" means that it is not there.
func (w *world) holds(name, want string) {
	w.Helper()
	data, err := os.ReadFile(w.root + "/" + name)
	got := string(data)
	if os.IsNotExist(err) {
		got = "<gone>"
	} else if err != nil {
		w.Fatal(err)
	}
	if got != want {
		w.Errorf("%s holds %.300q, want %.300q", name, got, want)
	}
}

// tidy checks that a directory below the root has exactly these entries: nothing half-written is left.
func (w *world) tidy(dir string, want ...string) {
	w.Helper()
	entries, err := os.ReadDir(w.root + "/" + dir)
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		w.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

func sorted(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "|")
}
