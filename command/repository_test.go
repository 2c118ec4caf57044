package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// repositories is a workspace with a repository of its own, a submodule and a worktree in it, and others that strangers
// planted: their configuration would leave a mark.
type repositories struct {
	dir, home, mark string
	env             map[string]string
	evaluator       *Evaluator
	places          *place.Classifier
}

func newRepositories(t *testing.T) *repositories {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &repositories{dir: root + "/ws", home: root + "/home", mark: root + "/mark"}
	w.env = NewEnvironment(nil).Inherited([]string{"PATH=" + DefaultPath, "HOME=" + w.home}, nil)
	w.shell(t, root, `mkdir ws home lib
		git config --global user.email a@example.com; git config --global user.name a; git config --global protocol.file.allow always
		cd lib && git init -q && echo x > f && git add f && git commit -qm lib
		cd ../ws && git init -q && echo x > README.md && git add . && git commit -qm first
		git submodule --quiet add ../lib sub && git commit -qm sub && git worktree add -q trees/a
		mkdir -p deep/plain other && cd other && git init -q && echo x > f && git add f && git commit -qm o`)
	config := strings.NewReplacer("MARK", w.mark).Replace(`[core]
	repositoryformatversion = 0
	fsmonitor = touch MARK; false
	pager = touch MARK; cat
	sshCommand = touch MARK; false
	hooksPath = HOOKS
[diff]
	external = touch MARK; true
[filter "x"]
	clean = touch MARK; cat
	smudge = touch MARK; cat
[gpg]
	program = MARK
`)
	for name, text := range map[string]string{
		"other/.git/config": config, "evil/HEAD": "ref: refs/heads/main\n", "evil/config": config + "[core]\n\tworktree = .\n\tbare = false\n",
		"evil/objects/x": "", "evil/refs/x": "", "pointed/.git": "gitdir: ../evil\n", "pointed/f": "x",
		"common/HEAD": "ref: refs/heads/main\n", "common/commondir": "../evil\n", "parts/config": config, "parts/objects/x": "", "parts/refs/x": "",
	} {
		p := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.shell(t, w.dir, "rm -rf other/.git/hooks; mkdir kept && cp -r other kept/repo && tar -C kept -cf kept.tar repo && rm -rf kept")
	if w.places, err = place.New(place.Layout{Workspace: w.dir, Home: w.home, StateDir: w.home + "/.toolward", ConfigFile: w.home + "/.toolward/c"}); err != nil {
		t.Fatal(err)
	}
	if w.evaluator, _, err = New(onMiss(Developer), w.home, NewResolver(Disk{})); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *repositories) shell(t *testing.T, dir, text string) {
	t.Helper()
	run := exec.Command("/bin/sh", "-c", text)
	run.Dir, run.Env = dir, EnvironmentList(w.env)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", text, err, out)
	}
}

// run lets a shell run the text with the environment of commands, and reports whether anything that was planted ran.
func (w *repositories) run(dir, text string) (marked bool) {
	os.Remove(w.mark)
	run := exec.Command("/bin/sh", "-c", text)
	run.Dir, run.Env = dir, EnvironmentList(w.env)
	run.Run() // what it leaves behind is looked at
	_, err := os.Lstat(w.mark)
	return err == nil
}

func (w *repositories) evaluate(command string) *Assessment {
	return w.evaluator.Evaluate(&Request{
		Command: command, Dir: w.dir, Level: toolward.Normal, Places: w.places,
		Getenv: func(name string) (string, bool) { value, ok := w.env[name]; return value, ok },
	})
}

