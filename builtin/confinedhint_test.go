package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHintsOfConfinedCommands(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mytool"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := &Toolbox{environ: map[string]string{"PATH": "relative:" + dir}}
	for _, c := range []struct {
		name, command, output string
		online                bool
		want                  string // "" is none
	}{
		{"ours", "mytool x", "toolward: mytool: command not found\n", false, "mytool is a program of this machine"},
		{"dash", "mytool | cat", "sh: 1: mytool: not found\n", false, "mytool is a program of this machine"},
		{"bash", "mytool", "bash: line 1: mytool: command not found\r\n", false, "mytool is a program of this machine"},
		{"nowhere", "nowhere", "toolward: nowhere: command not found\n", false, ""},
		{"not what was asked for", "cat log", "toolward: mytool: command not found\n", false, ""},
		{"a path", "./mytool", "toolward: ./mytool: command not found\n", false, ""},
		{"no network", "curl x", "curl: (6) Could not resolve host: x\n", false, "no network"},
		{"no network, of Go", "go get x", "dial tcp: lookup proxy.golang.org on [::1]:53: connection refused\n", false, "no network"},
		{"a network", "curl x", "curl: (6) Could not resolve host: x\n", true, "HTTPS_PROXY"},
		{"protected", "git config a b", "error: could not write config file .git/config: Device or resource busy\n", true, "cannot be changed"},
		{"processes", "make -j", "sh: 1: Cannot fork\n", true, "sandbox.limits.pids"},
		{"processes, of bash", "x", "bash: fork: retry: Resource temporarily unavailable\n", true, "sandbox.limits.pids"},
		{"threads", "x", "RuntimeError: can't start new thread\n", true, "sandbox.limits.pids"},
		{"processes, of node", "x", "Error: spawn sh EAGAIN\n", true, "sandbox.limits.pids"},
		{"open files", "x", "OSError: [Errno 24] Too many open files: 'a'\n", true, "sandbox.limits.openFiles"},
		{"a large file", "x", "dd: error writing 'a': File too large\n", true, "sandbox.limits.fileSize"},
		{"a full file system", "x", "dd: error writing '/tmp/a': No space left on device\n", true, "sandbox.limits.memory"},
		{"who commits", "git commit", "Author identity unknown\n\n*** Please tell me who you are.\n\nRun\n", true, "user.name and user.email"},
		{"its own reason", "false", "no\n", false, ""},
	} {
		hint := b.hintFor(&execPlan{command: c.command, box: &Confinement{Offline: !c.online}})
		if got := hint(c.output); c.want == "" && got != "" || !strings.Contains(got, c.want) || strings.Contains(got, dir) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	if b.hintFor(&execPlan{}) != nil {
		t.Error("a command of this machine has hints")
	}
	refused := b.hintFor(&execPlan{command: "npm i", box: &Confinement{Unreached: func() []string { return []string{"a.example:443: a person declined it"} }}})
	if got := refused("ENOTFOUND"); !strings.Contains(got, "Host asked for: a.example:443: a person declined it") {
		t.Errorf("a host that was refused: %q", got)
	}
	s := &session{execution: &execution{spec: commandSpec{hint: func(string) string { return "why" }}}}
	for _, c := range []struct {
		end  exit
		want string
	}{{exit{code: 127}, "ended\nwhy"}, {exit{}, "ended"}, {exit{code: 1, ending: endedTimeout}, "ended"}} {
		if got := s.note(c.end, "ended", ""); got != c.want {
			t.Errorf("%+v: %q", c.end, got)
		}
	}
	slow := &session{execution: &execution{spec: commandSpec{
		hint: func(string) string { return "why" }, slow: (&execPlan{box: &Confinement{CPUs: 0.5}}).slowness(),
	}}}
	if got := slow.note(exit{code: 1, ending: endedTimeout}, "late", ""); !strings.Contains(got, "0.5 processors: sandbox.limits.cpus") {
		t.Errorf("a command that took too long: %q", got)
	}
}
