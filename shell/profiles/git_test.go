package profiles

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toolward/toolward/shell"
)

// TestGitOptionsTakeValuesAsGitReadsThem asks the git of this machine which long options take a value. An option that
// the profile and git read differently would hide the word that follows it.
func TestGitOptionsTakeValuesAsGitReadsThem(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil || testing.Short() {
		t.Skip("there is no git, or no time")
	}
	dir := t.TempDir()
	if out, err := exec.Command(git, "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v %s", err, out)
	}
	for name, section := range Of("git").Sections {
		if name == "" {
			continue
		}
		args := append([]string{"-C", dir}, strings.Fields(name)...)
		out, err := exec.Command(git, append(args, "--git-completion-helper-all")...).Output()
		if err != nil {
			continue // this git, or this command of it, does not tell
		}
		for _, word := range strings.Fields(string(out)) {
			spelling, needsValue := strings.CutSuffix(word, "=")
			option := section.Options[spelling]
			switch {
			case !strings.HasPrefix(word, "--") || word == "--":
			case option == nil:
				t.Logf("git %s %s is not known", name, word)
			case name == "merge" && word == "--file": // its value is needed, though the list does not say so
			case needsValue != (option.Value == Required):
				t.Errorf("git %s %s: the profile says otherwise", name, word)
			}
		}
	}
}

// gitWorld is a repository whose hooks, and programs that git might start, leave a mark when they run.
type gitWorld struct {
	t                      *testing.T
	git, dir, marks, outer string
}

func newGitWorld(t *testing.T) *gitWorld {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no git, or no shell for its hooks")
	}
	outer := t.TempDir()
	w := &gitWorld{t: t, git: git, outer: outer, dir: filepath.Join(outer, "repo"), marks: filepath.Join(t.TempDir(), "marks")}
	w.mustRun("init", "-q", "-b", "main", w.dir)
	for _, file := range []string{"a.go", "b.txt"} {
		w.write(filepath.Join(w.dir, file), "one\ntwo\n", 0o644)
	}
	w.mustRun("-C", w.dir, "add", "-A")
	w.mustRun("-C", w.dir, "commit", "-qm", "first")
	w.mustRun("-C", w.dir, "commit", "-q", "--allow-empty", "-m", "second")
	w.mustRun("-C", w.dir, "tag", "v1")
	w.mustRun("-C", w.dir, "branch", "other")
	w.write(filepath.Join(w.dir, "b.txt"), "one\nthree\n", 0o644)
	for _, hook := range strings.Fields(`applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit
		post-merge post-rewrite pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase
		prepare-commit-msg reference-transaction sendemail-validate`) {
		w.shim(filepath.Join(w.dir, ".git", "hooks", hook))
	}
	for _, program := range strings.Fields(`less more vi vim nano gpg ssh man sh-pager open xdg-open gitk id`) {
		w.shim(filepath.Join(outer, "bin", program))
	}
	w.write(filepath.Join(w.dir, ".git", "config"), w.read(filepath.Join(w.dir, ".git", "config"))+
		"[alias]\n\tx = !id\n[diff \"m\"]\n\tcommand = id\n\ttextconv = id\n[merge \"m\"]\n\tdriver = id\n", 0o644)
	return w
}

func (w *gitWorld) shim(file string) {
	w.write(file, "#!/bin/sh\necho "+filepath.Base(file)+" >> '"+w.marks+"'\nexec cat\n", 0o755)
}

func (w *gitWorld) write(file, text string, mode os.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *gitWorld) read(file string) string {
	data, _ := os.ReadFile(file)
	return string(data)
}

