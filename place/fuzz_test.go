//go:build unix

package place

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzResolve: whatever a path says, its real path is clean, holds no link, and a file that counts as part of the
// workspace never shows what lies outside.
func FuzzResolve(f *testing.F) {
	w := newWorld(f)
	w.link(f, "ROOT/outside", "ws/out")
	w.link(f, "../outside/secret", "ws/leak")
	w.link(f, "a/b", "ws/ab")
	w.link(f, "..", "ws/up")
	w.link(f, "self", "ws/self")
	w.link(f, "/", "ws/top")
	for _, seed := range []string{
		"f", "a/b/g", "out/secret", "leak", "up/outside/secret", "ab/../../f", "top/etc/passwd", "self", "~/.ssh/id", "../outside/secret",
		"a/./..//up/ws/f", "no/../../leak", "/proc/self/root/etc/passwd", "/dev/fd/0", ".git /config", "GIT~1", "leak/", "f/..", strings.Repeat("up/ws/", 50) + "f",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "/proc/self") {
			p = w.root + p // nothing here may wander about the machine
		}
		r, err := w.Resolve(w.ws, p)
		if err != nil {
			if r != (Resolved{}) {
				t.Fatalf("%q: an error with a result: %+v", p, r)
			}
			return
		}
		if !path.IsAbs(r.Real) || path.Clean(r.Real) != r.Real {
			t.Fatalf("%q: unclean %q", p, r.Real)
		}
		if r.Zone != w.Classify(r.Real) {
			t.Fatalf("%q: place %v", p, r.Zone)
		}
		if r.Kind == KindRegular || r.Kind == KindDirectory {
			if real, err := filepath.EvalSymlinks(r.Real); err != nil || real != r.Real {
				t.Fatalf("%q: %q is really %q, %v", p, r.Real, real, err)
			}
		}
		if again, err := w.Resolve("/", r.Real); err == nil && (again.Real != r.Real || again.Kind != r.Kind) {
			t.Fatalf("%q: resolving twice gave %q, then %q", p, r.Real, again.Real)
		}
		if content, err := ReadFile(r, 100); err == nil && r.Zone == Workspace && string(content.Data) == "SECRET" {
			t.Fatalf("%q: read from outside through %+v", p, r)
		}
		if slow, err := (&walk{c: w.Classifier, asked: p, follow: true}).run(r.Real); err == nil && slow.Real != r.Real {
			t.Fatalf("%q: the walk says %q, not %q", p, slow.Real, r.Real)
		}
	})
}

// FuzzClassify: no text is taken for the workspace that, cleaned, is not in it, and no spelling weakens a place.
func FuzzClassify(f *testing.F) {
	for _, seed := range []string{"/home/u/proj/.git/config", "/home/u/proj/../.ssh/x", "//home/u/proj", "/home/u/proj/.ENV", "/proc/1/task/2/environ", "/"} {
		f.Add(seed)
	}
	plain := classifier(f, layout())
	folding := layout()
	folding.FoldCase = true
	folded := classifier(f, folding)
	f.Fuzz(func(t *testing.T, p string) {
		got := plain.Classify(p)
		if !path.IsAbs(p) || strings.ContainsRune(p, 0) {
			if got != Self {
				t.Fatalf("%q: %v", p, got)
			}
			return
		}
		clean := path.Clean(p)
		if again := plain.Classify(clean); again != got {
			t.Fatalf("%q is %v but cleaned %v", p, got, again)
		}
		if inside := clean == "/home/u/proj" || strings.HasPrefix(clean, "/home/u/proj/"); got == Workspace && !inside {
			t.Fatalf("%q counts as workspace", p)
		}
		if f := folded.Classify(p); f > got {
			t.Fatalf("%q: folding weakens %v to %v", p, got, f)
		}
	})
}
