package live_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// gatewayClient is the client library of the gateway protocol that OpenClaw's own programs are built on.
var gatewayClient = live.Package("gateway-client", "@openclaw/gateway-client", "2026.9.1")

// peerLine is one thing that happened to a client.
type peerLine struct {
	Kind, ID, Event, Message, Code, Reason string
	DeviceID                               string
	Protocol                               int
	Seq                                    uint64
	Payload                                json.RawMessage
	Auth                                   struct {
		DeviceToken string
		Scopes      []string
	}
}

// peer is a running client.
type peer struct {
	t     *testing.T
	input io.WriteCloser
	lines chan peerLine
	kept  []peerLine
	n     int
	stop  func()
}

// startPeer starts the real client with the key of a device; "-" is none.
func startPeer(t *testing.T, m *live.Machine, token string, version int, key, scopes string) *peer {
	t.Helper()
	node := live.Need(t, live.Program("node"))
	entry := filepath.Join(live.Need(t, gatewayClient), "dist", "index.mjs")
	script, err := filepath.Abs("testdata/gatewayclient.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if key != "-" {
		key = filepath.Join(m.Home, key)
	}
	command := m.Command(node, script, entry, "ws"+strings.TrimPrefix(m.URL, "http"), token, fmt.Sprint(version), key, scopes)
	var errs live.Output
	command.Stderr = &errs
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, input: input, lines: make(chan peerLine, 256)}
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			var line peerLine
			if json.Unmarshal(lines.Bytes(), &line) == nil {
				p.lines <- line
			}
		}
	}()
	ended := false
	p.stop = func() {
		if ended {
			return
		}
		ended = true
		input.Close()
		late := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
		defer late.Stop()
		for range p.lines { // what it still says does not matter
		}
		_ = command.Wait() // it ends with whatever it was doing
		if t.Failed() {
			t.Logf("the client said: %s", errs.String())
		}
	}
	t.Cleanup(p.stop)
	return p
}

// find is the next line that is looked for; others are kept.
func (p *peer) find(what string, is func(*peerLine) bool) peerLine {
	p.t.Helper()
	for i, line := range p.kept {
		if is(&line) {
			p.kept = append(p.kept[:i:i], p.kept[i+1:]...)
			return line
		}
	}
	late := time.After(time.Minute)
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				p.t.Fatalf("the client ended without %s; it said %+v", what, p.kept)
			}
			if is(&line) {
				return line
			}
			p.kept = append(p.kept, line)
		case <-late:
			p.t.Fatalf("there was no %s for a minute; the client said %+v", what, p.kept)
		}
	}
}

func (p *peer) hello() peerLine {
	p.t.Helper()
	return p.find("hello", func(l *peerLine) bool { return l.Kind == "hello" })
}

func (p *peer) event(name string) peerLine {
	p.t.Helper()
	return p.find("event "+name, func(l *peerLine) bool { return l.Kind == "event" && l.Event == name })
}

// begin sends a request; answer waits for what became of it.
func (p *peer) begin(method string, params any, final bool) (id string) {
	p.t.Helper()
	p.n++
	id = fmt.Sprint(p.n)
	raw, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params, "expectFinal": final})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.input.Write(append(raw, '\n')); err != nil {
		p.t.Fatal(err)
	}
	return id
}

func (p *peer) answer(id string) peerLine {
	p.t.Helper()
	return p.find("answer to "+id, func(l *peerLine) bool { return l.ID == id })
}

func (p *peer) request(method string, params any) peerLine {
	p.t.Helper()
	return p.answer(p.begin(method, params, false))
}

func (l *peerLine) field(name string) any {
	var payload map[string]any
	_ = json.Unmarshal(l.Payload, &payload) // what is no object has no fields
	return payload[name]
}

