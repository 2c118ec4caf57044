package live_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/escape"
	"github.com/toolward/toolward/internal/live"
)

// What is in a sandbox through a client's hook and toolward-run gets out of it no better than any other command.
func TestEscapeThroughARunner(t *testing.T) {
	native := func(t *testing.T) { escapeThroughARunner(t, newTicketDesk(t, nativeAgent), "native") }
	t.Run("native", native)
	t.Run("native as user", func(t *testing.T) { asUserWithProbe(t, "native", native) })
	docker := func(t *testing.T) {
		table := "docker"
		if os.Getuid() == 0 {
			table = escape.DockerRoot
		}
		b := newBoxed(t, "docker", "")
		b.Configure(strings.Replace(confinedAgent, `"mode": "all"`, fmt.Sprintf(`"mode": "all", "engine": "docker", "degradeOk": ["cgroup"], "docker": {"image": %q}`, b.image()), 1))
		b.start()
		escapeThroughARunner(t, &ticketDesk{Machine: b.Machine, t: t}, table)
	}
	t.Run("docker", docker)
	t.Run("docker as user", func(t *testing.T) { asUserWithProbe(t, "docker", docker) })
}

// asUserWithProbe runs a test as an ordinary user, who cannot build the probe.
func asUserWithProbe(t *testing.T, engine string, test func(*testing.T)) {
	t.Helper()
	if os.Getuid() != 0 {
		test(t)
		return
	}
	dir, err := os.MkdirTemp("", "probe") // where that user gets in
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	probe := filepath.Join(dir, "probe")
	live.Build(t, "internal/escape/probe", probe)
	t.Setenv(escape.ProbeVariable, probe)
	asUser(t, engine)
}

var nativeAgent = strings.Replace(confinedAgent, `"mode": "all"`, `"mode": "all", "engine": "native", "degradeOk": ["cgroup"]`, 1)

func escapeThroughARunner(t *testing.T, m *ticketDesk, engine string) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	hidden := []string{m.State, "/etc/passwd-", "/var/lib/dpkg"}
	if !strings.HasPrefix(m.Home, home+"/") && engine != "native" { // native sandboxes show the toolchains in there
		hidden = append(hidden, home)
	}
	escape.RunAttemptsIn(t, engine, m.Workspace, hidden, func(command string) (string, int) {
		got := m.shell(m.told("trap '' USR1; exec " + command)) // an attempt sends it to all that it reaches: the shell around it, too
		if got.err != "" {
			t.Log(got.err)
		}
		return got.out, got.code
	})
}

// TestProofsThroughARunner: what the findings of a review of the gate did with one unasked command of a client reaches nothing inside. Each
// proof reaches its target where a shell runs it as it is: else it would prove nothing.
func TestProofsThroughARunner(t *testing.T) {
	m := newTicketDesk(t, confinedAgent)
	const secret = "k-e-y-of-the-person"
	for name, content := range map[string]string{".ssh/id_rsa": secret, ".config/gh/hosts.yml": secret, ".docker/config.json": secret, ".bashrc": ""} {
		path := filepath.Join(m.Home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, content)
	}
	approvals := filepath.Join(m.State, "exec-approvals.json")
	everything := `{"version":1,"agents":{"*":{"allowlist":[{"pattern":"*"}]}}}`
	writeFile(t, filepath.Join(m.Workspace, "x.json"), everything)
	// A directory of the machine that stands for what hooks and editors of the person run there.
	writeFile(t, filepath.Join(m.Workspace, "y.js"), fmt.Sprintf("require('fs').writeFileSync(%q, %q)\n", approvals, everything))
	daemon := fmt.Sprint(m.Pid())
	unreached := func(t *testing.T, out string) {
		t.Helper()
		if strings.Contains(out, secret) || strings.Contains(out, "TOOLWARD_HOME=") {
			t.Errorf("it reads %q", out)
		}
		if _, err := os.Stat(approvals); err == nil {
			t.Error("it changes what runs without a question")
		}
		for _, name := range []string{".git/hooks/pre-commit", "../.bashrc.d", ".git/commondir"} {
			if _, err := os.Lstat(filepath.Join(m.Workspace, name)); err == nil {
				t.Errorf("git of the machine would run what %s says", name)
			}
		}
	}
	for finding, commands := range map[string][]string{
		"C1": {
			"echo '" + everything + "' >! " + approvals, "echo '" + everything + "' > " + approvals,
			"LANG='path[$(cat ~/.ssh/id_rsa)]' printf %d LANG", "cat ~/.ssh/id_rsa",
		},
		"C2": {
			"ln -s " + m.State + " c && cp -p x.json c/exec-approvals.json", "ln -s ~/.ssh d && cat d/id_rsa", "ln -s ~/.ssh e && cp -r e k && cat k/*",
		},
		"C3": {"node y.js", "python3 -c \"open('" + approvals + "','w').write('x')\""},
		"H1": {
			"grep -rsa --include=environ TOOLWARD_HOME= /proc", "find /proc/" + daemon + " -name environ -exec cat {} +", "cat /proc/*/environ",
			"grep -r y-of ~/.config", "cp -r ~/.config/gh ./gh; cat gh/hosts.yml", "tar cf x.tar ~/.docker; tar xOf x.tar", "git diff --no-index /dev/null ~/.docker/config.json",
			"find /proc/" + daemon + "/fd -lname '*state.db*' -exec cat {} +", "git -C ~ grep --no-index -e y-of",
		},
		"H2": {
			"git init -q h && mkdir -p h/.git/hooks .git/hooks; echo 'echo x' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
			"printf 'diff --git a/.git/hooks/pre-commit b/.git/hooks/pre-commit\\nnew file mode 100755\\n--- /dev/null\\n+++ b/.git/hooks/pre-commit\\n@@ -0,0 +1 @@\\n+echo x\\n' > y.patch && patch -p1 -i y.patch",
		},
		"H3": {"ps auxe", "ps auxwwe", "ps ue"},
		"H6": {"mkdir -p evil && printf '[core]\\n\\tfsmonitor = touch /tmp/x\\n' > evil/config && echo ../evil > .git/commondir"},
		"M3": {"cat /proc/" + daemon + "/environ", "cat /proc/" + daemon + "/fd/*", "strings /proc/" + daemon + "/mem | head"},
	} {
		t.Run(finding, func(t *testing.T) {
			for _, command := range commands {
				told, err := m.decide(t.Context(), fmt.Sprint("call", m.n.Add(1)), command)
				if err != nil {
					t.Logf("does not run: %s: %.200v", command, err)
					continue
				}
				got := m.shell(told)
				unreached(t, got.out)
			}
		})
	}
	// The targets are there, for whoever is not confined.
	for _, command := range []string{"cat ~/.ssh/id_rsa", "grep -r y-of ~/.config", "cat /proc/" + daemon + "/environ", "cp x.json " + approvals + " && cat " + approvals} {
		if got := m.shell(command); got.code != 0 || got.out == "" {
			t.Errorf("%s proves nothing: %+v", command, got)
		}
	}
}
