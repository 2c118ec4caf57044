package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/toolward/toolward/hostdaemon"
)

// Check is one finding of Doctor.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"`           // what was seen
	Hint  string `json:"hint,omitempty"` // how to mend it
}

// Passed reports whether all is well.
func (c *Check) Passed() bool { return c.State == Passed }

// Failed reports whether calls can pass unguarded.
func (c *Check) Failed() bool { return c.State == Failed }

// State is how good a check came out.
type State string

// The states, worst first.
const (
	Failed  State = "failed"  // calls can pass unguarded
	Warned  State = "warning" // it works, but less than it could
	Passed  State = "ok"
	Skipped State = "skipped" // nothing is installed to look at
)

// installed is Toolward's hook as one settings file has it.
type installed struct {
	path   string
	events map[string]group
}

// Doctor examines the hook that a client would really run, in every file that the client reads, and proves by a
// call that is always refused that it blocks.
func Doctor(ctx context.Context, s Setup) []Check {
	s, err := s.complete()
	if err != nil {
		return []Check{{"setup", Failed, err.Error(), ""}}
	}
	d := doctor{setup: s, hint: "run: toolward install " + s.Client}
	d.files()
	if len(d.found) == 0 {
		state := Skipped
		if len(d.checks) > 0 {
			state = Failed
		}
		return append(d.checks, Check{"hook", state, "Toolward is not in the settings of " + s.Client, d.hint})
	}
	for _, one := range d.found {
		d.examine(one)
	}
	d.switchedOff()
	d.skills()
	d.enforcement()
	for _, one := range d.found {
		if d.canary(ctx, one) {
			d.confinedCanary(ctx, one)
		}
	}
	return d.checks
}

type doctor struct {
	setup  Setup
	hint   string
	found  []installed
	others []string // files with hooks of somebody else before the call
	checks []Check
}

