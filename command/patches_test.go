package command

import (
	"testing"

	"github.com/toolward/toolward"
)

// The names in a patch are judged as if they were operands.
func TestPatchesAreLookedInto(t *testing.T) {
	diff := func(name string) string {
		return "t:diff --git a/" + name + " b/" + name + "\n--- a/" + name + "\n+++ b/" + name + "\n@@ -1 +1 @@\n-a\n+b\n"
	}
	w := newWorld(t, map[string]string{
		"/usr/bin/patch": "x", "/ws/.git/HEAD": "f", "/ws/good.patch": diff("src/a.go"), "/ws/hook.patch": diff(".git/hooks/pre-commit"), "/ws/client.patch": diff(".claude/settings.json"),
		"/ws/env.patch": diff("x/y/.env"), "/ws/plain.patch": "t:--- a.go\t2026\n+++ .envrc\t2026\n", "/ws/link.patch": "t:diff --git a/c b/c\nnew file mode 120000\n--- /dev/null\n+++ b/c\n",
		"/ws/quoted.patch": "t:--- a/x\n+++ \"b/.git/config\"\n", "/ws/rename.patch": "t:diff --git a/x b/.mcp.json\nsimilarity index 100%\nrename from x\nrename to .mcp.json\n",
		"/ws/up.patch": "t:--- a/../../x\n+++ b/../../x\n", "/ws/binary.patch": "f",
	})
	for command, want := range map[string]toolward.Verdict{
		"git apply good.patch": toolward.Allow, "patch -p1 < good.patch": toolward.Allow, "patch -p1 -i good.patch": toolward.Allow, "git apply --check hook.patch": toolward.Allow,
		"git apply missing.patch": toolward.Allow,
		"git apply hook.patch":    toolward.Ask, "git apply client.patch": toolward.Ask, "patch -p1 < hook.patch": toolward.Ask, "patch -p0 -i plain.patch": toolward.Ask,
		"git apply link.patch": toolward.Ask, "git apply quoted.patch": toolward.Ask, "git apply rename.patch": toolward.Ask, "git apply up.patch": toolward.Ask,
		"git apply good.patch env.patch": toolward.Ask, "git apply binary.patch": toolward.Ask, "git am client.patch": toolward.Ask,
		"git diff | git apply -R": toolward.Ask, "cp hook.patch good.patch && git apply good.patch": toolward.Ask, "git apply -p3 env.patch": toolward.Ask,
	} {
		if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
			t.Errorf("%s: %s %v, want %s", command, verdict(a), a.Segments[len(a.Segments)-1].Asks, want)
		}
	}
}
