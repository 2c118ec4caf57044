package builtin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/light"
)

// The proofs of what project code in an allowed command could reach reach nothing, through the tool as it is in a gateway.
func TestProofsReachNothing(t *testing.T) {
	if _, err := inside.FindProgram(t.Context()); err != nil {
		t.Skip(err)
	}
	w := newWorld(t)
	l := light.New(light.Options{Program: func(ctx context.Context) (*os.File, []string, error) {
		program, err := inside.FindProgram(ctx)
		if err != nil {
			return nil, nil, err
		}
		return program.File, program.Args, nil
	}})
	t.Cleanup(l.Close)
	if check := l.Check(); check.Mode != light.Namespaces {
		t.Skipf("%+v", check)
	}
	w.box.deps.Light = l
	t.Setenv("DAEMON_KEY", "k-e-y") // this test is the daemon
	approvals := `{"version":1,"agents":{}}`
	for name, text := range map[string]string{
		".toolward/exec-approvals.json": approvals, ".toolward/audit.key": "k-e-y", ".toolward/state.db": "k-e-y", ".ssh/id_rsa": "k-e-y",
		".config/gh/hosts.yml": "k-e-y", ".aws/credentials": "k-e-y", ".bashrc": "",
	} {
		p := filepath.Join(w.home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.put("ws/t.sh", `eval "$*"`)
	for _, c := range []string{
		`bash t.sh 'echo "{}" > ~/.toolward/exec-approvals.json; cat ~/.toolward/audit.key ~/.toolward/state.db'`,
		`bash t.sh 'ln -s ~/.toolward c; cp t.sh c/exec-approvals.json; cat c/audit.key'`,
		"grep -rsa --include=environ DAEMON_KEY /proc", "ps auxe", "ps auxwwe", "find " + w.home + "/.config -type f -exec cat {} +",
		fmt.Sprintf("bash t.sh 'cat /proc/%d/environ /proc/%d/fd/*'", os.Getpid(), os.Getpid()), "grep -r k-e-y " + w.home, "cp -r " + w.home + "/.ssh k", "cat k/id_rsa",
		"tar cf x.tar -C " + w.home + " .aws .ssh", "tar xOf x.tar",
	} {
		result := w.finish(w.facts("exec", args{"command": c}))
		if text := result.Content[0].Text; strings.Contains(text, "k-e-y") {
			t.Errorf("%s: %s", c, text)
		}
	}
	if text, err := os.ReadFile(w.home + "/.toolward/exec-approvals.json"); err != nil || string(text) != approvals {
		t.Errorf("what runs without a question was changed: %q, %v", text, err)
	}
	if text := w.ok("exec", args{"command": "bash t.sh 'echo made > made; cat made'"}); !strings.Contains(text, "made") {
		t.Errorf("ordinary work: %q", text)
	}
	w.holds("ws/made", "made\n")
	result := w.finish(w.facts("exec", args{"command": "bash t.sh 'echo x > ~/.bashrc'"}))
	if text := result.Content[0].Text; !strings.Contains(text, "were kept from it") {
		t.Errorf("nobody is told why: %q", text)
	}
}
