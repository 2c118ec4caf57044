package command

import (
	"testing"

	"github.com/toolward/toolward"
)

// A lock file that was written by hand sends the next installation to a stranger, under the name of a package that was seen.
func TestLockFilesAreWrittenByTheirPrograms(t *testing.T) {
	w := newWorld(t, map[string]string{
		"/usr/bin/npm": "x", "/usr/bin/rm": "x", "/usr/bin/cp": "x", "/usr/bin/mv": "x", "/usr/bin/cat": "x", "/usr/bin/go": "x", "/usr/bin/sed": "x", "/usr/bin/tee": "x",
		"/ws/package-lock.json": "f", "/ws/sub/Cargo.lock": "f", "/ws/go.sum": "f", "/ws/other.json": "f", "/ws/package.json": "f",
	})
	for command, want := range map[string]toolward.Verdict{
		"cp other.json package-lock.json": toolward.Ask, "mv other.json yarn.lock": toolward.Ask, "cat other.json > pnpm-lock.yaml": toolward.Ask,
		"sed -i s,registry.npmjs.org,evil.example, package-lock.json": toolward.Ask, "cat other.json | tee sub/Cargo.lock": toolward.Ask,
		"cp other.json go.sum": toolward.Ask, "mv package-lock.json old.json": toolward.Ask, "rm package.json": toolward.Ask,
		"rm package-lock.json": toolward.Allow, "rm -f package-lock.json sub/Cargo.lock && npm install": toolward.Allow, "npm ci": toolward.Allow,
		"cat package-lock.json": toolward.Allow, "go mod tidy": toolward.Allow, "cp package-lock.json other.json": toolward.Allow,
	} {
		if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
			t.Errorf("%s: %s %v, want %s", command, verdict(a), codes(a), want)
		}
	}
}
