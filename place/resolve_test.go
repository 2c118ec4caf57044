package place

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// world is a temporary tree: ws (the workspace), outside, home.
type world struct {
	root, ws, home string
	*Classifier
}

func newWorld(t testing.TB) world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{root: root, ws: root + "/ws", home: root + "/home"}
	for _, dir := range []string{"ws/a/b", "outside", "home/.ssh", "home/.toolward"} {
		must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	w.write(t, "ws/f", "F")
	w.write(t, "ws/a/b/g", "G")
	w.write(t, "outside/secret", "SECRET")
	w.Classifier = classifier(t, Layout{
		Workspace: w.ws, Home: w.home, StateDir: w.home + "/.toolward", ConfigFile: w.home + "/.toolward/toolward.jsonc",
	})
	return w
}

func (w world) write(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(w.root, name), []byte(text), 0o644))
}

func (w world) link(t testing.TB, target, name string) {
	t.Helper()
	must(t, os.Symlink(strings.ReplaceAll(target, "ROOT", w.root), filepath.Join(w.root, name)))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestResolve(t *testing.T) {
	w := newWorld(t)
	w.link(t, "ROOT/outside", "ws/out")
	w.link(t, "../outside/new.txt", "ws/dangling")
	w.link(t, "f", "ws/inside")
	w.link(t, "ROOT/ws", "wslink")
	w.link(t, "loop2", "ws/loop1")
	w.link(t, "loop1", "ws/loop2")
	w.link(t, "a/b", "ws/ab")
	w.link(t, "/proc/self/root", "ws/procroot")
	must(t, syscall.Mkfifo(w.ws+"/fifo", 0o600))
	must(t, os.Link(w.root+"/outside/secret", w.ws+"/hard"))

	for _, tc := range []struct {
		name, path, real string // real relative to root, or absolute
		place            Zone
		kind             Kind
		via, out         bool
	}{
		{"file", "f", "ws/f", Workspace, KindRegular, false, false},
		{"absolute", w.ws + "/f", "ws/f", Workspace, KindRegular, false, false},
		{"new file", "new", "ws/new", Workspace, KindMissing, false, false},
		{"new file in new directories", "x/y/z", "ws/x/y/z", Workspace, KindMissing, false, false},
		{"directory", "a/b/", "ws/a/b", Workspace, KindDirectory, false, false},
		{"workspace", ".", "ws", Workspace, KindDirectory, false, false},
		{"dots and slashes", ".//a/./b//g", "ws/a/b/g", Workspace, KindRegular, false, false},
		{"parent", "../outside/secret", "outside/secret", Outside, KindRegular, false, false},
		{"inner parent", "a/../../outside/secret", "outside/secret", Outside, KindRegular, false, false},
		{"parent and back", "a/../f", "ws/f", Workspace, KindRegular, false, false},
		{"parent of missing", "no/../f", "ws/f", Workspace, KindRegular, false, false},
		{"parent of missing, outside", "no/../../outside/x", "outside/x", Outside, KindMissing, false, false},
		{"home", "~/.ssh/x", "home/.ssh/x", Secret, KindMissing, false, false},
		{"home itself", "~", "home", Outside, KindDirectory, false, false},
		{"tilde inside a name", "~x", "ws/~x", Workspace, KindMissing, false, false},
		{"link out", "out/secret", "outside/secret", Outside, KindRegular, true, true},
		{"link out, missing", "out/no/x", "outside/no/x", Outside, KindMissing, true, true},
		{"parent through link is the target's", "ab/../../f", "ws/f", Workspace, KindRegular, true, false},
		{"parent of link out", "out/../home/.ssh", "home/.ssh", Secret, KindDirectory, true, true},
		{"dangling link", "dangling", "outside/new.txt", Outside, KindMissing, true, true},
		{"link inside", "inside", "ws/f", Workspace, KindRegular, true, false},
		{"workspace through link", w.root + "/wslink/f", "ws/f", Workspace, KindRegular, true, false},
		{"FIFO", "fifo", "ws/fifo", Workspace, KindFIFO, false, false},
		{"device", "/dev/null", "/dev/null", Outside, KindDevice, false, false},
		{"variable stays literal", "$HOME/.ssh/id_rsa", "ws/$HOME/.ssh/id_rsa", Secret, KindMissing, false, false},
		{"percent stays literal", "%2e%2e/x", "ws/%2e%2e/x", Workspace, KindMissing, false, false},
		{"backslash stays literal", `..\..\x`, `ws/..\..\x`, Workspace, KindMissing, false, false},
		{"dash", "-rf", "ws/-rf", Workspace, KindMissing, false, false},
		{"npm scope", "@types/index.d.ts", "ws/@types/index.d.ts", Workspace, KindMissing, false, false},
		{"long traversal", strings.Repeat("a/", 600) + strings.Repeat("../", 602) + "etc", "etc", Outside, KindMissing, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			real := tc.real
			if real[0] != '/' {
				real = filepath.Join(w.root, real)
			}
			r, err := w.Resolve(w.ws, tc.path)
			if err != nil {
				t.Fatal(err)
			}
			if tc.name == "long traversal" {
				real = filepath.Dir(w.root) + "/etc" // two levels above the workspace
			}
			got := []any{r.Real, r.Zone, r.Kind, r.ViaLink, r.LedOut, r.Asked}
			want := []any{real, tc.place, tc.kind, tc.via, tc.out, tc.path}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("got %v\nwant %v", got, want)
					break
				}
			}
		})
	}
	if r, _ := w.Resolve(w.ws, "hard"); r.Links != 2 {
		t.Errorf("hard link: %d links", r.Links)
	}
}

