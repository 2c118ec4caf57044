package settings

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox"
)

// What is read is what git itself would say, of files as people write them.
func TestGitIdentityIsGits(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("not run: there is no git")
	}
	for _, text := range []string{
		"[user]\n\tname = Ann Lee\n\temail = ann@example.org\n",
		"[User]\nNAME=\"Ann # Lee\" ; not this\nemail = a@b # nor this\n",
		"[user] name = On One Line\n[core]\nname = no\n",
		"[user \"other\"]\nname = no\n[user]\nname = a\nname = \"b \\\"c\\\" \\\\d\"\n",
		"# [user]\n[user]\n; name = x\n\n  email   =   spaced@example.org   \n",
		"[include]\n\tpath = other\n[alias]\nname = no\n",
	} {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		says := func(key string) string {
			cmd := exec.Command(git, "config", "--file", filepath.Join(home, ".gitconfig"), key)
			cmd.Env = []string{"HOME=" + home}
			out, _ := cmd.Output() // not there
			return strings.TrimSuffix(string(out), "\n")
		}
		t.Setenv("XDG_CONFIG_HOME", home)
		got := gitIdentity(home)
		if want := (GitIdentity{says("user.name"), says("user.email")}); got != want {
			t.Errorf("%q: %+v, git says %+v", text, got, want)
		}
		// And what is written for the inside says the same, and nothing else.
		file := filepath.Join(home, ".gitconfig")
		if err := os.WriteFile(file, []byte(got.config("/srv/a \"b\"")), 0o600); err != nil {
			t.Fatal(err)
		}
		if again := (GitIdentity{says("user.name"), says("user.email")}); again != got || says("--list") != "" && strings.Count(got.config("/x"), "=") > 4 {
			t.Errorf("written as %q, read as %+v", got.config("/x"), again)
		}
	}
	evil := GitIdentity{Name: "x\"\n[core]\n\thooksPath = /evil", Email: "y\\"}
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(evil.config("/w")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(git, "config", "--file", file, "--name-only", "--list").CombinedOutput()
	if err != nil || string(out) != "safe.directory\nsafe.directory\nuser.name\nuser.email\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestGitInsideKnowsThePerson(t *testing.T) {
	w := newWorld(t)
	around := w.around()
	around.Person.Git = GitIdentity{"Ann", "ann@example.org"}
	settings, problems := Compile(Configuration{}, around)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, site := range map[string]Site{"native": {Engine: sandbox.EngineNative}, "docker": {Engine: sandbox.EngineDocker}, "in place": {Engine: sandbox.EngineNative, InPlace: true}} {
		plan, err := settings.For("coder").Spec(t.Context(), site, Request{Agent: "coder", Session: "agent:coder:x", Workspace: w.Workspace}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(plan.Close)
		target := gitConfigTarget
		if site.InPlace { // the machine's own is another
			target = value(plan.Spec.Env, "GIT_CONFIG_SYSTEM")
		}
		i := slices.IndexFunc(plan.Spec.Mounts, func(m sandbox.Mount) bool { return m.Target == target })
		if i < 0 || plan.Spec.Mounts[i].Writable {
			t.Fatalf("%s: %q in %+v", name, target, plan.Spec.Mounts)
		}
		if text, err := os.ReadFile(plan.Spec.Mounts[i].Source); err != nil || string(text) != around.Person.Git.config(w.Workspace) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
