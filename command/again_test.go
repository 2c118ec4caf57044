package command

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// ground is a real tree in which commands run: a workspace, Toolward's own directory and a stranger's.
type ground struct {
	ws, state, other string
	places           *place.Classifier
	evaluator        *Evaluator
}

func newGround(t testing.TB) *ground {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{ws: dir + "/home/ws", state: dir + "/home/.toolward", other: dir + "/home/other"}
	for _, d := range []string{g.ws, g.state, g.other} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d+"/a", []byte(d), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.places, err = place.New(place.Layout{Workspace: g.ws, Home: dir + "/home", StateDir: g.state, ConfigFile: g.state + "/toolward.jsonc"})
	if err != nil {
		t.Fatal(err)
	}
	if g.evaluator, _, err = New(onMiss(Developer), dir+"/home", NewResolver(Disk{})); err != nil {
		t.Fatal(err)
	}
	return g
}

// run runs a command as if a person had allowed it.
func (g *ground) run(t testing.TB, text string) (*Assessment, job.Result) {
	t.Helper()
	env := map[string]string{"HOME": filepath.Dir(g.ws), "PATH": DefaultPath, "GIT_CONFIG_GLOBAL": "/dev/null", "PWD": g.ws}
	a := g.evaluator.Evaluate(&Request{
		Command: text, Dir: g.ws, Places: g.places, Level: toolward.Normal,
		Getenv: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
	})
	dir, err := g.places.Resolve(g.ws, ".")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := a.Plan(dir, g.places, EnvironmentList(env))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	running, err := job.Start(plan, job.Streams{})
	if err != nil {
		return a, job.Result{Err: err}
	}
	<-running.Done()
	result := running.Result()
	running.Release()
	return a, result
}

// A patch makes a link to Toolward's own directory, and the next part of the command copies a list of what may run there.
func TestLinkMadeByAnEarlierPart(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	for name, c := range map[string]struct {
		second string
		runs   bool
	}{
		"through the link": {"cp -p exec-approvals.json c/exec-approvals.json", false},
		"below the link":   {"sort -o c/deep/x a", false},
		"read through it":  {"cat c/exec-approvals.json", false},
		"beside it":        {"cp -p exec-approvals.json d.json", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			patch := "diff --git a/c b/c\nnew file mode 120000\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+" + g.state + "\n\\ No newline at end of file\n"
			for file, text := range map[string]string{"l.patch": patch, "exec-approvals.json": "theirs"} {
				if err := os.WriteFile(g.ws+"/"+file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, result := g.run(t, "git apply l.patch && "+c.second)
			if to, err := os.Readlink(g.ws + "/c"); err != nil || to != g.state {
				t.Fatalf("the patch made no link: %q, %v", to, err)
			}
			if ran := result.Err == nil && result.Code == 0; ran != c.runs {
				t.Errorf("%s: %+v", c.second, result)
			}
			if _, err := os.Stat(g.state + "/exec-approvals.json"); err == nil {
				t.Error("Toolward's own file was written")
			}
		})
	}
}

// Programs of one pipeline, and those of a script, run without anybody looking in between: they ask.
func TestLinksBesideAsk(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/ln": "x", "/usr/bin/tar": "x", "/ws/a.tar": "f", "/ws/a": "f"})
	for text, want := range map[string]toolward.Verdict{
		"git stash pop | sort -o c/x":             toolward.Ask,
		"tar xf a.tar | tee c/x":                  toolward.Ask,
		"bash -c 'git apply a && cp README.md k'": toolward.Ask,
		"git log | tee log.txt":                   toolward.Allow,
		"git add . | tail -n 3":                   toolward.Allow,
		"bash -c 'git status && cp README.md k'":  toolward.Allow,
	} {
		if a := w.evaluate(t, onMiss(Developer), text); verdict(a) != want {
			t.Errorf("%s: %s, want %s (%v)", text, verdict(a), want, a.Segments[len(a.Segments)-1].Asks)
		}
	}
}

// Whatever links, moves and removals a command begins with, nothing that it does lands in another place than was judged.
func TestNothingLandsElsewhere(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 7))
	rounds := 150
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		g := newGround(t)
		text := randomMoves(r, g)
		before := [2]string{snapshot(t, g.state), snapshot(t, g.other)}
		a, result := g.run(t, text)
		if after := [2]string{snapshot(t, g.state), snapshot(t, g.other)}; after != before && !namesElsewhere(a, g) {
			t.Fatalf("%s\nchanged what it did not name: %v\n%+v", text, after, result)
		}
	}
}

// namesElsewhere reports whether the command was judged to write outside the workspace.
func namesElsewhere(a *Assessment, g *ground) bool {
	found := false
	eachSegment(a.Segments, func(s *Segment) {
		for i := range s.Effects {
			e := &s.Effects[i]
			found = found || e.Kind == shell.Writes && e.at.Real != "" && !place.Within(e.at.Real, g.ws)
		}
	})
	return found
}

// randomMoves is a command: parts that make, move and remove links, and parts that write through names.
func randomMoves(r *rand.Rand, g *ground) string {
	names := []string{"c", "d", "e"}
	name := func() string { return names[r.IntN(len(names))] }
	target := func() string { return []string{g.state, g.other, "../other", "../.toolward", "d", "."}[r.IntN(6)] }
	var parts []string
	for range 2 + r.IntN(5) {
		x, y := name(), name()
		parts = append(parts, []string{
			fmt.Sprintf("ln -s %s %s", target(), x), fmt.Sprintf("ln -sfn %s %s/%s", target(), x, y), "mkdir -p " + x,
			fmt.Sprintf("mv %s %s", x, y), fmt.Sprintf("cp -a %s %s", x, y), "rm -rf " + x, fmt.Sprintf("cp a %s/%s", x, y),
			fmt.Sprintf("cp a %s", x), fmt.Sprintf("sort -o %s/k a", x), fmt.Sprintf("touch %s/new", x), fmt.Sprintf("tee %s/%s/t", x, y),
			fmt.Sprintf("mv a %s", x), fmt.Sprintf("ls %s > %s/list", x, y), fmt.Sprintf("truncate -s 9 %s/a", x), fmt.Sprintf("ln a %s/hard", x),
		}[r.IntN(15)])
	}
	return strings.Join(parts, []string{" ; ", " && ", " || "}[min(r.IntN(6), 2)])
}

// snapshot is the names, kinds and contents of a tree.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		content, _ := os.ReadFile(p) // a directory has none
		lines = append(lines, fmt.Sprintf("%s %s %q", p, d.Type(), content))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// What looking again costs for one part with three paths.
func BenchmarkJudgedAgain(b *testing.B) {
	g := newGround(b)
	env := map[string]string{"HOME": filepath.Dir(g.ws), "PATH": DefaultPath}
	a := g.evaluator.Evaluate(&Request{
		Command: "cp -p a b c", Dir: g.ws, Places: g.places, Level: toolward.Normal,
		Getenv: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
	})
	again := a.Segments[0].again(g.places)
	for b.Loop() {
		if err := again(); err != nil {
			b.Fatal(err)
		}
	}
}