func TestResolveEntryKeepsTheLastLink(t *testing.T) {
	w := newWorld(t)
	w.link(t, "ROOT/outside", "ws/out")
	r, err := w.ResolveEntry(w.ws, "out")
	must(t, err)
	if r.Real != w.ws+"/out" || r.Kind != KindSymlink || r.Zone != Workspace {
		t.Errorf("%+v", r)
	}
	r, err = w.ResolveEntry(w.ws, "out/secret")
	must(t, err)
	if r.Real != w.root+"/outside/secret" || !r.LedOut {
		t.Errorf("%+v", r)
	}
}

func TestResolveRefuses(t *testing.T) {
	w := newWorld(t)
	w.link(t, "loop2", "ws/loop1")
	w.link(t, "loop1", "ws/loop2")
	w.link(t, ".git /x", "ws/sly")
	for _, tc := range []struct {
		name, path string
		want       error
		says       string
	}{
		{"empty", "", ErrBadPath, "empty"},
		{"NUL", "a\x00/../../etc/passwd", ErrBadPath, `'\x00'`},
		{"newline", "\n/etc/passwd", ErrBadPath, `'\n'`},
		{"too long", strings.Repeat("a/", 3000), ErrBadPath, "6000 bytes"},
		{"long name", strings.Repeat("n", 256), ErrBadPath, "255"},
		{"below a file", "f/x", ErrBadPath, "regular file, not a directory"},
		{"parent of a file", "f/../f", ErrBadPath, "not a directory"},
		{"file with a slash", "f/", ErrBadPath, "not a directory"},
		{"loop", "loop1/x", ErrBadPath, "symbolic links"},
		{"trailing space", ".git /config", ErrDisguised, ".git"},
		{"trailing dot", ".git./config", ErrDisguised, ".git"},
		{"short name", "GIT~1/config", ErrDisguised, ".git"},
		{"stream", ".git::$INDEX_ALLOCATION/config", ErrDisguised, ".git"},
		{"long s", ".ſſh/config", ErrDisguised, ".ssh"},
		{"sharp s", ".ßh/config", ErrDisguised, ".ssh"},
		{"Kelvin sign", ".\u212aube/config", ErrDisguised, ".kube"},
		{"disguise in a link", "sly", ErrDisguised, ".git"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := w.Resolve(w.ws, tc.path)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %v saying %q", err, tc.want, tc.says)
			}
		})
	}
	if _, err := w.Resolve("ws", "f"); !errors.Is(err, ErrBadPath) {
		t.Errorf("relative working directory: %v", err)
	}
}

