package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
)

// What the configuration says is what a real container is, with the defaults of everything else.
func TestManagerMakesRealContainers(t *testing.T) {
	e := testEngine(t)
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
	around := settings.Surroundings{StateDir: state, Home: filepath.Join(base, "home"), Instance: t.Name()}
	for access, want := range map[string]string{
		"none": "seeded\nwrote\n",
		"ro":   "seeded\nthe workspace is there\n",
		"rw":   "seeded\nwrote\n",
	} {
		t.Run(access, func(t *testing.T) {
			c := settings.Config{Mode: "all", Scope: "session", WorkspaceAccess: access, Engine: "docker"}
			c.Docker.Image = imageName()
			compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}}, around)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			m := fleet.NewManager(fleet.ManagerOptions{Engines: []sandbox.Engine{e}, StateDir: state, Settings: compiled})
			if err := m.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			q := settings.Request{Agent: "coder", Session: fmt.Sprintf("agent:coder:%s%d", access, os.Getpid()), Workspace: workspace}
			lease, err := m.Acquire(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Release()
			out, status := output(t, lease, sandbox.Command{Shell: `test "$(cat AGENTS.md)" = "be kind" && echo seeded
(echo x > new) 2>/dev/null && echo wrote
(echo x > deep/.git/hooks/evil) 2>/dev/null && echo unprotected
test -d /agent/deep && echo the workspace is there; true`})
			if out != want || status.Code != 0 {
				t.Errorf("got %q, %+v; want %q", out, status, want)
			}
			// The container engine was asked for what people are shown.
			asked := docker(t, "inspect", "--format", "{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.NetworkMode}} {{.HostConfig.CapDrop}} {{.HostConfig.PidsLimit}} {{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.Privileged}} {{.HostConfig.CapAdd}} {{.HostConfig.LogConfig.Type}}", lease.Layout.Name)
			if asked != "true none [ALL] 512 4294967296 4294967296 false [] none" {
				t.Errorf("the container has %s", asked)
			}
			if infos, err := m.List(t.Context()); err != nil || len(infos) != 1 || !infos[0].Running || !infos[0].ImageMatch {
				t.Errorf("%+v %v", infos, err)
			}
			if err := m.Remove(t.Context(), lease.Layout.Name, "test"); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadFile(filepath.Join(state, "sandbox", "containers.json")); err != nil || strings.Contains(string(left), "containerName") {
				t.Errorf("the registry has %s %v", left, err)
			}
		})
	}
}
