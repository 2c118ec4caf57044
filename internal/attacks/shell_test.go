package attacks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// machine is the world of the corpus for commands: programs and files by their paths there. Nothing of it is on disk,
// and nothing is run.
type machine struct {
	files   map[string]fs.FileMode // 0755 for programs
	texts   map[string]string      // what files hold whose text the corpus gives
	links   map[string]string
	path    []string
	home    string
	places  *place.Classifier
	profile machineProfile
}

// machineProfile is a profile of the corpus: settings for commands.
type machineProfile struct {
	Security           modes.Security
	Ask                modes.Ask
	Allow              []string
	SafeBins           []string
	SafeBinTrustedDirs []string
}

// corpusWorld is what every case of the corpus starts from.
var corpusWorld = sync.OnceValues(func() (world struct {
	World struct {
		Workspace, Home string
		PathDirs        []string
		Bins            map[string]string
		Files           map[string]any
	}
	Profiles map[string]json.RawMessage
}, err error,
) {
	raw, err := os.ReadFile(filepath.Join("testdata", "vectors", vectorFile))
	if err == nil {
		err = json.Unmarshal(raw, &world)
	}
	return world, err
})

// judgeShell: a command under a profile of the corpus, by the real evaluation and the real modes.
func judgeShell(t *testing.T, c *attack) (outcome, error) {
	if err := setupOnly(c, "profile", "allow", "replaceAllow", "pathDirs", "bins", "symlinks", "files", "autoApproveWrites", "caller"); err != nil {
		return outcome{}, err
	}
	if err := c.Attempt.only("attempt", "tool", "command"); err != nil {
		return outcome{}, err
	}
	return judgeCommand(t, c, nil)
}

// judgeCommand judges the command of an attempt with variables that its call sets.
func judgeCommand(t *testing.T, c *attack, env fields) (outcome, error) {
	m, err := newMachine(t, c)
	if err != nil {
		return outcome{}, err
	}
	settings := command.Policy{
		Writes:   true, // as the file tools of the corpus
		SafeBins: append([]string{}, m.profile.SafeBins...), SafeBinTrustedDirs: m.profile.SafeBinTrustedDirs,
	}
	for _, pattern := range m.profile.Allow {
		// A developer's entries: these programs may read, write in the workspace and talk to the network.
		effects := []string{allowlist.EffectRead, allowlist.EffectWrite, allowlist.EffectNetwork}
		settings.Entries = append(settings.Entries, allowlist.Listed{Entry: allowlist.Entry{Pattern: pattern, Effects: effects}})
	}
	evaluator, _, err := command.New(settings, m.home, command.NewResolver(m))
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	var watch stopwatch
	watch.time(func() {
		a := evaluator.Evaluate(&command.Request{
			Command: c.Attempt.text("command"), Dir: "/ws", Level: toolward.Normal, Places: m,
			Getenv: func(name string) (string, bool) {
				if value, set := env[name]; set {
					return fmt.Sprint(value), true
				}
				return m.getenv(name)
			},
		})
		o = outcome{answer: m.answer(a), why: reasonsOf(a)}
	})
	o.took = watch.longest
	return o, nil
}

// answer is what the modes of the profile make of the assessment.
func (m *machine) answer(a *command.Assessment) answer {
	inForce := modes.Modes{Security: m.profile.Security, Ask: m.profile.Ask}
	verdict := modes.Judge(inForce, toolward.HostGateway, toolward.Normal, a.Analysis())
	switch {
	case verdict == toolward.Deny, a.Reason == shell.TooLong: // exec takes no such text
		return denied
	case verdict == toolward.Allow:
		return allowed
	}
	return asked
}

func reasonsOf(a *command.Assessment) string {
	var list []string
	if !a.OK {
		list = append(list, string(a.Reason))
	}
	list = append(list, a.Findings...)
	for i := range a.Segments {
		for _, o := range a.Segments[i].Asks {
			list = append(list, string(o.Code)+": "+o.Detail)
		}
	}
	return strings.Join(list, "; ")
}

// profileOf are the settings that the corpus calls by a name.
func profileOf(name string) (p machineProfile, err error) {
	world, err := corpusWorld()
	if err != nil {
		return p, err
	}
	raw, known := world.Profiles[name]
	if !known {
		return p, unsupported{"profile " + name}
	}
	return p, json.Unmarshal(raw, &p)
}

