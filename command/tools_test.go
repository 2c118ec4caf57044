package command

import (
	"testing"

	"github.com/toolward/toolward"
)

// TestToolsThatAreGone: where the project's own program may be gone, npx would fetch a stranger's of that name.
func TestToolsThatAreGone(t *testing.T) {
	for command, want := range map[string]toolward.Verdict{
		"npx tsc":                      toolward.Allow,
		"npm ci && npx tsc":            toolward.Allow,
		"git checkout main && npx tsc": toolward.Allow,
		"rm -rf dist && npx tsc":       toolward.Allow,
		"rm -rf node_modules/.cache/x src/a.ts && npx tsc":   toolward.Ask, // below node_modules
		"mv src/a.ts src/b.ts && npx tsc":                    toolward.Allow,
		"cd web && npx tsc":                                  toolward.Allow,
		"rm -rf node_modules && npx tsc":                     toolward.Ask,
		"rm -rf ./src/../node_modules; npx tsc":              toolward.Ask,
		"cd src && rm -rf ../node_modules; cd .. && npx tsc": toolward.Ask,
		"rm node_modules/.bin/tsc; npx tsc":                  toolward.Ask,
		"rm -rf node_modules/typescript || true; npx tsc":    toolward.Ask,
		"unlink node_modules/.bin/tsc; npx tsc":              toolward.Ask,
		"mv node_modules old && npx tsc":                     toolward.Ask,
		"mv src/a.ts node_modules/.bin/tsc && npx tsc":       toolward.Ask,
		"git clean -fdx && npx tsc":                          toolward.Ask,
		"git stash -a; npx tsc":                              toolward.Ask,
		"npm uninstall typescript; npx tsc":                  toolward.Ask,
		"npm prune --omit=dev && npx tsc":                    toolward.Ask,
		"(rm -rf node_modules); npx tsc":                     toolward.Ask,
		"timeout 9 rm -rf node_modules; npx tsc":             toolward.Ask,
		"tar xf a.tar && npx tsc":                            toolward.Ask,
		"tar xf a.tar && mv src/a.ts src/b.ts && npx tsc":    toolward.Ask,
		"bash -c 'rm -rf node_modules'; npx tsc":             toolward.Ask,
	} {
		w := everydayWorld(t, []string{"tsc npx unlink tar npm timeout mv rm"})
		if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
			t.Errorf("%s: %s, want %s: %v %s", command, verdict(a), want, codes(a), a.Reason)
		}
	}
}
