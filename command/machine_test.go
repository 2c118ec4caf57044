package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/command/allowlist"
)

func TestOnlyOnMachine(t *testing.T) {
	evaluator, _, err := New(Policy{}, t.TempDir(), NewResolver(Disk{}))
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"git status":                          "",
		"git push origin main":                "git push",
		"git -C sub push":                     "git push",
		"git commit -m push":                  "",
		"git commit -S -m x":                  "git commit",
		"git log -S push":                     "",
		"go test ./... && docker ps":          "docker",
		"timeout 5 gh pr list":                "gh",
		"npm publish":                         "npm publish",
		"npm run publish":                     "",
		"/usr/bin/ssh host ls":                "ssh",
		"echo docker":                         "",
		"sudo ls":                             "sudo",
		"cd sub && systemctl status x | head": "systemctl",
		"for":                                 "",
	} {
		if got := evaluator.Evaluate(&Request{Command: command, Dir: t.TempDir()}).OnlyOnMachine(); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

func TestOnlyReads(t *testing.T) {
	evaluator, _, err := New(Policy{}, t.TempDir(), NewResolver(Disk{}))
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]bool{
		"ls -la": true, "cat a | grep b 2>/dev/null": true, "git status && git log -3": true, "cd sub && ls": true, "find . -name x": true,
		"ls > a": false, "rm a": false, "sed -i s/a/b/ c": false, "no-such-program": false, "python3 a.py": false, "make": false,
		"ls; touch b": false, "find . -delete": false, "for": false, "": false, "env FOO=1 rm a": false, "find . -exec rm {} +": false,
	} {
		if got := evaluator.Evaluate(&Request{Command: command, Dir: t.TempDir(), Getenv: onPath}).OnlyReads(); got != want {
			t.Errorf("%q: %t", command, got)
		}
	}
}

func TestSingleProgram(t *testing.T) {
	evaluator, _, err := New(Policy{}, t.TempDir(), NewResolver(Disk{}))
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"ls -la 'a b'": "ls|-la|a b", "true": "true", "/bin/ls": "/bin/ls",
		"exit 3": "", "echo a": "", "no-such-program": "", "ls | cat": "", "ls;": "", "ls > a": "", "FOO=1 ls": "", "ls $HOME": "", "ls *": "",
		"cd sub": "", "time ls": "", "ls; ls": "", "ls &": "", "! ls": "", "timeout 5 ls": "", "kill 1": "", "ls ~": "",
	} {
		got := evaluator.Evaluate(&Request{Command: command, Dir: t.TempDir(), Getenv: onPath}).SingleProgram()
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q", command, got)
		}
	}
}

// A script says in $0 how it was called: only a shell calls it by a path that begins here.
func TestSingleProgramOfTheProject(t *testing.T) {
	evaluator, _, err := New(Policy{}, t.TempDir(), NewResolver(Disk{}))
	dir := t.TempDir()
	script := filepath.Join(dir, "run.sh")
	if err := errors.Join(err, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"./run.sh a": "", script + " a": script + "|a"} {
		got := evaluator.Evaluate(&Request{Command: command, Dir: dir, Getenv: onPath}).SingleProgram()
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q", command, got)
		}
	}
}

func onPath(name string) (string, bool) { return DefaultPath, name == "PATH" }

// An entry for the machine counts whether or not it lets the command run: where it runs is one question, what it may is another.
func TestListedForMachine(t *testing.T) {
	head, err := exec.LookPath("head")
	if err != nil {
		t.Skip(err)
	}
	entry := allowlist.Entry{Pattern: "/**/wc", Host: allowlist.OnMachine}
	exactly := allowlist.Entry{Pattern: "/**/head", Argv: []string{head, "-1", "x"}, Host: allowlist.OnMachine}
	evaluator, _, err := New(Policy{Entries: []allowlist.Listed{{Entry: entry}, {Entry: exactly}, {Entry: allowlist.Entry{Pattern: "/**/cat"}}}}, t.TempDir(), NewResolver(Disk{}))
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"wc -l x": "wc", "cat x | wc": "wc", "cat x": "", "head -1 x": "head", "head -2 x": "", "for": "", "cd sub && wc /etc/shadow": "wc",
	} {
		if got := evaluator.Evaluate(&Request{Command: command, Dir: t.TempDir(), Getenv: os.LookupEnv, Sandboxed: true}).ListedForMachine(); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}
