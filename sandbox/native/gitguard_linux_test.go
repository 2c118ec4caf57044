package native

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
)

// gitGrounds is a repository that a real sandbox may write to, and the machine's git beside it.
type gitGrounds struct {
	testing.TB
	workspace string
	lease     *fleet.Lease
}

func newGitGrounds(t *testing.T) *gitGrounds {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("not run: there is no git on the PATH")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, workspace := filepath.Join(base, "state"), filepath.Join(base, "project")
	for _, dir := range []string{state, workspace} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		for dir := workspace; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(workspace, 10001, 10001); err != nil {
			t.Fatal(err)
		}
	}
	g := &gitGrounds{TB: t, workspace: workspace}
	g.machine("init", "-b", "main")
	g.machine("commit", "--allow-empty", "-m", "first")
	c := settings.Config{Mode: "all", Scope: "session", WorkspaceAccess: "rw", DegradeOK: []string{"cgroup"}}
	compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}},
		settings.Surroundings{StateDir: state, Home: filepath.Join(base, "home"), Instance: t.Name()})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	m := fleet.NewManager(fleet.ManagerOptions{Engines: []sandbox.Engine{testEngine(t, Options{})}, StateDir: state, Settings: compiled})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if g.lease, err = m.Acquire(t.Context(), settings.Request{Agent: "coder", Session: "agent:coder:git", Workspace: workspace}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.lease.Release)
	return g
}

// machine runs git as the person's prompt does, on the machine.
func (g *gitGrounds) machine(args ...string) string {
	g.Helper()
	c := exec.Command("git", args...)
	c.Dir = g.workspace
	c.Env = []string{
		"HOME=/nonexistent", "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 10001, Gid: 10001}}
	}
	out, err := c.CombinedOutput()
	if err != nil {
		g.Fatalf("git %v on the machine: %v\n%s", args, err, out)
	}
	return string(out)
}

// inside runs a text in the sandbox and says what the result warns of.
func (g *gitGrounds) inside(text string) (warning string) {
	g.Helper()
	p, err := g.lease.Start(g.Context(), sandbox.Command{Shell: "set -e\nexport GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com\n" + text, Dir: g.workspace, Merged: true})
	if err != nil {
		g.Fatal(err)
	}
	out, _ := io.ReadAll(p.Stdout())
	status, err := p.Wait(g.Context())
	if err != nil || status.Code != 0 {
		g.Fatalf("inside: %v %+v\n%s", err, status, out)
	}
	return status.Warning
}

// What commands make inside, so that the machine's git would run something, it does not run: it has lost its name when the command has ended.
func TestMachinesGitRunsNothingOfASandbox(t *testing.T) {
	evil := "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch $PWD/PWNED; echo\n"
	for name, text := range map[string]string{
		"commondir":          "mkdir -p evil/objects evil/refs; printf '%s' \"$EVIL\" > evil/config; echo ../evil > .git/commondir",
		"a file .git":        "mkdir sub; git init -q --bare evil; printf '%s' \"$EVIL\" > evil/config; echo 'gitdir: ../evil' > sub/.git",
		"a link .git":        "mkdir sub; git init -q --bare evil; printf '%s' \"$EVIL\" > evil/config; ln -s ../evil sub/.git",
		"a nested one":       "git init -q sub; printf '%s' \"$EVIL\" > sub/.git/config",
		"not to be read":     "git init -q sub; printf '%s' \"$EVIL\" > sub/.git/config; chmod 311 sub/.git",
		"a worktree's":       "git worktree add -q sub; echo ../../../evil > .git/worktrees/sub/commondir; mkdir -p evil/objects evil/refs; printf '%s' \"$EVIL\" > evil/config",
		"killed with it":     "git init -q sub; printf '%s' \"$EVIL\" > sub/.git/config; (sleep 100 &)",
		"a submodule's link": "mkdir -p sub e/.git/modules/x; git init -q --bare evil; mkdir evil/x; printf '%s' \"$EVIL\" > evil/config; echo \"gitdir: ../e/.git/modules/../../../evil\" > sub/.git",
	} {
		t.Run(name, func(t *testing.T) {
			g := newGitGrounds(t)
			warning := g.inside("! mv .git was 2>/dev/null\nEVIL='" + evil + "'\n" + text)
			if !strings.Contains(warning, "git on the machine would run something") {
				t.Errorf("the result says %q", warning)
			}
			for _, dir := range []string{".", "sub"} {
				c := exec.Command("git", "-C", dir, "status")
				c.Dir, c.Env = g.workspace, append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
				_, _ = c.CombinedOutput() // what is broken may fail
			}
			_ = filepath.WalkDir(g.workspace, func(at string, _ os.DirEntry, _ error) error {
				if filepath.Base(at) == "PWNED" {
					t.Errorf("the machine's git ran what a sandbox left: %s", at)
				}
				return nil
			})
		})
	}
}

// What agents do with git every day works inside, and the machine's git sees it.
func TestGitWorksInside(t *testing.T) {
	g := newGitGrounds(t)
	warning := g.inside(`
echo 1 > a; git add a; git commit -qm second
git branch topic; git checkout -q topic; echo 2 > b; git add b; git commit -qm third
git checkout -q main; echo 3 > c; git add c; git commit -qm fourth
git checkout -q topic; git rebase -q main; git checkout -q main; git merge -q topic; git tag v1; git branch -q -D topic
echo 4 >> a; git stash -q; git stash pop -q; git commit -qam fifth
git worktree add -q tree; (cd tree; echo 5 > d; git add d; git commit -qm sixth); git worktree add -q gone; git worktree remove gone
git gc -q
git init -q own; (cd own; git config user.name b; git config core.abbrev 9; git commit -q --allow-empty -m x; test "$(git config core.abbrev)" = 9)
git clone -q own copy; (cd copy; git pull -q)`)
	if warning != "" {
		t.Errorf("warned: %s", warning)
	}
	if got := g.machine("log", "--format=%s", "main"); got != "fifth\nthird\nfourth\nsecond\nfirst\n" {
		t.Errorf("the machine's git sees %s", got)
	}
	if got := g.machine("-C", "tree", "log", "-1", "--format=%s") + g.machine("tag") + g.machine("-C", "copy", "remote"); got != "sixth\nv1\norigin\n" {
		t.Errorf("the machine's git sees %s", got)
	}
	// A clone that was made to run something keeps what does not.
	if warning := g.inside("git -C copy config core.fsmonitor x"); !strings.Contains(warning, "copy/.git/config") {
		t.Errorf("warned: %q", warning)
	}
	g.inside(`test "$(git -C copy remote)" = origin; git -C copy pull -q; ! git -C copy config core.fsmonitor`)
}