func (w *gitWorld) run(args ...string) (string, error) {
	cmd := exec.Command(w.git, args...)
	cmd.Dir = w.outer
	if _, err := os.Stat(w.dir); err == nil {
		cmd.Dir = w.dir
	}
	cmd.Env = []string{
		"HOME=" + w.outer, "PATH=" + filepath.Join(w.outer, "bin") + ":/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x", "PAGER=sh-pager", "EDITOR=vi",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *gitWorld) mustRun(args ...string) {
	w.t.Helper()
	if out, err := w.run(args...); err != nil {
		w.t.Fatalf("git %q: %v %s", args, err, out)
	}
}

// state is the contents of all files: of the work tree, of the repository if it counts, and around both.
func (w *gitWorld) state(repository bool) map[string]string {
	files := map[string]string{}
	err := filepath.WalkDir(w.outer, func(file string, entry fs.DirEntry, err error) error {
		// git status and diff may refresh the index: what it says stays the same.
		if err != nil || entry.IsDir() || !repository && strings.Contains(file, "/.git/") || strings.HasSuffix(file, "/.git/index") {
			return err
		}
		files[file] = w.read(file)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

// TestGitDoesNoMoreThanItsProfileSays runs the real git: what is said to read changes nothing and starts nothing, and
// what is said to write starts nothing but hooks and leaves everything around the repository alone.
func TestGitDoesNoMoreThanItsProfileSays(t *testing.T) {
	w := newGitWorld(t)
	reads := []string{
		"status", "status -sb", "status --porcelain=v2 --ignored", "diff", "diff --cached --stat", "diff HEAD~1 --name-only", "diff -U1 -w --word-diff",
		"log", "log --oneline --graph --all -5", "log -p -- b.txt", "log -L1,2:a.go", "log -S one", "log --show-signature", "show", "show HEAD:a.go", "show --stat v1",
		"blame a.go", "grep -n one", "grep -c -e one --and -e two HEAD", "ls-files -o --exclude-standard", "ls-tree -r HEAD", "rev-parse --show-toplevel", "rev-list --count HEAD",
		"describe --tags --always --dirty", "shortlog -sn HEAD", "reflog", "reflog show main", "stash list", "worktree list", "remote -v", "config user.name", "config --list",
		"config --get-regexp alias", "cat-file -p HEAD", "for-each-ref --format=%(refname)", "show-ref", "merge-base main other", "name-rev HEAD", "cherry main other", "branch", "branch -vv",
		"branch -a --contains HEAD", "branch --merged main", "branch --show-current", "tag", "tag -l v*", "tag -n", "symbolic-ref HEAD", "check-ignore x", "count-objects -v", "fsck",
		"clean -n", "clean -ndx", "var GIT_AUTHOR_IDENT", "archive HEAD", "verify-commit HEAD", "range-diff HEAD~1..main HEAD~1..other", "submodule status", "notes list", "version", "bundle verify x",
		"-c color.ui=always -c core.pager=cat log", "--no-pager log", "diff --no-index a.go b.txt", "ls-remote .", "sparse-checkout list", "whatchanged", "rerere status",
		"stash show", "diff-tree HEAD", "help -a", "show-branch", "check-attr diff a.go", "interpret-trailers a.go", "hash-object a.go", "diff --no-ext-diff",
	}
	writes := []string{
		"add -A", "commit -m x", "branch new", "tag v2", "tag -a v3 -m x", "checkout -b feature", "switch main", "stash push -m x", "stash list", "stash pop", "reset --soft HEAD~1", "commit -m again",
		"mv a.go c.go", "reset -q HEAD", "restore --staged .", "merge --no-ff other -m x", "rebase other", "cherry-pick --allow-empty HEAD~1", "revert --no-edit HEAD", "notes add -m x", "gc --auto", "config user.email a@y",
		"format-patch -1 -o out", "bisect start", "bisect reset", "checkout main", "rm --cached b.txt", "archive -o out.tar HEAD", "symbolic-ref HEAD refs/heads/main",
	}
	before := w.state(true)
	for _, command := range reads {
		kinds := kindsOf(t, "git "+command)
		if strings.Contains(kinds, string(shell.Project)) && command != "rerere status" || strings.Contains(kinds, string(shell.Unknown)) || strings.Contains(kinds, string(shell.Evaluates)) {
			t.Errorf("git %s: it is told as %q", command, kinds)
		}
		out, err := w.run(strings.Fields(command)...)
		if err != nil {
			t.Logf("git %s: %v\n%s", command, err, out)
		}
		if marks := w.read(w.marks); marks != "" && command != "log --show-signature" {
			t.Errorf("git %s starts %q\n%s", command, strings.Fields(marks), out)
		}
		os.Remove(w.marks)
		if after := w.state(true); !maps.Equal(before, after) {
			t.Errorf("git %s changes files", command)
			before = after
		}
	}
	around := func() map[string]string {
		files := w.state(false)
		maps.DeleteFunc(files, func(file, _ string) bool { return strings.HasPrefix(file, w.dir+"/") })
		return files
	}
	outside := around()
	for _, command := range writes {
		kinds := kindsOf(t, "git "+command)
		if strings.Contains(kinds, string(shell.Unknown)) || strings.Contains(kinds, string(shell.Evaluates)) || !strings.Contains(kinds, string(shell.Writes)) && command != "stash list" {
			t.Errorf("git %s: it is told as %q", command, kinds)
		}
		out, err := w.run(strings.Fields(command)...)
		if err != nil {
			t.Logf("git %s: %v\n%s", command, err, out)
		}
		for _, mark := range strings.Fields(w.read(w.marks)) {
			if _, err := os.Stat(filepath.Join(w.dir, ".git", "hooks", mark)); err != nil {
				t.Errorf("git %s starts %s\n%s", command, mark, out)
			} else if !strings.Contains(kinds, string(shell.Project)) {
				t.Errorf("git %s runs the hook %s, and is told as %q", command, mark, kinds)
			}
		}
		os.Remove(w.marks)
		if after := around(); !maps.Equal(outside, after) {
			t.Errorf("git %s changes files outside the repository", command)
			outside = after
		}
	}
}
