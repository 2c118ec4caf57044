package bridge_test

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
)

// hookProgram is the real toolward-hook, built once.
var hookProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "toolward-hook")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "toolward-hook")
	out, err := exec.Command("go", "build", "-o", path, "github.com/toolward/toolward/cmd/toolward-hook").CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	status := m.Run()
	if path, err := hookProgram(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

func (r *rig) setup() bridge.Setup {
	r.t.Helper()
	hook, err := hookProgram()
	if err != nil {
		r.t.Fatal(err)
	}
	return bridge.Setup{
		Client: bridge.ClaudeCode, Home: r.home, Project: r.project, State: filepath.Join(r.home, ".toolward"), Hook: hook,
		Managed: filepath.Join(r.home, "managed.json"),
	}
}

// settingsFile is the person's settings.
func (r *rig) settingsFile() string { return filepath.Join(r.home, ".claude", "settings.json") }

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, plan *bridge.Plan, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(); err != nil {
		t.Fatal(err)
	}
}

var settingsFiles = map[string]string{
	"empty object":  "{}\n",
	"empty":         "",
	"one line":      `{"z":1,"a":{"b":[1,2]}}`,
	"tabs":          "{\n\t\"model\": \"opus\",\n\t\"permissions\": {\"deny\": [\"Bash(rm *)\"]}\n}\n",
	"four spaces":   "{\n    \"a\": 1\n}",
	"other hooks":   "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"/usr/bin/lint\"}]}\n    ],\n    \"Notification\": [{\"hooks\": [{\"type\": \"prompt\", \"prompt\": \"x\"}]}]\n  },\n  \"unknown\": {\"x\": 1e3, \"y\": \"\\u00e9\"}\n}\n",
	"hooks first":   "{\n  \"hooks\": {},\n  \"z\": 9007199254740993\n}\n",
	"odd spacing":   "{  \"b\" :1 ,\n\"a\":[ ] }",
	"skill shell":   "{\n  \"disableSkillShellExecution\": true\n}\n",
	"long and deep": "{\n  \"env\": {\"A\": \"1\"},\n  \"hooks\": {\"Stop\": [{\"hooks\": []}]}\n}\n",
}

func TestInstallAndUninstall(t *testing.T) {
	for name, before := range settingsFiles {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			write(t, r.settingsFile(), before, 0o640)
			plan, err := bridge.PlanInstall(r.setup())
			apply(t, plan, err)
			if plan.Diff == "" || !plan.Changed() {
				t.Error("no difference to show")
			}
			after, _ := os.ReadFile(r.settingsFile())
			checkInstalled(t, []byte(before), after)
			if info, _ := os.Stat(r.settingsFile()); info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v", info.Mode())
			}
			again, err := bridge.PlanInstall(r.setup())
			if err != nil || again.Changed() || again.Diff != "" {
				t.Errorf("a second installation changes something: %v\n%s", err, again.Diff)
			}
			plan, err = bridge.PlanUninstall(r.setup())
			apply(t, plan, err)
			restored, err := os.ReadFile(r.settingsFile())
			if err != nil || string(restored) != before {
				t.Errorf("not restored: %v\n%s", err, cmp.Diff(before, string(restored)))
			}
		})
	}
}