// What a planted repository says never runs under a command that runs without a question; git in the workspace's own
// repository, its submodules and its worktrees does run. Real git, real files.
func TestPlantedRepositories(t *testing.T) {
	w := newRepositories(t)
	for _, c := range []struct {
		command string
		want    toolward.Verdict
	}{
		{"git status", toolward.Allow},
		{"git -C deep/plain status", toolward.Allow},
		{"cd deep/plain && git log --oneline -3", toolward.Allow},
		{"cd sub && git status && git diff", toolward.Allow},
		{"git -C trees/a log --oneline", toolward.Allow},
		{"git -C trees/a/sub status", toolward.Allow},
		{"mkdir new && cd new && git init && git status", toolward.Allow},
		{"cd deep/plain && echo x > y && git add -A", toolward.Allow},

		{"git -C other status", toolward.Ask},
		{"cd other && git status", toolward.Ask},
		{"cd other && git diff", toolward.Ask},
		{"git -C other/.git status", toolward.Ask},
		{"cd evil && git status", toolward.Ask},
		{"git -C evil log", toolward.Ask},
		{"git -C evil/objects status", toolward.Ask},
		{"cd pointed && git status", toolward.Ask},
		{"git -C pointed diff", toolward.Ask},
		{"cd common && git status", toolward.Ask},
		{"ls | xargs git -C other show", toolward.Ask},
		{"bash -c 'cd other && git status'", toolward.Ask},
		{"tar xf kept.tar && git -C repo status", toolward.Ask},
		{"tar xf kept.tar && cd repo && git status", toolward.Ask},
		{"cp -r other copy && git -C copy status", toolward.Ask},
		{"mv other moved && git -C moved status", toolward.Ask},
		{"echo 'ref: refs/heads/main' > parts/HEAD && cd parts && git status", toolward.Ask},
		{"cp evil/HEAD parts && git -C parts status", toolward.Ask},
	} {
		a := w.evaluate(c.command)
		if verdict(a) != c.want {
			t.Errorf("%s: %s %v, want %s", c.command, verdict(a), a.Segments[len(a.Segments)-1].Asks, c.want)
		}
		if verdict(a) == toolward.Allow && w.run(w.dir, c.command) {
			t.Errorf("%s: what was planted ran", c.command)
		}
	}
	// The plants are real: without the environment of commands, or in a repository of its own, they do run.
	if !w.run(w.dir, "cd other && git status") || !w.run(w.dir, "unset GIT_CONFIG_COUNT; cd evil && git status") {
		t.Error("the planted configuration does nothing: this test cannot fail")
	}
	if w.run(w.dir, "cd evil && git status") {
		t.Error("a directory that only looks like a repository is obeyed")
	}
}

// A redirection that cannot work says why, in the words of the place.
func TestRedirectionBelowAFile(t *testing.T) {
	w := newRepositories(t)
	a := w.evaluate("echo x > README.md/y")
	if got := a.Segments[0].Asks; verdict(a) != toolward.Ask || len(got) != 1 || !strings.Contains(got[0].Detail, "README.md is a regular file, not a directory") {
		t.Errorf("%s %v", verdict(a), got)
	}
}

// A workspace that is a worktree, or a directory of a repository that lies above it, has submodules, too.
func TestRepositoryAboveTheWorkspace(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  toolward.Verdict
	}{
		"worktree":                  {map[string]string{"/ws/.git": "p:/home/dev/main/.git/worktrees/ws", "/home/dev/main/.git/worktrees/ws/HEAD": "f", "/ws/sub/.git": "p:/home/dev/main/.git/worktrees/ws/modules/sub", "/home/dev/main/.git/worktrees/ws/modules/sub/HEAD": "f"}, toolward.Allow},
		"elsewhere":                 {map[string]string{"/ws/.git": "p:/home/dev/main/.git/worktrees/ws", "/home/dev/main/.git/worktrees/ws/HEAD": "f", "/ws/sub/.git": "p:/tmp/evil/.git/worktrees/x", "/tmp/evil/.git/worktrees/x/HEAD": "f"}, toolward.Ask},
		"above":                     {map[string]string{"/.git/HEAD": "f", "/ws/sub/.git": "p:../../.git/modules/sub", "/.git/modules/sub/HEAD": "f"}, toolward.Allow},
		"into the workspace":        {map[string]string{"/ws/.git/HEAD": "f", "/ws/sub/.git": "p:../evil", "/ws/evil/HEAD": "f"}, toolward.Ask},
		"to nothing":                {map[string]string{"/ws/.git/HEAD": "f", "/ws/sub/.git": "p:../.git/modules/sub"}, toolward.Ask},
		"a link":                    {map[string]string{"/ws/.git/HEAD": "f", "/ws/sub/.git": "l:../evil", "/ws/evil/HEAD": "f"}, toolward.Ask},
		"the repository's own root": {map[string]string{"/ws/.git/HEAD": "f", "/ws/sub/.git": "p:../.git"}, toolward.Ask},
		"no repository":             {map[string]string{"/ws/sub/x": "f"}, toolward.Allow},
		"the workspace looks bare":  {map[string]string{"/ws/HEAD": "f", "/ws/objects/x": "f", "/ws/sub/x": "f"}, toolward.Ask},
	} {
		if a := newWorld(t, c.files).evaluate(t, onMiss(Developer), "git -C sub status"); verdict(a) != c.want {
			t.Errorf("%s: %s %v", name, verdict(a), a.Segments[0].Asks)
		}
	}
}
