package command

import (
	"fmt"
	"testing"

	"github.com/toolward/toolward"
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
		if a := plain.evaluate(t, onMiss(Developer), command); verdict(a) != toolward.Allow {
			t.Errorf("%s: %s %v", command, verdict(a), a.Segments[0].Asks)
		}
		for name, w := range map[string]*world{"secret": secret, "behind": behind} {
			want := toolward.Allow
			if reads {
				want = toolward.Ask
			}
			if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
				t.Errorf("%s, %s: %s %v, want %s", command, name, verdict(a), a.Segments[0].Asks, want)
			}
		}
	}
	if a := outside.evaluate(t, onMiss(Developer), "grep -R TODO src"); verdict(a) != toolward.Allow {
		t.Errorf("a link to what may be read: %s %v", verdict(a), a.Segments[0].Asks)
	}
	if a := outside.evaluate(t, onMiss(Developer), "chown -R -L dev src"); verdict(a) != toolward.Ask {
		t.Errorf("a link to what must not be written: %s", verdict(a))
	}
}

// A link that the command itself makes is not there when it is judged.
func TestLinksThatTheCommandMakes(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/ln": "x", "/usr/bin/tar": "x", "/usr/bin/mkdir": "x", "/ws/src/a.go": "f", "/ws/docs/x.md": "f", "/ws/a.tar": "f"})
	for command, want := range map[string]toolward.Verdict{
		"ln -s ../docs src/link && grep -R TODO src":         toolward.Ask,
		"tar xf a.tar && grep -R TODO src":                   toolward.Ask,
		"grep -R TODO src | ln -s ../docs src/link":          toolward.Ask,
		"bash -c 'ln -s ../docs src/link'; grep -R TODO src": toolward.Ask,
		"git checkout main && grep -R TODO src":              toolward.Ask,
		"mkdir -p out && grep -R TODO src > out/todo.txt":    toolward.Allow,
		"grep -R TODO src | tee todo.txt":                    toolward.Allow,
		"go test ./... && grep -R TODO src":                  toolward.Allow,
		"ln -s ../docs src/link && grep -r TODO src":         toolward.Allow,
		"ln -s /proc x && cat x/self/environ":                toolward.Ask,
		"ln -s ../proc x && cat x/self/environ":              toolward.Ask,
		"cd src && ln -s ../docs/x.md y.md && cat y.md":      toolward.Allow,
	} {
		if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
			t.Errorf("%s: %s %v, want %s", command, verdict(a), codes(a), want)
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
	for command, want := range map[string]toolward.Verdict{"grep -R x few": toolward.Allow, "grep -R x many": toolward.Ask, "grep -r x many": toolward.Allow} {
		if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
			t.Errorf("%s: %s", command, verdict(a))
		}
	}
}
