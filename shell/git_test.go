package shell

import (
	"os/exec"
	"strings"
	"testing"
)

// TestGitOptionsTakeValuesAsGitReadsThem asks the git of this machine which long options take a value. An option that
// the profile and git read differently would hide the word that follows it.
func TestGitOptionsTakeValuesAsGitReadsThem(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	if out, err := exec.Command(git, "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v %s", err, out)
	}
	for name, section := range ProfileOf("git").Sections {
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