// checkInstalled looks at the file as the client reads it.
func checkInstalled(t *testing.T, before, after []byte) {
	t.Helper()
	type settings = map[string]any
	var old, now settings
	if len(bytes.TrimSpace(before)) > 0 {
		if err := json.Unmarshal(before, &old); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(after, &now); err != nil {
		t.Fatalf("the client cannot read it: %v\n%s", err, after)
	}
	for key, value := range old {
		if key != "hooks" && !cmp.Equal(value, now[key]) {
			t.Errorf("%s changed to %v", key, now[key])
		}
	}
	oldHooks, _ := old["hooks"].(map[string]any)
	hooks := now["hooks"].(map[string]any)
	for event, groups := range oldHooks {
		for i, group := range groups.([]any) {
			if !cmp.Equal(group, hooks[event].([]any)[i]) {
				t.Errorf("another hook of %s changed to %v", event, hooks[event])
			}
		}
	}
	groups := hooks["PreToolUse"].([]any)
	group := groups[len(groups)-1].(map[string]any)
	handler := group["hooks"].([]any)[0].(map[string]any)
	if group["matcher"] != "*" || handler["onFailure"] != "block" || handler["timeout"] != 135.0 || group["onFailure"] != nil {
		t.Errorf("PreToolUse %v", group)
	}
	if len(hooks) < 9 || now["disableSkillShellExecution"] != true {
		t.Errorf("only %d events; %v", len(hooks), now)
	}
}

func TestInstallWithoutAFile(t *testing.T) {
	r := newRig(t, toolward.Allow)
	plan, err := bridge.PlanInstall(r.setup())
	apply(t, plan, err)
	info, err := os.Stat(r.settingsFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	plan, err = bridge.PlanUninstall(r.setup())
	apply(t, plan, err)
	if _, err := os.Stat(r.settingsFile()); !os.IsNotExist(err) {
		t.Errorf("the file that install made is still there: %v", err)
	}
}

func TestUninstallAfterEdits(t *testing.T) {
	r := newRig(t, toolward.Allow)
	write(t, r.settingsFile(), settingsFiles["other hooks"], 0o600)
	plan, err := bridge.PlanInstall(r.setup())
	apply(t, plan, err)
	now, _ := os.ReadFile(r.settingsFile())
	write(t, r.settingsFile(), strings.Replace(string(now), `"unknown"`, "\"model\": \"opus\",\n  \"unknown\"", 1), 0o600)
	plan, err = bridge.PlanUninstall(r.setup())
	apply(t, plan, err)
	want := strings.Replace(settingsFiles["other hooks"], `"unknown"`, "\"model\": \"opus\",\n  \"unknown\"", 1)
	restored, _ := os.ReadFile(r.settingsFile())
	if diff := cmp.Diff(want, string(restored)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestInstallReplacesAnOlderHook(t *testing.T) {
	r := newRig(t, toolward.Allow)
	write(t, r.settingsFile(), `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"/old/toolward-hook","args":["claude-code"]},{"type":"command","command":"/usr/bin/lint"}]}],"Notification":[{"hooks":[{"type":"command","command":"/old/toolward","args":["hook","claude-code"]}]}]}}`, 0o600)
	plan, err := bridge.PlanInstall(r.setup())
	apply(t, plan, err)
	now, _ := os.ReadFile(r.settingsFile())
	if strings.Contains(string(now), "/old/") || !strings.Contains(string(now), "/usr/bin/lint") || strings.Contains(string(now), "Notification") {
		t.Errorf("%s", now)
	}
}

func TestInstallKeepsLinks(t *testing.T) {
	r := newRig(t, toolward.Allow)
	real := filepath.Join(r.home, "dotfiles", "settings.json")
	write(t, real, "{}\n", 0o600)
	if err := os.MkdirAll(filepath.Dir(r.settingsFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, r.settingsFile()); err != nil {
		t.Fatal(err)
	}
	plan, err := bridge.PlanInstall(r.setup())
	apply(t, plan, err)
	if info, err := os.Lstat(r.settingsFile()); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if data, _ := os.ReadFile(real); !bytes.Contains(data, []byte("toolward-hook")) {
		t.Errorf("the linked file was not edited: %s", data)
	}
}

func TestInstallRefuses(t *testing.T) {
	for _, test := range []struct {
		name, file string
		change     func(*bridge.Setup)
		want       string
	}{
		{"not JSON", "{\n  \"a\": 1,\n}\n", nil, "line 3"},
		{"comments, which the client cannot read", "// x\n{}", nil, "not readable"},
		{"list", "[]", nil, "not a JSON object"},
		{"name twice", `{"hooks":{},"hooks":{}}`, nil, "twice"},
		{"hooks that are no object", `{"hooks":[]}`, nil, "not an object"},
		{"event that is no list", `{"hooks":{"PreToolUse":{}}}`, nil, "not a list"},
		{"all hooks switched off", `{"disableAllHooks":true}`, nil, "disableAllHooks"},
		{"unknown client", "{}", func(s *bridge.Setup) { s.Client = "x" }, "unknown"},
		{"relative hook", "{}", func(s *bridge.Setup) { s.Hook = "toolward-hook" }, "absolute"},
		{"missing hook", "{}", func(s *bridge.Setup) { s.Hook = "/nonexistent/toolward-hook" }, "no such file"},
		{"hook that is no program", "{}", func(s *bridge.Setup) { s.Hook = s.Home }, "cannot be run"},
		{"unknown scope", "{}", func(s *bridge.Setup) { s.Scope = "x" }, "scope"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			write(t, r.settingsFile(), test.file, 0o600)
			setup := r.setup()
			if test.change != nil {
				test.change(&setup)
			}
			_, err := bridge.PlanInstall(setup)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if now, _ := os.ReadFile(r.settingsFile()); string(now) != test.file {
				t.Errorf("the file was changed to %s", now)
			}
		})
	}
}

func TestApplyRefusesAFileThatChanged(t *testing.T) {
	r := newRig(t, toolward.Allow)
	write(t, r.settingsFile(), "{}\n", 0o600)
	plan, err := bridge.PlanInstall(r.setup())
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.settingsFile(), `{"a":1}`, 0o600)
	if err := plan.Apply(); err == nil {
		t.Error("somebody's change was overwritten")
	}
	if now, _ := os.ReadFile(r.settingsFile()); string(now) != `{"a":1}` {
		t.Errorf("%s", now)
	}
}

// serve lets the handler answer on the socket of the rig's Toolward home.
func (r *rig) serve() {
	r.t.Helper()
	path := filepath.Join(r.home, ".toolward", "toolward.sock")
	var listener net.Listener
	var err error
	if len(path) > 100 {
		r.t.Chdir(filepath.Dir(path))
		path = "toolward.sock"
	}
	if listener, err = net.Listen("unix", path); err != nil {
		r.t.Fatal(err)
	}
	server := &http.Server{Handler: r.handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	r.t.Cleanup(func() { server.Close() })
}

func TestDoctor(t *testing.T) {
	states := func(checks []bridge.Check) map[string]bridge.State {
		m := map[string]bridge.State{}
		for _, c := range checks {
			if m[c.Name] == "" || c.State == bridge.Failed {
				m[c.Name] = c.State
			}
		}
		return m
	}
	edit := func(old, new string) func(*rig) {
		return func(r *rig) {
			now, err := os.ReadFile(r.settingsFile())
			if err != nil || !strings.Contains(string(now), old) {
				r.t.Fatalf("%v: %q is not in %s", err, old, now)
			}
			write(r.t, r.settingsFile(), strings.Replace(string(now), old, new, 1), 0o600)
		}
	}
	for _, test := range []struct {
		name   string
		daemon bool
		change func(*rig)
		want   map[string]bridge.State
	}{
		{"all is well", true, nil, map[string]bridge.State{"events": bridge.Passed, "canary": bridge.Passed, "confined": bridge.Warned}},
		{"no daemon: it still blocks", false, nil, map[string]bridge.State{"events": bridge.Passed, "canary": bridge.Warned}},
		{"not installed", true, func(r *rig) { os.Remove(r.settingsFile()) }, map[string]bridge.State{"hook": bridge.Skipped}},
		{"onFailure lost", true, edit(`"onFailure": "block"`, `"onFailure": "continue"`), map[string]bridge.State{"events": bridge.Passed, "onFailure": bridge.Failed, "canary": bridge.Passed, "confined": bridge.Warned}},
		{"too little time", true, edit(`"timeout": 135`, `"timeout": 60`), map[string]bridge.State{"events": bridge.Passed, "timeout": bridge.Failed, "deadline": bridge.Failed, "canary": bridge.Passed, "confined": bridge.Warned}},
		{"some tools only", true, edit(`"matcher": "*"`, `"matcher": "Bash"`), map[string]bridge.State{"events": bridge.Passed, "matcher": bridge.Failed, "canary": bridge.Passed, "confined": bridge.Warned}},
		{"no PreToolUse", true, edit(`"PreToolUse"`, `"PreToolUs"`), map[string]bridge.State{"events": bridge.Failed}},
		{"switched off by the project", true, func(r *rig) {
			write(r.t, filepath.Join(r.project, ".claude", "settings.json"), `{"disableAllHooks":true}`, 0o600)
		}, map[string]bridge.State{"events": bridge.Passed, "shadow": bridge.Failed, "canary": bridge.Passed, "confined": bridge.Warned}},
		{
			"managed hooks only", true, func(r *rig) {
				write(r.t, filepath.Join(r.home, "managed.json"), `{"allowManagedHooksOnly":true}`, 0o600)
			},
			map[string]bridge.State{"events": bridge.Passed, "shadow": bridge.Failed, "canary": bridge.Passed, "confined": bridge.Warned},
		},
		{"unreadable", true, func(r *rig) { write(r.t, r.settingsFile(), "{", 0o600) }, map[string]bridge.State{"settings": bridge.Failed, "hook": bridge.Failed}},
		{
			"skills may run commands", true, edit(`"disableSkillShellExecution": true`, `"disableSkillShellExecution": false`),
			map[string]bridge.State{"events": bridge.Passed, "skills": bridge.Warned, "canary": bridge.Passed, "confined": bridge.Warned},
		},
		{"another program in the hook's place", true, func(r *rig) {
			fake := filepath.Join(r.home, "toolward-hook")
			write(r.t, fake, "#!/bin/sh\nexit 0\n", 0o700)
			hook, _ := hookProgram()
			now, _ := os.ReadFile(r.settingsFile())
			write(r.t, r.settingsFile(), strings.ReplaceAll(string(now), hook, fake), 0o600)
		}, map[string]bridge.State{"events": bridge.Passed, "canary": bridge.Failed}},
		{"the program is gone", true, func(r *rig) {
			hook, _ := hookProgram()
			now, _ := os.ReadFile(r.settingsFile())
			write(r.t, r.settingsFile(), strings.ReplaceAll(string(now), hook, "/nonexistent/toolward-hook"), 0o600)
		}, map[string]bridge.State{"events": bridge.Passed, "program": bridge.Failed, "canary": bridge.Failed}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			setup := r.setup()
			plan, err := bridge.PlanInstall(setup)
			apply(t, plan, err)
			if test.daemon {
				r.serve()
			}
			if test.change != nil {
				test.change(r)
			}
			checks := bridge.Doctor(t.Context(), setup)
			if diff := cmp.Diff(test.want, states(checks)); diff != "" {
				t.Errorf("(-want +got)\n%s\n%+v", diff, checks)
			}
		})
	}
}

func TestManagedSettingsHaveAPlace(t *testing.T) {
	r := newRig(t, toolward.Allow)
	setup := r.setup()
	setup.Scope = bridge.ScopeManaged
	plan, err := bridge.PlanInstall(setup)
	apply(t, plan, err)
	if !strings.HasSuffix(plan.Path, "managed.json") {
		t.Errorf("wrote %s", plan.Path)
	}
	if info, err := os.Stat(plan.Path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("everybody's client must read it: %v %v", info.Mode(), err)
	}
	write(t, filepath.Join(r.project, ".claude", "settings.json"), `{"disableAllHooks":true}`, 0o600)
	r.serve()
	exchangeable := false
	for _, c := range bridge.Doctor(t.Context(), setup) {
		switch {
		case c.Name == "program" && strings.Contains(c.Text, "so it cannot be trusted"): // this hook is anybody's to exchange
			exchangeable = true
		case c.State == bridge.Failed:
			t.Errorf("%+v", c)
		}
	}
	if !exchangeable {
		t.Error("the hook that everybody runs is one that agents can exchange, and nobody says so")
	}
}
