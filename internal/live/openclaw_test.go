package live_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// npmSystem is this machine as npm packages with programs in them are named.
func npmSystem() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return runtime.GOOS + "-" + arch
}

// node22 is the runtime that OpenClaw needs, whatever the machine has.
var node22 = live.Package("node22", "node-"+npmSystem(), "22.23.3")

// openclaw is the command line of OpenClaw in the version whose gateway protocol ours is compatible with. Two of its
// dependencies cannot be had any more; none of what is tested uses them. The native part of a third has to be named
// where optional dependencies are left out.
func openclaw() live.Part {
	native := "@snazzah/davey-" + npmSystem()
	if runtime.GOOS == "linux" {
		native += "-gnu"
	}
	manifest, _ := json.MarshalIndent(map[string]any{ // texts can always be written
		"private":      true,
		"dependencies": map[string]string{"openclaw": "2026.2.26", native: "0.1.12"},
		"overrides": map[string]string{
			"@whiskeysockets/baileys": "file:./stub", "cssomnom": "npm:cssom@0.5.0", "@snazzah/davey": "0.1.12",
		},
	}, "", "  ")
	return live.Project("openclaw", "openclaw", "2026.2.26", map[string]string{
		"package.json":      string(manifest),
		"stub/package.json": `{"name":"@whiskeysockets/baileys","version":"0.0.0"}`,
	}, "--omit=optional", "--legacy-peer-deps")
}

// openclawUser is somebody with OpenClaw's command line and a home of their own, and so a device of their own.
type openclawUser struct {
	t                 *testing.T
	machine           *live.Machine
	node, entry, home string
	secret            string
}

func newOpenclawUser(t *testing.T, m *live.Machine, name, secret string) *openclawUser {
	t.Helper()
	u := &openclawUser{
		t: t, machine: m, home: filepath.Join(m.Home, name), secret: secret,
		node:  filepath.Join(live.Need(t, node22), "bin", "node"),
		entry: filepath.Join(live.Need(t, openclaw()), "openclaw.mjs"),
	}
	if err := os.Mkdir(u.home, 0o700); err != nil {
		t.Fatal(err)
	}
	return u
}

// said is what a command printed, and whether it succeeded.
type said struct {
	out, err string
	ok       bool
}

// running is a command that has not ended yet.
type running struct {
	command  *exec.Cmd
	out, err bytes.Buffer
	ended    chan error
}

// start starts a command against the gateway.
func (u *openclawUser) start(arguments ...string) *running {
	u.t.Helper()
	arguments = append([]string{u.entry}, arguments...)
	arguments = append(arguments, "--url", "ws"+strings.TrimPrefix(u.machine.URL, "http"), "--token", u.secret)
	r := &running{command: u.machine.Command(u.node, arguments...), ended: make(chan error, 1)}
	r.command.Env = append(r.command.Env, "HOME="+u.home)
	r.command.Stdout, r.command.Stderr = &r.out, &r.err
	if err := r.command.Start(); err != nil {
		u.t.Fatal(err)
	}
	go func() { r.ended <- r.command.Wait() }()
	u.t.Cleanup(func() { _ = r.command.Process.Kill() })
	return r
}

// openclawPatience is how long a command and a question may take. Each start of the command line takes seconds of a processor
// that other tests use, too.
const openclawPatience = 9 * time.Minute

// end waits for the command, which is killed if it takes too long.
func (u *openclawUser) end(r *running) said {
	u.t.Helper()
	late := time.AfterFunc(openclawPatience, func() { _ = r.command.Process.Kill() })
	defer late.Stop()
	err := <-r.ended
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() < 0) {
		u.t.Fatalf("openclaw: %v; it said %s%s", err, &r.out, &r.err)
	}
	return said{r.out.String(), r.err.String(), err == nil}
}

func (u *openclawUser) run(arguments ...string) said {
	u.t.Helper()
	return u.end(u.start(arguments...))
}

// startCall starts a request of the gateway protocol.
func (u *openclawUser) startCall(method string, params any, more ...string) *running {
	u.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		u.t.Fatal(err)
	}
	arguments := []string{"gateway", "call", method, "--json", "--timeout", fmt.Sprint(openclawPatience.Milliseconds()), "--params", string(raw)}
	return u.start(append(arguments, more...)...)
}

func (u *openclawUser) call(method string, params any, more ...string) said {
	u.t.Helper()
	return u.end(u.startCall(method, params, more...))
}

// answer is the object that a command printed.
func (u *openclawUser) answer(s said) map[string]any {
	u.t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(s.out), &object); !s.ok || err != nil {
		u.t.Fatalf("no answer: %+v", s)
	}
	return object
}

