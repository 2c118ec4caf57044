package command

import "testing"

// npx runs a tool that lies in the project, in this directory or above it; another is fetched from strangers.
func TestInstalledTools(t *testing.T) {
	w := newWorld(t, map[string]string{
		"/usr/bin/npx": "x", "/usr/bin/pip": "x", "/usr/bin/cargo": "x", "/usr/bin/tar": "x", "/ws/packages/a/x.ts": "f", "/ws/a.tar": "f",
		"/ws/node_modules/typescript/bin/tsc": "x", "/ws/node_modules/.bin/tsc": "l:../typescript/bin/tsc",
		"/ws/node_modules/.bin/evil": "l:/tmp/x", "/ws/packages/a/node_modules/.bin/lint": "x", "/ws/node_modules/.bin/dir": "d",
	})
	for command, want := range map[string]Outcome{
		"npx tsc --noEmit": Run, "npx tsc@5 --noEmit": Person, "npx cowsay": Person, "npx evil": Person, "npx dir": Person,
		"cd packages/a && npx tsc": Run, "cd packages/a && npx lint .": Run, "npx lint .": Person, "cd /tmp && npx tsc": Person,
		"tar xf a.tar && npx tsc": Person,
		"npm install":             Run, "npm ci": Run, "npm install left-pad": Person, "pip install -r requirements.txt": Run,
		"pip install requests": Person, "python3 -m pip install -r requirements.txt": Run, "python3 -m pip install requests": Person,
		"go get example.com/x": Run, "go get -u ./...": Run, "go mod download": Run, "cargo add serde": Run, "cargo fetch": Run,
	} {
		if a := w.evaluate(t, onMiss(Developer), command); a.Outcome != want {
			t.Errorf("%s: %s %v, want %s", command, a.Outcome, codes(a), want)
		}
	}
	// An entry for npm says which program, not whose packages; a person who listed the very command meant it.
	if a := w.evaluate(t, onMiss(Strict, "/usr/bin/npm"), "npm install left-pad"); a.Outcome != Person {
		t.Errorf("under an entry: %s", a.Outcome)
	}
	exact := onMiss(Strict)
	exact.Entries = []Listed{{Entry: Entry{Pattern: "/usr/bin/npm", Argv: []string{"/usr/bin/npm", "install", "left-pad"}}}}
	if a := w.evaluate(t, exact, "npm install left-pad"); a.Outcome != Run {
		t.Errorf("under an exact entry: %s %v", a.Outcome, codes(a))
	}
}
