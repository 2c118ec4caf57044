package command

import (
	"testing"

	"github.com/toolward/toolward"
)

// What a client's own shell runs on the machine is not judged again between its parts: a path that an earlier part may turn into a link
// asks there, and only there.
func TestPathsThatAnEarlierPartMakes(t *testing.T) {
	files := map[string]string{
		"/ws/.git/HEAD": "f", "/ws/src/a.go": "f", "/ws/docs/x.md": "f", "/ws/docs/link": "l:/srv", "/ws/a.txt": "f", "/ws/l": "l:a.txt", "/ws/good.patch": "t:--- a/a.txt\n+++ b/a.txt\n",
	}
	for _, tool := range []string{"tar", "unzip", "ln", "mkdir", "cp", "mv", "rsync", "cpio", "patch", "install", "cat", "sort"} {
		files["/usr/bin/"+tool] = "x"
	}
	w := newWorld(t, files)
	e, _, err := New(onMiss(Developer), w.home, NewResolver(w.files))
	if err != nil {
		t.Fatal(err)
	}
	judge := func(command string, r Request) (toolward.Verdict, []Code) {
		r.Command, r.Dir, r.Getenv, r.Level, r.Places, r.ByShell = command, w.dir, w.getenv, toolward.Normal, w, true
		a := e.Evaluate(&r)
		return verdict(a), codes(a)
	}
	for _, command := range []string{
		"git stash pop && cat c/a", "git checkout main && cat c/a", "git pull; sort -o c/k a.txt", "git merge x && echo y > c/f", "git reset --hard && cat < c/a",
		"git switch main && cd c && cat a", "git checkout -- l && cp a.txt l2/x", "git restore src && cat src/a.go", "git stash && cat c/a",
		"ln -s docs c && cat c/x.md", "ln -s ../x src/l && cat src/l", "cp -a docs c && cat c/link/a", "cp -r docs c; cat c/link/a", "cp -P l m && cat m", "mv docs c && cat c/link/a",
		"mv l m && cat m", "git pull | cat c/a", "bash -c 'git pull'; cat c/a", "timeout 5 git pull && cat c/a", "git pull && ls src | xargs cat c/a", "git pull && mkdir x && cat c/a",
	} {
		if got, _ := judge(command, Request{}); got != toolward.Ask {
			t.Errorf("%s: %s", command, got)
		}
	}
	for _, command := range []string{
		"git stash pop && cat c/a", "cp -a docs c && cat c/link/a", "ln -s docs c && cat c/x.md",
	} {
		if got, why := judge(command, Request{Rejudged: true}); got != toolward.Allow {
			t.Errorf("judged again, %s: %s %v", command, got, why)
		}
	}
	for _, command := range []string{
		"git add -A && git commit -m x && cat a.txt", "git fetch && cat a.txt", "git checkout -b x && cat a.txt", "git stash list && cat a.txt", "git reset && cat a.txt",
		"git pull && go test ./...", "git stash pop && git status", "git pull && cat /tmp/x", "git checkout main && ls", "git rm --cached a.txt && cat a.txt",
		"cp a.txt b.txt && cat b.txt", "cp -r src copy && cat copy/a.go", "mv a.txt b.txt && cat b.txt", "mv src lib && cat lib/a.go", "ln -s docs c && cat a.txt",
		"cp -a docs c && cat src/a.go", "mkdir -p x && cat c/a", "patch -p1 -i good.patch && cat a.txt", "git apply good.patch && cat a.txt", "tar cf x.tar src && cat c/a", "cat c/a && git pull",
	} {
		if got, why := judge(command, Request{}); got != toolward.Allow {
			t.Errorf("%s: %s %v", command, got, why)
		}
	}
}

// Sessions stay quiet: what the rule costs where a client's shell runs what it likes.
func TestEverydayCommandsByAClient(t *testing.T) {
	for name, most := range map[string]int{"everyday.txt": 0, "sessions.txt": 0} {
		commands, _ := listed(t, name)
		w := everydayWorld(t, commands)
		e, _, err := New(onMiss(Developer), w.home, NewResolver(w.files))
		if err != nil {
			t.Fatal(err)
		}
		asks, before := 0, 0
		for _, command := range commands {
			r := Request{Command: command, Dir: w.dir, Getenv: w.getenv, Level: toolward.Normal, Places: w, ByShell: true, Enforced: true, Rejudged: true}
			again := verdict(e.Evaluate(&r))
			r.Rejudged = false
			unseen := verdict(e.Evaluate(&r))
			if again != toolward.Allow {
				before++
			}
			if unseen != toolward.Allow {
				asks++
			}
			if again != unseen {
				t.Logf("%s: asks where nobody judges again: %s", name, command)
			}
		}
		if asks > before+most {
			t.Errorf("%s: %d ask, where paths are judged again %d", name, asks, before)
		}
		t.Logf("%s: %d of %d commands of a client ask, %d where paths are judged again", name, asks, len(commands), before)
	}
}