// refused fails unless the command failed and said why on standard error.
func (u *openclawUser) refused(s said, why string) {
	u.t.Helper()
	if s.ok || !strings.Contains(s.err, why) {
		u.t.Errorf("want a refusal with %q, got %+v", why, s)
	}
}

// TestOpenClaw is OpenClaw's own command line against the real daemon: its users ask, answer and keep their list of
// allowed commands here without changing a program.
func TestOpenClaw(t *testing.T) {
	live.Need(t, node22)
	live.Need(t, openclaw())
	m := live.NewMachine(t, "")
	m.Start()
	ctx := t.Context()
	person, err := signInAtConsole(ctx, m.URL)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Secret string }
	if err := person.api(ctx, "POST", "/v1/tokens", map[string]any{"gateway": true, "name": "openclaw"}, &made); err != nil {
		t.Fatal(err)
	}
	asker := newOpenclawUser(t, m, "asker", made.Secret)
	desk := newOpenclawUser(t, m, "desk", made.Secret)

	t.Run("a wrong token", func(t *testing.T) {
		u := newOpenclawUser(t, m, "stranger", "tw_WRONGWRONG")
		u.refused(u.run("gateway", "call", "health"), "unauthorized: gateway token mismatch")
		var devices struct{ Pending, Paired []any }
		if err := person.api(ctx, "GET", "/v1/devices", nil, &devices); err != nil || len(devices.Pending)+len(devices.Paired) > 0 {
			t.Errorf("a stranger's device is known: %+v, %v", devices, err)
		}
	})
	if health := asker.answer(asker.call("health", map[string]any{})); health["ok"] != true {
		t.Errorf("health: %v", health)
	}
	asker.refused(asker.call("health", map[string]any{"no": 1}), `invalid health params: "no"`)
	asker.refused(asker.call("no.such.method", map[string]any{}), "unknown method: no.such.method")

	// It has asked for every scope, and has them; what only people may do is still refused, and it shows how to get it.
	const howTo = "toolward devices approve"
	desk.refused(desk.run("approvals", "get", "--gateway"), howTo)
	var devices struct{ Paired []struct{ Device string } }
	if err := person.api(ctx, "GET", "/v1/devices", nil, &devices); err != nil || len(devices.Paired) != 2 {
		t.Fatalf("two devices are paired without asking: %+v, %v", devices, err)
	}
	id := desk.device()
	if err := person.api(ctx, "POST", "/v1/devices/"+id+"/approve", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	t.Run("a credential with fewer scopes", func(t *testing.T) {
		asker := asker.in(t)
		own := asker.answer(asker.call("device.token.rotate", map[string]any{
			"deviceId": asker.device(), "role": "operator", "scopes": []string{"operator.read"},
		}))
		narrow := *asker
		narrow.secret, _ = own["token"].(string) // the command line asks for every scope
		narrow.refused(narrow.call("health", map[string]any{}), "the device's credential does not cover the role or scopes")
	})
	t.Run("approvals", func(t *testing.T) { testOpenClawApprovals(t, person, asker, desk) })
	t.Run("allowed commands", func(t *testing.T) { testOpenClawCommands(t, person, asker, desk) })
	if err := person.api(ctx, "POST", "/v1/devices/"+id+"/remove", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	desk.refused(desk.run("approvals", "get", "--gateway"), howTo)
}

// device is the id of a user's device.
func (u *openclawUser) device() string {
	u.t.Helper()
	raw, err := os.ReadFile(filepath.Join(u.home, ".openclaw", "identity", "device.json"))
	var identity struct{ DeviceID string }
	if err == nil {
		err = json.Unmarshal(raw, &identity)
	}
	if err != nil || identity.DeviceID == "" {
		u.t.Fatalf("the user has no device: %v", err)
	}
	return identity.DeviceID
}

// testOpenClawApprovals lets one user ask and another answer, while a person is at the console.
func testOpenClawApprovals(t *testing.T, person *consolePerson, asker, desk *openclawUser) {
	asker, desk = asker.in(t), desk.in(t)
	ctx := t.Context()
	if a := asker.answer(asker.call("exec.approval.request", map[string]any{"command": "id"})); a["decision"] != nil {
		t.Errorf("nobody was there, and the decision is %v", a)
	}
	stream, err := person.watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for _, decision := range []string{"allow-once", "deny"} {
		id, command := "question-"+decision, "make "+decision
		question := asker.startCall("exec.approval.request", map[string]any{
			"id": id, "command": command, "cwd": "/srv", "host": "gateway", "twoPhase": true, "timeoutMs": openclawPatience.Milliseconds(),
		}, "--expect-final")
		awaitApproval(t, person, id)
		answers := map[string]*running{"question": question}
		if first := decision == "allow-once"; first {
			answers["wait"] = asker.startCall("exec.approval.waitDecision", map[string]any{"id": id})
			listed := desk.call("exec.approval.list", map[string]any{})
			if !listed.ok || !strings.Contains(listed.out, id) || !strings.Contains(listed.out, command) {
				t.Errorf("list: %+v", listed)
			}
			asker.refused(asker.call("exec.approval.resolve", map[string]any{"id": id, "decision": decision}), "only a person may answer")
			desk.refused(desk.call("exec.approval.resolve", map[string]any{"id": id, "decision": "allow-always"}), "decision not available")
		}
		if a := desk.answer(desk.call("exec.approval.resolve", map[string]any{"id": id, "decision": decision})); a["ok"] != true {
			t.Errorf("resolve: %v", a)
		}
		for name, r := range answers {
			if a := asker.answer(asker.end(r)); a["decision"] != decision || a["id"] != id {
				t.Errorf("%s: %v", name, a)
			}
		}
		desk.refused(desk.call("exec.approval.resolve", map[string]any{"id": id, "decision": "allow-once"}), "unknown approval id")
		var record struct{ State, Decision, ResolvedBy string }
		if err := person.api(ctx, "GET", "/v1/approvals/"+id, nil, &record); err != nil {
			t.Fatal(err)
		}
		if record.State != "resolved" || record.Decision != decision || !strings.Contains(record.ResolvedBy, "device") && !strings.Contains(record.ResolvedBy, desk.device()[:12]) {
			t.Errorf("in the gateway it is %+v", record)
		}
	}
}

// in is the user in a subtest.
func (u *openclawUser) in(t *testing.T) *openclawUser {
	v := *u
	v.t = t
	return &v
}

// awaitApproval waits until the gateway shows an approval to a person.
func awaitApproval(t *testing.T, person *consolePerson, id string) {
	t.Helper()
	for deadline := time.Now().Add(openclawPatience); ; time.Sleep(50 * time.Millisecond) {
		err := person.api(t.Context(), "GET", "/v1/approvals/"+id, nil, nil)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("approval %s never waited: %v", id, err)
		}
	}
}

