package native

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
)

// What the configuration says is what a real sandbox is, with the defaults of everything else.
func TestManagerMakesRealSandboxes(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, workspace := filepath.Join(base, "state"), filepath.Join(base, "project")
	for _, dir := range []string{state, filepath.Join(workspace, "deep/.git/hooks")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(workspace, "AGENTS.md"), []byte("be kind"), 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // a workspace of root's would make root run inside, which this engine refuses
		err := filepath.WalkDir(workspace, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(path, 10001, 10001)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	around := settings.Surroundings{StateDir: state, Home: filepath.Join(base, "home"), Instance: t.Name()}
	e := testEngine(t, Options{})
	for access, want := range map[string]string{
		"none": "seeded\nwrote\n",
		"ro":   "seeded\nthe workspace is there\n",
		"rw":   "seeded\nwrote\n",
	} {
		t.Run(access, func(t *testing.T) {
			c := settings.Config{Mode: "all", Scope: "session", WorkspaceAccess: access, DegradeOK: []string{"cgroup"}}
			compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}}, around)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var told []fleet.EventKind
			m := fleet.NewManager(fleet.ManagerOptions{
				Engines: []sandbox.Engine{e}, StateDir: state, Settings: compiled,
				Observe: func(e fleet.Event) { told = append(told, e.Kind) },
			})
			if err := m.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			q := settings.Request{Agent: "coder", Session: "agent:coder:" + access, Workspace: workspace}
			lease, err := m.Acquire(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Release()
			p, err := lease.Start(t.Context(), sandbox.Command{Shell: `test "$(cat AGENTS.md)" = "be kind" && echo seeded
(echo x > new) 2>/dev/null && echo wrote
(echo x > deep/.git/hooks/evil) 2>/dev/null && echo unprotected
test -d /agent/deep && echo the workspace is there`})
			if err != nil {
				t.Fatal(err)
			}
			out, err := io.ReadAll(p.Stdout())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if string(out) != want {
				t.Errorf("got %q, want %q", out, want)
			}
			if infos, err := m.List(t.Context()); err != nil || len(infos) != 1 || !infos[0].Running || infos[0].Users != 1 {
				t.Errorf("%+v %v", infos, err)
			}
			if err := m.Remove(t.Context(), lease.Layout.Name, "test"); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(told, []fleet.EventKind{fleet.EventCreated, fleet.EventRemoved}) {
				t.Errorf("told %v", told)
			}
			if left, err := os.ReadFile(filepath.Join(state, "sandbox", "containers.json")); err != nil || strings.Contains(string(left), "containerName") {
				t.Errorf("the registry has %s %v", left, err)
			}
		})
	}
}