// TestGatewayClient is the client library of the gateway protocol against the real daemon, in both versions: it asks as
// one device and answers as another that a signed-in person approved.
func TestGatewayClient(t *testing.T) {
	live.Need(t, live.Program("node"))
	live.Need(t, gatewayClient)
	for _, version := range []int{3, 4} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) { testGatewayClient(t, version) })
	}
}

func testGatewayClient(t *testing.T, version int) {
	m := live.NewMachine(t, "")
	m.Start()
	ctx := t.Context()
	person, err := signInAtConsole(ctx, m.URL)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Secret string }
	if err := person.api(ctx, "POST", "/v1/tokens", map[string]any{"gateway": true, "name": "peers"}, &made); err != nil {
		t.Fatal(err)
	}
	wrong := startPeer(t, m, "tw_WRONG", version, "-", "operator.read")
	if l := wrong.find("refusal", func(l *peerLine) bool { return l.Kind == "refused" || l.Kind == "close" }); strings.Contains(l.Message, made.Secret) {
		t.Errorf("%+v", l)
	}
	wrong.stop()

	const all = "operator.approvals,operator.read"
	asker := startPeer(t, m, made.Secret, version, "asker.json", all)
	if l := asker.hello(); l.Protocol != version || l.Auth.DeviceToken == "" {
		t.Fatalf("hello: %+v", l)
	}
	for method, field := range map[string]string{"health": "ok", "status": "version", "tools.catalog": "groups", "node.list": "nodes"} {
		if l := asker.request(method, map[string]any{}); l.Kind != "answer" || l.field(field) == nil {
			t.Errorf("%s: %+v", method, l)
		}
	}
	if l := asker.request("no.such.method", map[string]any{}); l.Kind != "failure" {
		t.Errorf("%+v", l)
	}
	// With a device that nobody vouched for, and with the right secret, nothing can be answered.
	desk := startPeer(t, m, made.Secret, version, "desk.json", all)
	device := desk.hello().DeviceID
	if l := desk.request("exec.approval.list", map[string]any{}); l.Kind != "failure" || !strings.Contains(l.Message, "only a person may") {
		t.Errorf("before anybody vouched: %+v", l)
	}
	desk.stop()
	if err := person.api(ctx, "POST", "/v1/devices/"+device+"/approve", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	desk = startPeer(t, m, made.Secret, version, "desk.json", all)
	desk.hello()

	for _, decision := range []string{"allow-once", "deny"} {
		question := asker.begin("exec.approval.request", map[string]any{
			"command": "make " + decision, "cwd": "/srv", "host": "gateway", "twoPhase": true,
		}, true)
		told := desk.event("exec.approval.requested")
		id, _ := told.field("id").(string)
		if request, _ := told.field("request").(map[string]any); request["command"] != "make "+decision {
			t.Errorf("told: %+v", told)
		}
		if l := asker.request("exec.approval.resolve", map[string]any{"id": id, "decision": "allow-once"}); l.Kind != "failure" {
			t.Errorf("the asker answered itself: %+v", l)
		}
		waits := asker.begin("exec.approval.waitDecision", map[string]any{"id": id}, false)
		var answered peerLine
		for range 20 {
			if answered = desk.request("exec.approval.resolve", map[string]any{"id": id, "decision": decision}); answered.Kind == "answer" {
				break
			}
			time.Sleep(100 * time.Millisecond) // an answer counts from half a second on
		}
		if answered.field("ok") != true {
			t.Fatalf("resolve: %+v", answered)
		}
		for name, l := range map[string]peerLine{"final": asker.answer(question), "wait": asker.answer(waits)} {
			if l.field("decision") != decision {
				t.Errorf("%s: %+v", name, l)
			}
		}
		if l := desk.event("exec.approval.resolved"); l.field("decision") != decision || l.field("id") != id {
			t.Errorf("told: %+v", l)
		}
	}
	for _, p := range []*peer{asker, desk} {
		for _, l := range p.kept {
			if l.Kind == "gap" || l.Kind == "close" {
				t.Errorf("%+v", l)
			}
		}
	}
}