// testOpenClawCommands edits the list of allowed commands.
func testOpenClawCommands(t *testing.T, person *consolePerson, asker, desk *openclawUser) {
	asker, desk = asker.in(t), desk.in(t)
	allowed := func() []string {
		var s struct {
			File struct {
				Agents map[string]struct{ Allowlist []struct{ Pattern string } }
			}
		}
		if err := person.api(t.Context(), "GET", "/v1/exec-approvals", nil, &s); err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, agent := range slices.Sorted(maps.Keys(s.File.Agents)) {
			for _, e := range s.File.Agents[agent].Allowlist {
				list = append(list, agent+" "+e.Pattern)
			}
		}
		return list
	}
	shown := desk.answer(desk.run("approvals", "get", "--gateway", "--json"))
	file, _ := shown["file"].(map[string]any)
	socket, _ := file["socket"].(map[string]any)
	if shown["exists"] != true || shown["hash"] == "" || socket["path"] == "" || socket["token"] != nil {
		t.Errorf("get: %v", shown)
	}
	edit := func(u *openclawUser, verb string) said {
		return u.run("approvals", "allowlist", verb, "--gateway", "--agent", "coder", "/usr/bin/jq")
	}
	asker.refused(edit(asker, "add"), "only a person may")
	if s := edit(desk, "add"); !s.ok || !slices.Equal(allowed(), []string{"coder /usr/bin/jq"}) {
		t.Errorf("add: %+v; allowed are %v", s, allowed())
	}
	wrong := filepath.Join(desk.home, "wrong.json")
	if err := os.WriteFile(wrong, []byte(`{"version":1,"defaults":{"security":"lax"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	desk.refused(desk.run("approvals", "set", "--gateway", "--file", wrong), `defaults.security: "lax" is none of deny, allowlist, full`)
	if s := edit(desk, "remove"); !s.ok || len(allowed()) != 0 {
		t.Errorf("remove: %+v; allowed are %v", s, allowed())
	}
	if s := desk.run("devices", "list"); !s.ok || !strings.Contains(s.out, fmt.Sprintf("Paired (%d)", 2)) {
		t.Errorf("devices: %+v", s)
	}
}
