//go:build unix

package place

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// attack is a case of attacks.json about a path that a file tool is given.
type attack struct {
	ID, Class, Surface, Level, Want, Why string
	Setup                                struct {
		Profile       string
		FS            string
		Symlinks      map[string]string
		Hardlinks     map[string]string
		RootIsSymlink map[string]string
		Files         map[string]string
		Race          json.RawMessage
	}
	Attempt struct {
		Tool string
		Path json.RawMessage
	}
}

// unpack reads a text or {"$rle": [text, [unit, n], …]}; ok is false for anything else.
func unpack(raw json.RawMessage) (text string, ok bool) {
	if json.Unmarshal(raw, &text) == nil {
		return text, len(raw) > 0
	}
	var packed struct {
		Runs []json.RawMessage `json:"$rle"`
	}
	if json.Unmarshal(raw, &packed) != nil || packed.Runs == nil {
		return "", false
	}
	for _, run := range packed.Runs {
		var unit string
		n := 1
		if json.Unmarshal(run, &unit) != nil && json.Unmarshal(run, &[]any{&unit, &n}) != nil {
			return "", false
		}
		text += strings.Repeat(unit, n)
	}
	return text, true
}

func TestAttackVectors(t *testing.T) {
	files := []string{filepath.Join("..", "internal", "attacks", "testdata", "vectors", "attacks.json")}
	if dir := os.Getenv("TOOLWARD_VECTORS"); dir != "" {
		files = append(files, filepath.Join(dir, "attacks.json"))
	}
	held, all := map[string]int{}, map[string]int{}
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if i > 0 && errors.Is(err, os.ErrNotExist) {
			continue
		}
		must(t, err)
		var doc struct{ Cases []attack }
		must(t, json.Unmarshal(raw, &doc))
		for _, c := range doc.Cases {
			p, ok := unpack(c.Attempt.Path)
			// A swap between check and open has its own test: TestSwapsAfterResolve, TestRaceAgainstSwaps.
			if c.Surface != "path" || !ok || c.Setup.Race != nil || !strings.HasPrefix(c.Setup.Profile, "fs-") {
				continue
			}
			kind := c.Surface + " " + c.Class + " " + c.Level
			all[kind]++
			if t.Run(c.ID, func(t *testing.T) { judgeAttack(t, c, p) }) {
				held[kind]++
			}
		}
	}
	for kind, n := range all {
		t.Logf("vectors attacks.json %s: %d/%d held", kind, held[kind], n)
	}
}

// judgeAttack asks what a gate must know about the path: does it resolve, does it stay in the roots, what is there,
// and what place is it. The logical paths of the case are mapped into a temporary tree.
func judgeAttack(t *testing.T, c attack, p string) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	mapped := func(p string) string {
		for _, top := range []string{"/ws", "/outside", "/home/dev", "/data"} {
			if strings.HasPrefix(p, top) {
				return root + p
			}
		}
		return p
	}
	build(t, c, root, mapped)
	layout := Layout{
		Workspace: root + "/ws", Home: root + "/home/dev", StateDir: root + "/home/dev/.toolward",
		ConfigFile: root + "/home/dev/.toolward/toolward.jsonc", FoldCase: c.Setup.FS == "case-insensitive",
	}
	layout, err = layout.Canonical()
	must(t, err)
	places := classifier(t, layout)

	write := c.Attempt.Tool != "read"
	r, err := places.Resolve(layout.Workspace, mapped(p))
	outside := c.Setup.Profile == "fs-workspace" && !places.InRoots(r.Real, write)
	refused := err != nil || outside || r.Kind.Special() || (write && r.Links > 1)
	if _, readErr := ReadFile(r, 1<<20); !refused && !write && readErr != nil && r.Kind != KindMissing {
		refused = true // a directory, or too large
	}
	switch c.Want {
	case "deny":
		// What is not there cannot be refused by its kind; the tool's own answer is an error then.
		if !refused && r.Zone != Self && !(r.Kind == KindMissing && strings.HasSuffix(r.Real, ".sock")) {
			t.Errorf("%s: %+v", c.Why, r)
		}
	case "ask":
		if !refused && r.Zone > Protected {
			t.Errorf("%s: %+v", c.Why, r)
		}
	case "contained":
		if !refused && !places.InRoots(r.Real, write) {
			t.Errorf("%s: %+v", c.Why, r)
		}
	case "allow":
		if refused || r.Zone < Outside {
			t.Errorf("%s: %+v, %v", c.Why, r, err)
		}
	default:
		t.Fatalf("unknown want %q", c.Want)
	}
}

func build(t *testing.T, c attack, root string, mapped func(string) string) {
	t.Helper()
	parents := func(p string) string {
		p = mapped(p)
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		return p
	}
	for from, to := range c.Setup.RootIsSymlink {
		must(t, os.MkdirAll(mapped(to), 0o755))
		must(t, os.Symlink(mapped(to), parents(from)))
	}
	if len(c.Setup.RootIsSymlink) == 0 {
		must(t, os.MkdirAll(root+"/ws/src", 0o755))
		must(t, os.WriteFile(root+"/ws/README.md", []byte("readme"), 0o644))
	}
	must(t, os.MkdirAll(root+"/home/dev/.toolward", 0o755))
	must(t, os.WriteFile(parents("/outside/secret"), []byte("SECRET"), 0o644))
	for link, target := range c.Setup.Symlinks {
		must(t, os.Symlink(mapped(target), parents(link)))
	}
	for name, target := range c.Setup.Hardlinks {
		must(t, os.Link(mapped(target), parents(name)))
	}
	for name, what := range c.Setup.Files {
		p := parents(name)
		switch {
		case what == "fifo":
			must(t, syscall.Mkfifo(p, 0o600))
		case what == "chardev":
			makeDevice(t, p)
		case strings.HasPrefix(what, "sparse:"):
			must(t, os.WriteFile(p, nil, 0o644))
			must(t, os.Truncate(p, 20<<30))
		default:
			must(t, os.WriteFile(p, []byte(what), 0o644))
		}
	}
}

// makeDevice makes a device node; without the right to, a link to one, which must be refused as well.
func makeDevice(t *testing.T, p string) {
	t.Helper()
	if err := syscall.Mknod(p, syscall.S_IFCHR|0o600, 1<<8|3); err != nil {
		must(t, os.Symlink("/dev/null", p))
	}
}
