package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
)

// What commands make in a container, so that the machine's git would run something, has lost its name when the command has ended.
func TestMachinesGitRunsNothingOfAContainer(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("not run: there is no git on the PATH")
	}
	e := testEngine(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, workspace := filepath.Join(base, "state"), filepath.Join(base, "project")
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	machine := func(args ...string) {
		c := exec.Command("git", args...)
		c.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
		_, _ = c.CombinedOutput() // what is broken may fail
	}
	machine("init", workspace)
	c := settings.Config{Mode: "all", Scope: "session", WorkspaceAccess: "rw", Engine: "docker"}
	c.Docker.Image = imageName()
	compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}},
		settings.Surroundings{StateDir: state, Home: filepath.Join(base, "home"), Instance: t.Name()})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	m := fleet.NewManager(fleet.ManagerOptions{Engines: []sandbox.Engine{e}, StateDir: state, Settings: compiled})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	lease, err := m.Acquire(t.Context(), settings.Request{Agent: "coder", Session: "agent:coder:git", Workspace: workspace})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	_, status := output(t, lease, sandbox.Command{Shell: `cd ` + workspace + `
mkdir -p evil/objects evil/refs sub
printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch ` + base + `/PWNED; echo\n' > evil/config
cp .git/HEAD evil; cp -r evil sub/.git
echo ../evil > .git/commondir
mkdir -p other; ln -s ../evil other/.git`})
	for _, name := range []string{".git/commondir", "sub/.git/config", "other/.git", "evil/config"} {
		if !strings.Contains(status.Warning, workspace+"/"+name+" (it is now ") {
			t.Errorf("%s is not named: %+v", name, status)
		}
	}
	for _, dir := range []string{".", "sub", "other"} {
		machine("-C", filepath.Join(workspace, dir), "status")
	}
	if _, err := os.Lstat(filepath.Join(base, "PWNED")); err == nil {
		t.Error("the machine's git ran what a container left")
	}
	if err := m.Remove(t.Context(), lease.Layout.Name, "test"); err != nil {
		t.Fatal(err)
	}
}