func TestMagicLinksAreNotFollowed(t *testing.T) {
	if _, err := os.Lstat("/proc/self/root"); err != nil {
		t.Skip("needs /proc")
	}
	w := newWorld(t)
	w.link(t, "/proc/self/root", "ws/door")
	for _, p := range []string{"/proc/self/root/etc/hostname", "door/etc/hostname", "/proc/self/cwd/x", "/proc/self/root/../root/x"} {
		r, err := w.Resolve(w.ws, p)
		must(t, err)
		if r.Zone != Secret || r.Kind != KindOther || !strings.HasPrefix(r.Real, "/proc/") {
			t.Errorf("%s: %+v", p, r)
		}
		if _, err := Open(r); err == nil {
			t.Errorf("%s: opened", p)
		}
	}
}

// The walk and the short way through the kernel must never differ.
func TestWalkAgreesWithFastPath(t *testing.T) {
	w := newWorld(t)
	glance := w.Glance()
	defer glance.Close()
	for _, p := range []string{"/f", "/a", "/a/b/g", "/a/../f", "/new", "/a/new", "/a/b/.", "/a/b/..", "/a/b/"} {
		p = w.ws + p
		fast, ok := fastResolve(p)
		if !ok {
			continue
		}
		slow, err := (&walk{c: w.Classifier, asked: p, follow: true}).run(p)
		must(t, err)
		if fast != slow {
			t.Errorf("%s:\nfast %+v\nslow %+v", p, fast, slow)
		}
		for range 2 {
			if kept, ok := glance.look(p); !ok || kept != slow {
				t.Errorf("%s:\nwith its directory open %+v\nslow %+v", p, kept, slow)
			}
		}
	}
}

func TestCanonicalLayout(t *testing.T) {
	w := newWorld(t)
	w.link(t, "ROOT/ws", "wslink")
	l := w.Layout()
	l.Workspace = w.root + "/wslink"
	l.ConfigFile = w.root + "/wslink/new/toolward.jsonc"
	got, err := l.Canonical()
	must(t, err)
	if got.Workspace != w.ws || got.ConfigFile != w.ws+"/new/toolward.jsonc" || got.Home != w.home {
		t.Errorf("%+v", got)
	}
	l.Home = "relative"
	if _, err := l.Canonical(); err == nil {
		t.Error("a relative home was accepted")
	}
}

func TestInRoots(t *testing.T) {
	l := layout()
	l.ReadRoots, l.WriteRoots = []string{"/srv/docs"}, []string{"/srv/out"}
	c := classifier(t, l)
	for _, tc := range []struct {
		path  string
		write bool
		want  bool
	}{
		{"/home/u/proj/a", true, true},
		{"/home/u/proj2/a", false, false},
		{"/srv/docs/a", false, true},
		{"/srv/docs/a", true, false},
		{"/srv/out/a", true, true},
		{"/srv/outer", false, false},
		{"srv/out", true, false},
	} {
		if got := c.InRoots(tc.path, tc.write); got != tc.want {
			t.Errorf("InRoots(%q, %v) = %v", tc.path, tc.write, got)
		}
	}
}

func TestFoldsCase(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/probe", 0o755))
	_, err := os.Stat(dir + "/PROBE")
	if got, want := FoldsCase(dir+"/probe"), err == nil; got != want {
		t.Errorf("FoldsCase = %v, want %v", got, want)
	}
	if !FoldsCase(dir + "/absent") {
		t.Error("a directory that cannot be looked at must count as folding")
	}
}

func BenchmarkResolveDeep(b *testing.B) {
	w := newWorld(b)
	must(b, os.MkdirAll(w.ws+"/internal/deep/er/still/handlers", 0o755))
	w.write(b, "ws/internal/deep/er/still/handlers/x.go", "")
	for name, p := range map[string]string{"existing": "internal/deep/er/still/handlers/x.go", "missing": "internal/deep/er/still/handlers/y.go"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Resolve(w.ws, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("walk", func(b *testing.B) {
		for b.Loop() {
			_, _ = (&walk{c: w.Classifier, follow: true}).run(w.ws + "/internal/deep/er/still/handlers/x.go")
		}
	})
}
