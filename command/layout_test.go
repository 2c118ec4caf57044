package command

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/place"
)

// layout is a file system of the vectors: "x" a program, "f" a file, "d" a directory, "l:…" a link.
type layout map[string]string

// newLayout adds the directories above every path.
func newLayout(files map[string]string) layout {
	l := layout{"/": "d"}
	for p, what := range files {
		l[p] = what
		for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
			if _, ok := l[dir]; !ok {
				l[dir] = "d"
			}
		}
	}
	return l
}

func (l layout) Look(p string) (Node, error) {
	what, ok := l[p]
	target, link := strings.CutPrefix(what, "l:")
	switch {
	case !ok:
		return Node{}, fs.ErrNotExist
	case link:
		return Node{Mode: fs.ModeSymlink | 0o777, Link: target}, nil
	case what == "x":
		return Node{Mode: 0o755}, nil
	case what == "d":
		return Node{Mode: fs.ModeDir | 0o755}, nil
	case what == "w": // a directory for everybody
		return Node{Mode: fs.ModeDir | 0o777}, nil
	}
	return Node{Mode: 0o644}, nil
}

// GitPointer reads what stands behind "p:".
func (l layout) GitPointer(p string) (string, error) {
	if text, ok := strings.CutPrefix(l[p], "p:"); ok {
		return "gitdir: " + text + "\n", nil
	}
	return "", fs.ErrNotExist
}

// ReadFile reads what stands behind "t:".
func (l layout) ReadFile(p string, _ int64) ([]byte, error) {
	if text, ok := strings.CutPrefix(l[p], "t:"); ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (l layout) ReadDir(dir string) ([]fs.DirEntry, error) {
	files := fstest.MapFS{}
	for p, what := range l {
		if path.Dir(p) == dir && p != "/" {
			mode := fs.FileMode(0o644)
			switch {
			case what == "d":
				mode = fs.ModeDir | 0o755
			case strings.HasPrefix(what, "l:"):
				mode = fs.ModeSymlink | 0o777
			}
			files[path.Base(p)] = &fstest.MapFile{Mode: mode}
		}
	}
	if _, ok := l[dir]; !ok {
		return nil, fs.ErrNotExist
	}
	return files.ReadDir(".")
}

// plainPlaces takes every path for an ordinary file of the workspace: what is judged are programs and arguments alone.
type plainPlaces struct{}

func (plainPlaces) Resolve(dir, asked string) (place.Resolved, error) {
	if asked == "" {
		return place.Resolved{}, errors.New("no path")
	}
	return place.Resolved{Asked: asked, Real: absolute(dir, asked), Zone: place.Workspace, Kind: place.KindRegular}, nil
}
func (plainPlaces) InRoots(string, bool) bool { return true }
func (plainPlaces) Layout() place.Layout      { return place.Layout{} }

// world is a layout with a workspace and real places.
type world struct {
	files      layout
	home, dir  string
	path       []string
	classifier *place.Classifier
	kept       bool // calls can be taken back
}

func newWorld(t testing.TB, files map[string]string) *world {
	t.Helper()
	all := map[string]string{"/ws": "d", "/home/dev/.ssh/id_ed25519": "f", "/ws/README.md": "f", "/tmp/x": "f", "/bin": "l:usr/bin"}
	for _, name := range strings.Fields(`git go rg grep find xargs cat ls head tail wc sort sed awk rm cp mv tee curl make python3
		sh bash env nice timeout sudo tr cut uniq touch echo printf jq npm node busybox true sleep chmod dd`) {
		all["/usr/bin/"+name] = "x"
	}
	for p, what := range files {
		all[p] = what
	}
	classifier, err := place.New(place.Layout{Workspace: "/ws", Home: "/home/dev", StateDir: "/home/dev/.toolward", ConfigFile: "/home/dev/.toolward/toolward.jsonc"})
	if err != nil {
		t.Fatal(err)
	}
	return &world{newLayout(all), "/home/dev", "/ws", []string{"/usr/local/bin", "/usr/bin", "/bin"}, classifier, false}
}

// Resolve follows the layout's links instead of the disk's.
func (w *world) Resolve(dir, asked string) (place.Resolved, error) {
	if asked == "" {
		return place.Resolved{}, errors.New("no path")
	}
	p := absolute(dir, asked)
	real, kind := p, place.KindMissing
	follow := &walk{files: w.files}
	if r, node, ok := follow.follow(p); ok {
		real, kind = r, place.KindRegular
		if node.Mode.IsDir() {
			kind = place.KindDirectory
		}
	}
	return place.Resolved{Asked: asked, Real: real, Zone: w.classifier.Classify(real), Kind: kind}, nil
}
func (w *world) Classify(real string) place.Zone      { return w.classifier.Classify(real) }
func (w *world) InRoots(real string, write bool) bool { return w.classifier.InRoots(real, write) }
func (w *world) Layout() place.Layout                 { return w.classifier.Layout() }

func (w *world) getenv(name string) (string, bool) {
	switch name {
	case "HOME":
		return w.home, true
	case "PATH":
		return strings.Join(w.path, ":"), true
	}
	return "", false
}

func (w *world) evaluate(t testing.TB, s Policy, command string) *Assessment {
	t.Helper()
	return w.evaluateAt(t, s, command, toolward.Normal)
}

func (w *world) evaluateAt(t testing.TB, s Policy, command string, level toolward.Level) *Assessment {
	t.Helper()
	e, _, err := New(s, w.home, NewResolver(w.files))
	if err != nil {
		t.Fatal(err)
	}
	return e.Evaluate(&Request{Command: command, Dir: w.dir, Getenv: w.getenv, Level: level, Places: w, Kept: w.kept})
}

// verdict is what the modes that nobody has changed make of an assessment on this machine.
func verdict(a *Assessment) toolward.Verdict {
	return modes.Judge(modes.Default(), toolward.HostGateway, toolward.Normal, a.Analysis())
}

// onMiss are the settings of a usual installation with these entries.
func onMiss(preset Preset, patterns ...string) Policy {
	s := Policy{Preset: preset}
	for _, p := range patterns {
		s.Entries = append(s.Entries, allowlist.Listed{Entry: allowlist.Entry{Pattern: p}})
	}
	return s
}

func codes(a *Assessment) (list []Code) {
	for i := range a.Segments {
		for _, o := range a.Segments[i].Asks {
			if !slices.Contains(list, o.Code) {
				list = append(list, o.Code)
			}
		}
	}
	return list
}
