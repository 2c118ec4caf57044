package protected

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"

	gocmp "github.com/google/go-cmp/cmp"
)

// grounds is a directory that is surveyed at /workspace.
type grounds struct {
	testing.TB
	dir    string
	survey *Survey
}

func newGrounds(t testing.TB) *grounds {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &grounds{TB: t, dir: dir}
}

// file writes a file, and the directories above it.
func (g *grounds) file(name, content string) {
	g.Helper()
	at := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		g.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
		g.Fatal(err)
	}
}

// do fails on an error of the step of a test.
func (g *grounds) do(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// tick waits until the clock of the file system has gone on.
func (g *grounds) tick() {
	g.Helper()
	dir, err := os.Open(g.TempDir())
	g.do(err)
	defer dir.Close()
	for first := (time.Time{}); ; {
		g.do(os.WriteFile(filepath.Join(dir.Name(), "x"), nil, 0o600))
		at, err := stateOf(dir, "x")
		g.do(err)
		if first.IsZero() {
			first = at.changed
		}
		if at.changed.After(first) {
			return
		}
	}
}

// begin looks for the first time, as before a sandbox is made.
func (g *grounds) begin() (protected []string) {
	g.Helper()
	pinned, err := os.Open(g.dir)
	g.do(err)
	defer pinned.Close()
	mounts := []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: g.dir, Target: "/workspace", Writable: true, Pinned: pinned}}
	g.survey, protected, err = NewSurvey(g.Context(), mounts, func(*sandbox.Mount, string) bool { return true }, false)
	g.do(err)
	g.Cleanup(g.survey.Close)
	return protected
}

