package command

import (
	"fmt"
	"testing"
)

// Programs that follow links below a directory run where no link leads to what they must not read.
func TestLinksBelow(t *testing.T) {
	tools := map[string]string{}
	for _, name := range []string{"tar", "rsync", "diff", "zip", "ln", "du", "unzip", "chown"} {
		tools["/usr/bin/"+name] = "x"
	}
	with := func(files map[string]string) *world {
		all := map[string]string{"/ws/src/a.go": "f", "/ws/src/deep/b.go": "f", "/ws/docs/x.md": "f"}
		for p, what := range tools {
			all[p] = what
		}
		for p, what := range files {
			all[p] = what
		}
		return newWorld(t, all)
	}
	plain := with(map[string]string{"/ws/src/link": "l:../docs", "/ws/src/loop": "l:.", "/ws/src/gone": "l:nothing"})
	secret := with(map[string]string{"/ws/src/deep/link": "l:/home/dev/.ssh"})
	behind := with(map[string]string{"/ws/src/link": "l:../docs", "/ws/docs/link": "l:/home/dev/.ssh/id_ed25519"})
	outside := with(map[string]string{"/ws/src/link": "l:/etc/app", "/etc/app/x": "f"})
	for command, reads := range map[string]bool{
		"grep -R TODO src": true, "grep -R TODO .": true, "grep -R TODO src | head -n 5": true, "tar chf out.tar src": true,
		"cp -rL src copy": true, "diff -r src docs": true, "zip -r out.zip src": true, "rsync -aL src/ copy": true,
		"find -L src -name '*.go'": true, "rg -L TODO src": true, "grep -r TODO src": false, "zip -ry out.zip src": false,
		"tar cf out.tar src": false, "cp -r src copy": false,
	} {
		if a := plain.evaluate(t, onMiss(Developer), command); a.Outcome != Run {
			t.Errorf("%s: %s %v", command, a.Outcome, a.Segments[0].Asks)
		}
		for name, w := range map[string]*world{"secret": secret, "behind": behind} {
			want := Run
			if reads {
				want = Person
			}
			if a := w.evaluate(t, onMiss(Developer), command); a.Outcome != want {
				t.Errorf("%s, %s: %s %v, want %s", command, name, a.Outcome, a.Segments[0].Asks, want)
			}
		}
	}
	if a := outside.evaluate(t, onMiss(Developer), "grep -R TODO src"); a.Outcome != Run {
		t.Errorf("a link to what may be read: %s %v", a.Outcome, a.Segments[0].Asks)
	}
	if a := outside.evaluate(t, onMiss(Developer), "chown -R -L dev src"); a.Outcome != Person {
		t.Errorf("a link to what must not be written: %s", a.Outcome)
	}
}

// A link that the command itself makes is not there when it is judged.
func TestLinksThatTheCommandMakes(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/ln": "x", "/usr/bin/tar": "x", "/usr/bin/mkdir": "x", "/ws/src/a.go": "f", "/ws/docs/x.md": "f", "/ws/a.tar": "f"})
	for command, want := range map[string]Outcome{
		"ln -s ../docs src/link && grep -R TODO src":         Person,
		"tar xf a.tar && grep -R TODO src":                   Person,
		"grep -R TODO src | ln -s ../docs src/link":          Person,
		"bash -c 'ln -s ../docs src/link'; grep -R TODO src": Person,
		"git checkout main && grep -R TODO src":              Person,
		"mkdir -p out && grep -R TODO src > out/todo.txt":    Run,
		"grep -R TODO src | tee todo.txt":                    Run,
		"go test ./... && grep -R TODO src":                  Run,
		"ln -s ../docs src/link && grep -r TODO src":         Run,
		"ln -s /proc x && cat x/self/environ":                Person,
		"ln -s ../proc x && cat x/self/environ":              Person,
		"cd src && ln -s ../docs/x.md y.md && cat y.md":      Run,
	} {
		if a := w.evaluate(t, onMiss(Developer), command); a.Outcome != want {
			t.Errorf("%s: %s %v, want %s", command, a.Outcome, codes(a), want)
		}
	}
}

func TestTooManyNamesBelow(t *testing.T) {
	files := map[string]string{}
	for i := range maxWalked {
		files[fmt.Sprintf("/ws/many/%05d", i)] = "f"
	}
	files["/ws/few/a"] = "f"
	w := newWorld(t, files)
	for command, want := range map[string]Outcome{"grep -R x few": Run, "grep -R x many": Person, "grep -r x many": Run} {
		if a := w.evaluate(t, onMiss(Developer), command); a.Outcome != want {
			t.Errorf("%s: %s", command, a.Outcome)
		}
	}
}
