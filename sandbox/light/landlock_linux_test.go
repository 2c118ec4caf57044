package light_test

import (
	"os"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/light"
)

// Where there are no user namespaces, Landlock keeps the same files out of reach.
func TestLandlock(t *testing.T) {
	m := newMachine(t)
	if light.LandlockVersion() < 3 {
		t.Skip("this kernel's Landlock knows too little")
	}
	m.light.Only(light.Landlock)
	for _, c := range []string{
		"cat ~/.toolward/state.db", "echo x > ~/.toolward/exec-approvals.json", "ln -s ~/.toolward c && cat c/state.db", "cat ~/.ssh/id_rsa", "cat ~/.netrc",
		"echo x >> ~/.ssh/authorized_keys", "cp main.txt x && mv x ~/.ssh/x", "echo x >> ~/.bashrc", "echo x > ~/.claude/settings.json", "echo x > ~/.claude/new",
		"truncate -s 0 ~/.toolward/state.db", "ln main.txt ~/.ssh/l",
	} {
		if out, result := m.run(t, "sh", "-c", c); result.Code == 0 {
			t.Errorf("%s: went through: %s", c, out)
		}
	}
	for c, want := range map[string]string{
		"cat main.txt ~/notes.txt":                     "codenotes",
		"echo hi > new && mkdir d && mv new d && ls d": "new\n",
		"cat ~/.claude/settings.json":                  "{}",
		"(setsid sleep 1000 &); echo left":             "left\n",
		"cat ~/.toolward/media/inbound/a.txt":          "picture",
	} {
		if out, result := m.run(t, "sh", "-c", c); out != want || result.Code != 0 {
			t.Errorf("%s: %q %+v", c, out, result)
		}
	}
	if got := m.content(t, ".toolward/exec-approvals.json") + m.content(t, ".bashrc"); got != "{}rc" {
		t.Errorf("written: %q", got)
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		if line, err := os.ReadFile("/proc/" + p.Name() + "/cmdline"); err == nil && string(line) == "sleep\x001000\x00" && strings.Contains(environOf(p.Name()), m.home) {
			t.Errorf("process %s is left", p.Name())
		}
	}
}

func environOf(pid string) string {
	text, _ := os.ReadFile("/proc/" + pid + "/environ") // not ours, or gone
	return string(text)
}