func (d *doctor) add(name string, state State, hint, format string, args ...any) {
	d.checks = append(d.checks, Check{Name: name, State: state, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// files reads every settings file of the client, nearest first, for the hook and for what switches hooks off.
func (d *doctor) files() {
	paths := []string{d.setup.Managed}
	if d.setup.Project != "" {
		paths = append(paths, filepath.Join(d.setup.Project, d.setup.client.directory, "settings.local.json"), filepath.Join(d.setup.Project, d.setup.client.directory, "settings.json"))
	}
	paths = append(paths, filepath.Join(d.setup.directory, "settings.json"))
	var off []string
	onlyManaged := false
	for _, path := range slices.Compact(paths) {
		parsed, err := readSettings(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			d.add("settings", Failed, "mend the file", "%s cannot be read, so the client may skip it: %v", path, err)
			continue
		}
		if yes, _ := parsed.flag("disableAllHooks"); yes {
			off = append(off, path)
		}
		if yes, _ := parsed.flag("allowManagedHooksOnly"); yes && path == d.setup.Managed {
			onlyManaged = true
		}
		if hasOthers(parsed) {
			d.others = append(d.others, path)
		}
		if events := oursIn(parsed); len(events) > 0 {
			d.found = append(d.found, installed{path, events})
		}
	}
	managed := len(d.found) > 0 && d.found[0].path == d.setup.Managed
	for _, path := range off {
		// What an administrator installed runs whatever other files say.
		if !managed || path == d.setup.Managed {
			d.add("shadow", Failed, "remove disableAllHooks from that file", "%s switches all hooks off", path)
		}
	}
	if onlyManaged && !managed {
		d.add("shadow", Failed, "install with: toolward install "+d.setup.Client+" --managed", "%s lets only its own hooks run", d.setup.Managed)
	}
}

func readSettings(path string) (*settings, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseSettings(data)
}

// oursIn finds Toolward's handlers; each comes in its group, alone.
func oursIn(s *settings) map[string]group {
	hooks, err := s.hooks(false)
	if hooks == nil || err != nil {
		return nil
	}
	events := map[string]group{}
	for _, m := range hooks.Members {
		list, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			continue
		}
		eachGroup(list, func(i int, handlers *hujson.Array) {
			for j := range handlers.Elements {
				if !isOurs(&handlers.Elements[j]) {
					continue
				}
				var g group
				var h handler
				// The group may hold other people's handlers, of kinds that do not fit: only its matcher counts.
				var outer struct{ Matcher string }
				if json.Unmarshal(list.Elements[i].Pack(), &outer) == nil && json.Unmarshal(handlers.Elements[j].Pack(), &h) == nil {
					g.Matcher, g.Hooks = outer.Matcher, []handler{h}
					events[m.Name.Value.(hujson.Literal).String()] = g
				}
			}
		})
	}
	return events
}

// examine looks at what is written in one file.
func (d *doctor) examine(one installed) {
	missing := []string{}
	for _, event := range d.setup.client.events {
		if _, ok := one.events[event]; !ok {
			missing = append(missing, event)
		}
	}
	before, guarded := one.events["PreToolUse"]
	switch {
	case !guarded:
		d.add("events", Failed, d.hint, "%s: the hook is not installed for PreToolUse, so no call is guarded", one.path)
		return
	case len(missing) > 0:
		d.add("events", Warned, d.hint, "%s: the hook is not installed for %s", one.path, strings.Join(missing, ", "))
	default:
		d.add("events", Passed, "", "%s: the hook is installed for all %d events", one.path, len(d.setup.client.events))
	}
	if before.Matcher != "" && before.Matcher != "*" {
		d.add("matcher", Failed, d.hint, "%s: only tools that match %q are guarded", one.path, before.Matcher)
	}
	h := before.Hooks[0]
	if h.OnFailure != "block" {
		d.add("onFailure", Failed, d.hint, "%s: onFailure is %q, so a hook that fails lets the tool run", one.path, h.OnFailure)
	}
	if least := int(d.setup.ApprovalTimeout/time.Second) + 10; h.Timeout < least {
		d.add("timeout", Failed, d.hint, "%s: the client waits %d s for the hook, less than the %d s that a question and its answer take", one.path, h.Timeout, least)
	}
	if own, ok := deadlineOf(h); !ok || own >= h.Timeout {
		d.add("deadline", Failed, d.hint, "%s: the hook does not give up before the client does", one.path)
	}
	if info, err := os.Stat(h.Command); err != nil {
		d.add("program", Failed, d.hint, "the hook program cannot be found: %v", err)
	} else if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		d.add("program", Failed, d.hint, "%s cannot be run", h.Command)
	} else if one.path == d.setup.Managed {
		// Settings that nobody can switch off guard nothing if an agent can exchange the program that they name.
		if _, err := hostdaemon.RootsAlone(h.Command); err != nil {
			d.add("program", Failed, "as root: toolward install "+d.setup.Client+" --managed", "%s: the hook that everybody runs: %v", one.path, err)
		}
	}
}

// deadlineOf reads the hook's own deadline from its arguments, in seconds.
func deadlineOf(h handler) (int, bool) {
	i := slices.Index(h.Args, "--deadline")
	if i < 0 || i+1 >= len(h.Args) {
		return 0, false
	}
	n, err := strconv.Atoi(h.Args[i+1])
	return n, err == nil && n > 0
}

func (d *doctor) skills() {
	l := factsFinder{home: d.setup.Home, project: d.setup.Project, config: d.setup.directory, managed: d.setup.Managed}
	if !l.skillShellOff() {
		d.add("skills", Warned, d.hint, "shell lines in skills are on: they run without a hook, so every skill asks")
	}
}

// enforcement says what comes of bridge.enforceText. Claude Code takes a rewritten call from a hook, but nobody promises
// which of two hooks counts that both rewrite it.
func (d *doctor) enforcement() {
	switch {
	case !d.setup.EnforceText:
	case len(d.others) > 0:
		d.add("enforceText", Warned, "see what that hook does", "%s: another hook may rewrite what Toolward rewrites; the record then says that other arguments ran", d.others[0])
	default:
		d.add("enforceText", Passed, "", "commands that run without a question are rewritten to what was judged")
	}
}

// hasOthers reports whether hooks of somebody else are asked before calls.
func hasOthers(s *settings) (found bool) {
	hooks, err := s.hooks(false)
	if hooks == nil || err != nil {
		return false
	}
	i := find(hooks, "PreToolUse")
	if i < 0 {
		return false
	}
	if list, ok := hooks.Members[i].Value.Value.(*hujson.Array); ok {
		eachGroup(list, func(_ int, handlers *hujson.Array) {
			found = found || slices.ContainsFunc(handlers.Elements, func(v hujson.Value) bool { return !isOurs(&v) })
		})
	}
	return found
}
