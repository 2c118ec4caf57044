package command

import (
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
)

// npx runs a tool that lies in the project, in this directory or above it; another is fetched from strangers.
func TestInstalledTools(t *testing.T) {
	w := newWorld(t, map[string]string{
		"/usr/bin/npx": "x", "/usr/bin/pip": "x", "/usr/bin/cargo": "x", "/usr/bin/tar": "x", "/ws/packages/a/x.ts": "f", "/ws/a.tar": "f",
		"/ws/node_modules/typescript/bin/tsc": "x", "/ws/node_modules/.bin/tsc": "l:../typescript/bin/tsc",
		"/ws/node_modules/.bin/evil": "l:/tmp/x", "/ws/packages/a/node_modules/.bin/lint": "x", "/ws/node_modules/.bin/dir": "d",
	})
	for command, want := range map[string]toolward.Verdict{
		"npx tsc --noEmit": toolward.Allow, "npx tsc@5 --noEmit": toolward.Ask, "npx cowsay": toolward.Ask, "npx evil": toolward.Ask, "npx dir": toolward.Ask,
		"cd packages/a && npx tsc": toolward.Allow, "cd packages/a && npx lint .": toolward.Allow, "npx lint .": toolward.Ask, "cd /tmp && npx tsc": toolward.Ask,
		"tar xf a.tar && npx tsc": toolward.Ask,
		"npm install":             toolward.Allow, "npm ci": toolward.Allow, "npm install left-pad": toolward.Ask, "pip install -r requirements.txt": toolward.Allow,
		"pip install requests": toolward.Ask, "python3 -m pip install -r requirements.txt": toolward.Allow, "python3 -m pip install requests": toolward.Ask,
		"go get example.com/x": toolward.Ask, "go get -u ./...": toolward.Allow, "go mod download": toolward.Allow, "cargo add serde": toolward.Allow, "cargo fetch": toolward.Allow,
	} {
		if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
			t.Errorf("%s: %s %v, want %s", command, verdict(a), codes(a), want)
		}
	}
	// An entry for npm says which program, not whose packages; a person who listed the very command meant it.
	if a := w.evaluate(t, onMiss(Strict, "/usr/bin/npm"), "npm install left-pad"); verdict(a) != toolward.Ask {
		t.Errorf("under an entry: %s", verdict(a))
	}
	exact := onMiss(Strict)
	exact.Entries = []allowlist.Listed{{Entry: allowlist.Entry{Pattern: "/usr/bin/npm", Argv: []string{"/usr/bin/npm", "install", "left-pad"}}}}
	if a := w.evaluate(t, exact, "npm install left-pad"); verdict(a) != toolward.Allow {
		t.Errorf("under an exact entry: %s %v", verdict(a), codes(a))
	}
}
