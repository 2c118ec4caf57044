package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
)

// The coder of the documentation's example really works as it says, in a container: only the image is the test's, and the
// network, of which a container engine of a test has none.
func TestExampleCoderWorks(t *testing.T) {
	e := testEngine(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, project := filepath.Join(base, "state"), filepath.Join(base, "project")
	for _, dir := range []string{state, filepath.Join(project, ".git/hooks")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	around := settings.Surroundings{StateDir: state, Home: filepath.Join(base, "home"), Instance: t.Name()}
	loaded, err := config.Load("../../docs/examples/sandboxes.jsonc", config.CheckSandbox(around))
	if err != nil {
		t.Fatal(err)
	}
	example := loaded.File.Sandbox()
	for i := range example.Agents {
		if a := &example.Agents[i]; a.ID == "coder" {
			a.Config.Docker.Image, a.Config.Docker.Network = imageName(), new("none")
		}
	}
	compiled, problems := settings.Compile(example, around)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	m := fleet.NewManager(fleet.ManagerOptions{Engines: []sandbox.Engine{e}, StateDir: state, Settings: compiled})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if lease, err := m.Acquire(t.Context(), settings.Request{Agent: "main", Session: "agent:main:main", Workspace: project}); err == nil {
		lease.Release()
		t.Error("the main agent got a sandbox")
	}
	lease, err := m.Acquire(t.Context(), settings.Request{Agent: "coder", Session: "agent:coder:main", Workspace: project})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	out, status := output(t, lease, sandbox.Command{Shell: `pwd; echo made > here
(echo x > .git/hooks/evil) 2>/dev/null || echo protected
(echo x > /etc/x) 2>/dev/null || echo read-only`})
	if out != project+"\nprotected\nread-only\n" || status.Code != 0 {
		t.Errorf("%q %+v", out, status)
	}
	if made, err := os.ReadFile(filepath.Join(project, "here")); err != nil || string(made) != "made\n" {
		t.Errorf("%q %v", made, err)
	}
	if limits := docker(t, "inspect", "--format", "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} {{.HostConfig.CapDrop}}", lease.Layout.Name); strings.TrimSpace(limits) != "2147483648 256 [ALL]" {
		t.Errorf("its limits are %s", limits)
	}
	if err := m.Remove(t.Context(), lease.Layout.Name, "test"); err != nil {
		t.Fatal(err)
	}
}