// finds looks again. A path with a ! runs something.
func (g *grounds) finds(want ...string) {
	g.Helper()
	found, err := g.survey.Look(g.Context())
	g.do(err)
	got := []string{}
	for _, a := range found {
		p := strings.TrimPrefix(a.Path, "/workspace/")
		if a.Runs {
			p = "!" + p
		}
		got = append(got, p)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := gocmp.Diff(append([]string{}, want...), got); diff != "" {
		g.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatIsProtectedAtTheStart(t *testing.T) {
	g := newGrounds(t)
	for _, name := range []string{
		".git/hooks/pre-commit", ".git/config", ".git/objects/x", "deep/er/.git/config", "deep/.vscode/tasks.json", ".envrc",
		".git/modules/lib/config", ".git/modules/lib/hooks/x", "sub/.git", "src/main.go", "hooks/x",
	} {
		g.file(name, "")
	}
	g.do(os.Symlink("elsewhere", filepath.Join(g.dir, ".idea"))) // nothing can be mounted over it
	want := []string{
		"/workspace/.envrc", "/workspace/.git/config", "/workspace/.git/hooks", "/workspace/.git/modules/lib/config",
		"/workspace/.git/modules/lib/hooks", "/workspace/deep/.vscode", "/workspace/deep/er/.git/config", "/workspace/sub/.git",
	}
	if diff := gocmp.Diff(want, g.begin()); diff != "" {
		t.Error(diff)
	}
	g.finds()
}

// What "git init" makes
const initialConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"

func TestWhatAppears(t *testing.T) {
	g := newGrounds(t)
	g.file("old/.git/config", initialConfig)
	g.file("old/.git/hooks/pre-commit", "mine")
	g.file("package.json", "{}")
	g.begin()

	g.file("new/.git/config", initialConfig+"[remote \"origin\"]\n\turl = https://example.com/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"] remote = origin\n")
	g.file("new/.git/hooks/pre-commit.sample", "")
	g.file("new/.git/info/exclude", "")
	g.file("node_modules/a/b/.vscode/tasks.json", "{}")
	g.finds("new/.git/config", "new/.git/hooks", "new/.git/info", "node_modules/a/b/.vscode")
	g.finds() // it was told

	g.file("new/.git/hooks/post-checkout", "#!/bin/sh\n")
	g.finds("!new/.git/hooks")
	g.file("new/.git/config", initialConfig+"[core]\n\tfsmonitor = touch PWNED\n")
	g.finds("!new/.git/config")
	g.finds()

	// What was there moves away with its directory, and another one comes in its place.
	g.do(os.Rename(filepath.Join(g.dir, "old"), filepath.Join(g.dir, "older")))
	g.file("old/.git/config", "[alias] x = !id\n")
	g.finds("!old/.git/config", "older/.git/config", "!older/.git/hooks")

	g.do(os.RemoveAll(filepath.Join(g.dir, "node_modules")))
	g.finds()
	g.file("node_modules/a/b/.vscode/tasks.json", "{}")
	g.finds("node_modules/a/b/.vscode")
}

// Where nothing keeps commands from writing what was there, what they write is found.
func TestWhatIsWrittenInPlace(t *testing.T) {
	g := newGrounds(t)
	g.file(".git/config", initialConfig)
	g.file(".git/hooks/a.sample", "")
	g.file(".envrc", "x")
	g.begin()
	g.survey.open = true
	g.finds()
	g.tick()
	g.file(".git/config", initialConfig+"[core]\n\tpager = id\n")
	g.file(".git/hooks/post-merge", "id")
	g.finds("!.git/config", "!.git/hooks")
	g.finds()
	g.file(".envrc", "y")
	g.finds(".envrc")
}

// Nothing that a sandbox can put there keeps the look waiting, or leads it elsewhere.
func TestHostileGrounds(t *testing.T) {
	g, elsewhere := newGrounds(t), newGrounds(t)
	elsewhere.file("hooks/post-checkout", "")
	elsewhere.file("config", initialConfig)
	elsewhere.file(".git/config", "[core] pager = id\n")
	g.begin()
	at := func(name string) string { return filepath.Join(g.dir, name) }
	g.file("a/x", "")
	g.do(os.Symlink(elsewhere.dir, at("a/.git")))      // git follows it
	g.do(os.Symlink(elsewhere.dir, at("link")))        // not looked into
	g.do(os.Symlink("../..", at("a/up")))              // nor this
	g.do(os.MkdirAll(at("b/.git/hooks"), 0o755))       // runs nothing
	g.do(syscall.Mkfifo(at("b/.git/config"), 0o644))   // nobody writes into it
	g.do(syscall.Mkfifo(at("b/.envrc"), 0o644))        //
	g.do(os.MkdirAll(at("c/.git"), 0o755))             //
	g.do(os.Symlink("/dev/zero", at("c/.git/config"))) //
	g.do(os.Symlink("../../h", at("c/.git/hooks")))    //
	g.file("d/.git", "gitdir: ../evil\n")              // a repository elsewhere
	g.file("e/.git", "gitdir: ../.git/modules/e\n")    // one that is found by itself
	g.file(".git/modules/e/config", initialConfig+"[include]\n\tpath = ../x\n")
	g.file("f/.git/config", strings.Repeat("#", maxGitFile+1))
	g.file("g/.git/config", "[remote \"o\"]\n\turl = ext::sh -c id\n")
	g.file("h/.git/config", "[core]\n\tbare = false \\\n")
	g.file("i/.git/config", "[core \"x\\\"]\n\tbare=false\n")
	g.finds("!a/.git", "b/.envrc", "!b/.git/config", "b/.git/hooks", "!c/.git/config", "!c/.git/hooks", "!d/.git", "e/.git",
		"!.git/modules/e/config", "!f/.git/config", "!g/.git/config", "!h/.git/config", "!i/.git/config")

	deep := g.dir
	for range maxDepth + 10 {
		deep = filepath.Join(deep, "d")
	}
	g.do(os.MkdirAll(deep, 0o755))
	if _, err := g.survey.Look(t.Context()); sandbox.CodeOf(err) != sandbox.CodeConfig {
		t.Errorf("a tree that is too deep: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.survey.Look(ended); err == nil {
		t.Error("a look that was ended says that it saw everything")
	}
}

// Real git makes repositories that run nothing.
func TestRealRepositoriesRunNothing(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("not run: there is no git on the PATH")
	}
	g := newGrounds(t)
	g.begin()
	run := func(args ...string) {
		t.Helper()
		c := exec.Command(git, append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		c.Dir, c.Env = g.dir, []string{"HOME=" + g.dir, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "one")
	run("-C", "one", "commit", "--allow-empty", "-m", "x")
	run("clone", "one", "two")
	run("-C", "two", "submodule", "add", filepath.Join(g.dir, "one"), "lib")
	run("-C", "two", "worktree", "add", filepath.Join(g.dir, "tree"))
	found, err := g.survey.Look(t.Context())
	if err != nil || len(found) < 6 {
		t.Errorf("%v %v", found, err)
	}
	for _, a := range found {
		if a.Runs {
			t.Errorf("%s counts as what runs something", a.Path)
		}
	}
	run("-C", "two", "config", "core.fsmonitor", "id")
	g.finds("!two/.git/config")
}

// left fails unless exactly these of the names are there.
func (g *grounds) left(want bool, names ...string) {
	g.Helper()
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(g.dir, name)); (err == nil) != want {
			g.Errorf("%s: there is %t, want %t", name, err == nil, want)
		}
	}
}

// What leads git elsewhere by a link, a detour or a name that is not looked at loses its name, and so does what cannot be read.
func TestQuarantineOfDetours(t *testing.T) {
	g, elsewhere := newGrounds(t), newGrounds(t)
	elsewhere.file(".git/worktrees/x/config", "[core] fsmonitor = id\n")
	g.file("tree/.git", "gitdir: ../mine/.git/worktrees/x\n")
	g.file("mine/.git/worktrees/x/commondir", "../..\n")
	g.begin()
	at := func(name string) string { return filepath.Join(g.dir, name) }
	g.file("a/.git", "gitdir: ../.git/worktrees/../../evil\n")
	g.file("b/.git", "gitdir: "+elsewhere.dir+"/.git/worktrees/x\n")
	g.do(os.Symlink(elsewhere.dir, at("link")))
	g.file("c/.git", "gitdir: ../link/.git/worktrees/x\n")
	g.file("d/.git", "gitdir: ../d/link/../.git/worktrees/x\n")
	g.file(".git/worktrees/w/commondir", "../../evil\n")
	g.file("e/.git/HEAD", "x")
	g.do(os.Symlink(elsewhere.dir, at("e/.git/modules")))
	g.do(os.Symlink(elsewhere.dir, at(".git/worktrees/link"))) // nothing is led through it
	g.file("g/.git", "gitdir: ../.git/worktrees/link\n")
	g.file("bare/HEAD", "x")
	g.file("bare/config", initialConfig+"[remote \"o\"]\n\turl = https://example.com/x\n[core]\n\tpager = id\n")
	g.do(os.MkdirAll(at("bare/objects"), 0o755))
	g.do(os.MkdirAll(at("bare/refs"), 0o755))
	g.file("f/.git/commondir", "../evil\n")
	g.do(os.Chmod(at("f/.git"), 0o111))
	g.file("odd\n\xff/.git/hooks/post-checkout", "id")
	g.do(os.Chmod(at("odd\n\xff/.git"), 0o555))
	g.finds("!a/.git", "!b/.git", "!c/.git", "!d/.git", "!.git/worktrees/w/commondir", "!e/.git/modules", "!g/.git", "!bare/config",
		"!f/.git/commondir", "!odd\n\xff/.git/hooks")
	g.left(false, "a/.git", "b/.git", "c/.git", "d/.git", ".git/worktrees/w/commondir", "e/.git/modules", "g/.git", "f/.git/commondir",
		"odd\n\xff/.git/hooks")
	g.left(true, "link", "tree/.git")
	elsewhere.left(true, ".git/worktrees/x/config")
	if content, err := os.ReadFile(at("bare/config")); err != nil || !harmlessGitConfig(string(content), false) || !strings.Contains(string(content), "https://example.com/x") {
		t.Errorf("what is left of a configuration: %s %v", content, err)
	}
	g.finds()
	// What was there, and where it leads is another place now.
	g.do(os.Rename(at("mine"), at("old")))
	g.do(os.Symlink(elsewhere.dir, at("mine")))
	g.finds("!tree/.git", "old/.git/worktrees/x/commondir")
}

// Programs that swap directories for links while they are looked at lead no look out of the workspace, and a deep tree beside it hides
// nothing.
func TestQuarantineIsNotLedAway(t *testing.T) {
	g, elsewhere := newGrounds(t), newGrounds(t)
	g.begin()
	for i := range 50 {
		g.file(fmt.Sprint("d", i, "/.git/config"), "[core] pager = id\n")
		elsewhere.file(fmt.Sprint("d", i, "/.git/config"), "[core] pager = id\n")
	}
	g.do(os.MkdirAll(filepath.Join(g.dir, strings.Repeat("a/", maxDepth+5)), 0o755))
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i = (i + 1) % 50 {
			select {
			case <-stop:
				return
			default:
			}
			at := filepath.Join(g.dir, fmt.Sprint("d", i))
			_ = os.Rename(at, at+"x")
			_ = os.Symlink(filepath.Join(elsewhere.dir, fmt.Sprint("d", i)), at)
			_ = os.Remove(at)
			_ = os.Rename(at+"x", at)
			_ = os.WriteFile(at+"/.git/config", []byte("[core] pager = id\n"), 0o644)
		}
	}()
	for range 200 {
		if _, err := g.survey.Look(t.Context()); sandbox.CodeOf(err) != sandbox.CodeConfig {
			t.Fatalf("a tree that is too deep: %v", err)
		}
	}
	close(stop)
	<-ended
	for i := range 50 {
		if entries, err := os.ReadDir(filepath.Join(elsewhere.dir, fmt.Sprint("d", i), ".git")); err != nil || len(entries) != 1 || entries[0].Name() != "config" {
			t.Errorf("%v %v", entries, err)
		}
	}
	_, _ = g.survey.Look(t.Context())
	for i := range 50 {
		if content, err := os.ReadFile(filepath.Join(g.dir, fmt.Sprint("d", i), ".git/config")); err == nil && !harmlessGitConfig(string(content), false) {
			t.Errorf("%d: %s", i, content)
		}
	}
}

// A look at 40,000 directories of which none has changed.
func BenchmarkLookAtAnUnchangedTree(b *testing.B) {
	g := newGrounds(b)
	for i := range 200 {
		for j := range 200 {
			g.do(os.MkdirAll(filepath.Join(g.dir, fmt.Sprint("p", i), fmt.Sprint("d", j)), 0o755))
		}
	}
	g.begin()
	time.Sleep(2 * settled)
	if _, err := g.survey.Look(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if found, err := g.survey.Look(b.Context()); err != nil || len(found) > 0 {
			b.Fatal(found, err)
		}
	}
}
