package command

import (
	"fmt"
	"testing"

	"github.com/toolward/toolward"
)

// What goes with a directory is judged by what lies below, whichever way the directory is named.
func TestDirectoriesGoWithWhatIsInThem(t *testing.T) {
	files := map[string]string{
		"/ws/.git/HEAD": "f", "/ws/.env": "f", "/ws/src/a.go": "f", "/ws/sub/repo/.git/HEAD": "f", "/ws/conf/.env": "f",
		"/ws/dist/.vscode/x": "f", "/ws/app/node_modules/p/.vscode/x": "f", "/ws/app/a.js": "f", "/ws/old/a": "f",
	}
	for i := range maxWalked + 1 {
		files[fmt.Sprintf("/ws/many/%d", i)] = "f"
	}
	w := newWorld(t, files)
	for command, want := range map[string]toolward.Verdict{
		"rm -rf /ws": toolward.Ask, "rm -rf /ws/": toolward.Ask, "rm -rf /": toolward.Ask, "rm -rf .": toolward.Ask, "rm -rf ../ws": toolward.Ask,
		"cd src && rm -rf ..": toolward.Ask, "rm -rf /ws/.git": toolward.Ask, "rm -rf .git": toolward.Ask, "rm -rf $PWD": toolward.Ask,
		"mv /ws/sub x": toolward.Ask, "rm -rf sub": toolward.Ask, "rm -rf /ws/sub": toolward.Ask, "rm -rf sub/repo": toolward.Ask,
		"rm -rf conf": toolward.Ask, "rm -rf /ws/conf": toolward.Ask, "rm -rf many": toolward.Ask, "find . -name x | xargs rm -rf": toolward.Ask,
		"rm -rf src": toolward.Allow, "rm -rf /ws/src": toolward.Allow, "rm -rf dist": toolward.Allow, "rm -rf app": toolward.Allow,
		"rm -rf missing": toolward.Allow, "rm -f src/a.go": toolward.Allow, "mv old new": toolward.Allow, "mv src/a.go old/": toolward.Allow,
	} {
		if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
			t.Errorf("%s: %s %v, want %s", command, verdict(a), codes(a), want)
		}
	}
}
