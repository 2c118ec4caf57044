package live_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// equip makes a home with toolchains, credentials in them, keys, and links that an agent of the machine has planted.
func equip(t *testing.T, m *live.Machine) {
	t.Helper()
	for name, text := range map[string]string{
		".pyenv/shims/greet":           "#!/bin/sh\necho greeted by $0\n",
		".pyenv/versions/3/pip.conf":   "index-url = https://me:hunter2@pypi.example/\n",
		".pyenv/.npmrc":                "_authToken=hunter2\n",
		".cargo/bin/cargo":             "#!/bin/sh\necho cargo\n",
		".cargo/credentials.toml":      "token = hunter2\n",
		".ssh/id_ed25519":              "hunter2\n",
		".m2/settings.xml":             "<password>hunter2</password>\n",
		"other/project/notes":          "hunter2\n",
		".local/share/uv/credentials":  "hunter2\n",
		".config/gh/hosts.yml":         "oauth_token: hunter2\n",
		"project/here":                 "of the project\n",
		".local/share/uv/python/py/ok": "x\n",
	} {
		file := filepath.Join(m.Home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{".nvm": ".ssh", ".rustup": ".", ".volta": ".toolward"} {
		if err := os.Symlink(target, filepath.Join(m.Home, link)); err != nil {
			t.Fatal(err)
		}
	}
	m.Extra = append(m.Extra, "PATH="+m.Home+"/.pyenv/shims:"+filepath.Dir(m.Program("toolward"))+":"+os.Getenv("PATH")+":"+m.Home+"/.cargo/bin")
	// What the machine knows is found at the first start.
	m.Undecided()
}

// inside runs commands and says which answers are wrong.
func (g *guardedMachine) inside(t *testing.T) {
	t.Helper()
	session := g.connect(t)
	for _, c := range []struct{ command, want string }{
		{"cd " + g.Workspace + " && cat here; cd $HOME && pwd", "of the project\n" + g.Home + "\n"},
		{"greet; command -v cargo", "greeted by " + g.Home + "/.pyenv/shims/greet\n" + g.Home + "/.cargo/bin/cargo\n"},
		{"cat ~/.pyenv/versions/3/pip.conf ~/.pyenv/.npmrc | tr -d '\\n'; echo hidden", "hidden\n"},
		{"echo x > ~/.pyenv/shims/greet || echo kept", "kept\n"},
		{"rm -rf ~/.pyenv 2>/dev/null; greet", "greeted"},
		{"ls -d ~/.ssh ~/.nvm ~/.rustup ~/.volta ~/.m2 ~/.config/gh ~/.cargo/credentials.toml ~/other ~/.toolward ~/.local/share/uv/credentials 2>/dev/null; echo none", "\x00none\n"},
		{"grep -rs hunter2 / --include=* -l --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr 2>/dev/null; echo searched", "\x00searched\n"},
		{"touch ~/made && ls ~/made", g.Home + "/made\n"},
	} {
		got := g.call(t, session, "exec", map[string]any{"command": c.command})
		if whole, begins := strings.CutPrefix(c.want, "\x00"); !strings.Contains(got, whole) || begins && !strings.HasPrefix(got, whole) {
			t.Errorf("%s:\n%q, want %q", c.command, got, whole)
		}
	}
	if _, err := os.Stat(filepath.Join(g.Home, "made")); err == nil {
		t.Error("something was written to the real home")
	}
	if _, err := os.Stat(filepath.Join(g.Home, ".pyenv/shims/greet")); err != nil {
		t.Errorf("a toolchain was changed: %v", err)
	}
	out, _ := g.Run("sandbox", "probe")
	for _, want := range []string{"ok  pyenv: " + g.Home + "/.pyenv\n", "ok  cargo: " + g.Home + "/.cargo/bin\n", "no  nvm: " + g.Home + "/.nvm: it is a symbolic link, or lies below one, and leads to " + g.Home + "/.ssh\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("probe does not say %q:\n%s", want, out)
		}
	}
	if !strings.Contains(g.Log(), "sandboxes do not show a toolchain") {
		t.Errorf("the log does not tell of links:\n%s", g.Log())
	}
}

// TestToolchainsNative: the person's programs are inside at their own paths and nothing else of the home is; what an agent has
// planted in it is refused, and said.
func TestToolchainsNative(t *testing.T) {
	g := newGuardedMachineOn(t, `{"agents": {"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw", "engine": "native", "degradeOk": ["cgroup"]}}}}`,
		func(m *live.Machine) { equip(t, m) })
	g.inside(t)
}

// TestToolchainsDocker is the same in a container.
func TestToolchainsDocker(t *testing.T) {
	host := live.Docker(t)
	b := &boxed{t: t, engine: "docker"}
	m := live.NewMachine(t, "")
	b.Machine = m
	m.Extra = append(m.Extra, "DOCKER_HOST="+host)
	t.Cleanup(b.forget)
	if out, status := m.Run("sandbox", "image", "build", "--busybox", "--name", b.image()); status != 0 {
		t.Fatalf("image build: %d\n%s", status, out)
	}
	equip(t, m)
	g := guard(t, m, fmt.Sprintf(`{"agents": {"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw", "engine": "docker", "docker": {"image": %q}}}}}`, b.image()))
	g.inside(t)
}