func newMachine(t *testing.T, c *attack) (*machine, error) {
	world, err := corpusWorld()
	must(t, err)
	m := &machine{files: map[string]fs.FileMode{}, texts: map[string]string{}, links: map[string]string{}, path: world.World.PathDirs, home: world.World.Home}
	if m.profile, err = profileOf(c.Setup.text("profile")); err != nil {
		return nil, err
	}
	if c.Setup.flag("replaceAllow") {
		m.profile.Allow = nil
	}
	m.profile.Allow = append(m.profile.Allow, c.Setup.list("allow")...)
	if c.Setup.has("pathDirs") {
		m.path = c.Setup.list("pathDirs")
	}
	for _, bin := range world.World.Bins {
		m.files[bin] = 0o755
	}
	for _, bin := range c.Setup.object("bins") {
		m.files[fmt.Sprint(bin)] = 0o755
	}
	for _, files := range []map[string]any{world.World.Files, c.Setup.object("files")} {
		for name, text := range files {
			if !path.IsAbs(name) {
				name = path.Join("/ws", name)
			}
			m.files[name], m.texts[name] = 0o644, fmt.Sprint(text)
		}
	}
	for _, name := range []string{"/ws/evil", "/ws/x", "/ws/h"} {
		m.files[name] = 0o755
	}
	for _, name := range []string{"README.md", "package.json", "Makefile", "go.mod", "main.go", "app.js", "app.py", "f.txt", "a.txt", "b.txt", "f"} {
		m.files["/ws/"+name] = 0o644
	}
	for link, target := range c.Setup.object("symlinks") {
		m.links[link] = fmt.Sprint(target)
	}
	m.places, err = place.New(place.Layout{
		Workspace: "/ws", Home: m.home, StateDir: m.home + "/.toolward", ConfigFile: m.home + "/.toolward/toolward.jsonc",
	})
	return m, err
}

func (m *machine) getenv(name string) (string, bool) {
	switch name {
	case "HOME":
		return m.home, true
	case "PATH":
		return strings.Join(m.path, ":"), true
	case "PWD":
		return "/ws", true
	}
	return "", false
}

// Look tells what stands at a path.
func (m *machine) Look(name string) (command.Node, error) {
	if target, ok := m.links[name]; ok {
		return command.Node{Mode: fs.ModeSymlink | 0o777, Link: target}, nil
	}
	if mode, ok := m.files[name]; ok {
		return command.Node{Mode: mode}, nil
	}
	if m.above(name) {
		return command.Node{Mode: fs.ModeDir | 0o755}, nil
	}
	return command.Node{}, fs.ErrNotExist
}

// ReadFile reads a file of the corpus. Settings that it does not have are known to be missing.
func (m *machine) ReadFile(name string, limit int64) ([]byte, error) {
	text, given := m.texts[name]
	switch _, err := m.Look(name); {
	case err != nil:
		return nil, err
	case !given, int64(len(text)) > limit:
		return nil, fs.ErrInvalid
	}
	return []byte(text), nil
}

// above reports whether something stands below a directory.
func (m *machine) above(dir string) bool {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	for name := range m.files {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for name := range m.links {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return dir == "/ws" || dir == m.home
}

// GitPointer: no file leads to a repository elsewhere.
func (m *machine) GitPointer(string) (string, error) { return "", fs.ErrNotExist }

// ReadDir lists a directory.
func (m *machine) ReadDir(dir string) ([]fs.DirEntry, error) {
	files := fstest.MapFS{}
	for name, mode := range m.files {
		if path.Dir(name) == dir {
			files[path.Base(name)] = &fstest.MapFile{Mode: mode}
		}
	}
	return files.ReadDir(".")
}

// Resolve follows the links of the machine.
func (m *machine) Resolve(dir, asked string) (place.Resolved, error) {
	if asked == "" {
		return place.Resolved{}, errors.New("no path")
	}
	name := asked
	if !path.IsAbs(name) {
		name = path.Join(dir, name)
	}
	name = path.Clean(name)
	for range 10 {
		target, link := m.links[name]
		if !link {
			break
		}
		name = target
	}
	kind := place.KindMissing
	if node, err := m.Look(name); err == nil {
		kind = place.KindRegular
		if node.Mode.IsDir() {
			kind = place.KindDirectory
		}
	}
	return place.Resolved{Asked: asked, Real: name, Zone: m.places.Classify(name), Kind: kind}, nil
}

// InRoots and Layout are those of the real classifier.
func (m *machine) InRoots(real string, write bool) bool { return m.places.InRoots(real, write) }
func (m *machine) Layout() place.Layout                 { return m.places.Layout() }
