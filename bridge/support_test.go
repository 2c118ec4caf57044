package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/bridge/hookclient"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/place"
)

// secret is what the recorded events have where a secret would be.
const secret = "hunter2-hunter2"

// rig is a handler on a real gateway with plain collaborators.
type rig struct {
	*gatetest.Harness
	t       testing.TB
	handler *bridge.Handler
	reports *reports
	project string
	home    string
	headers map[string]string
}

func newRig(t testing.TB, verdict toolward.Verdict, change ...func(*bridge.Config)) *rig {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, Harness: gatetest.New(t, verdict), reports: &reports{}, project: filepath.Join(root, "project"), home: filepath.Join(root, "home")}
	for _, dir := range []string{r.project, r.home, filepath.Join(r.home, ".toolward")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.headers = map[string]string{"Toolward-Project-Dir": r.project, "Toolward-Attended": "0"}
	config := bridge.Config{
		Gateway: r.Gateway, Sessions: r.reports,
		Layout: r.layout(),
		Redact: func(text string) (string, bool) {
			return strings.ReplaceAll(text, secret, "[hidden]"), strings.Contains(text, secret)
		},
	}
	for _, c := range change {
		c(&config)
	}
	if r.handler, err = bridge.NewHandler(config); err != nil {
		t.Fatal(err)
	}
	return r
}

// useGateway replaces the gateway.
func (r *rig) useGateway(g *toolward.Gateway, owner bool) {
	r.t.Helper()
	var err error
	if r.handler, err = bridge.NewHandler(bridge.Config{Gateway: g, Sessions: r.reports, Layout: r.layout(), Owner: owner}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) layout() place.Layout {
	return place.Layout{Home: r.home, StateDir: r.home + "/.toolward", ConfigFile: r.home + "/.toolward/toolward.jsonc"}
}

// recorded is an event as the real client sent it, moved into the rig's directories.
func (r *rig) recorded(name string) []byte {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "claude-code", name))
	if err != nil {
		r.t.Fatal(err)
	}
	return []byte(strings.NewReplacer("{{project}}", r.project, "{{home}}", r.home).Replace(string(raw)))
}

// event is a recorded event with some fields changed; nil removes one.
func (r *rig) event(name string, change map[string]any) []byte {
	r.t.Helper()
	if len(change) == 0 {
		return r.recorded(name)
	}
	var fields map[string]any
	if err := json.Unmarshal(r.recorded(name), &fields); err != nil {
		r.t.Fatal(err)
	}
	for k, v := range change {
		if v == nil {
			delete(fields, k)
			continue
		}
		fields[k] = v
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		r.t.Fatal(err)
	}
	return raw
}

// post sends an event as the hook does.
func (r *rig) post(event string, body []byte) hookclient.Answer {
	r.t.Helper()
	return r.postContext(r.t.Context(), event, body)
}

func (r *rig) postContext(ctx context.Context, event string, body []byte) hookclient.Answer {
	r.t.Helper()
	request := httptest.NewRequestWithContext(ctx, "POST", "/v1/hook/claude-code/"+event, bytes.NewReader(body))
	for name, value := range r.headers {
		request.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, request)
	answer, ok := hookclient.ParseAnswer(w.Body.Bytes())
	if w.Code != 200 || !ok {
		r.t.Fatalf("status %d, body %q", w.Code, w.Body)
	}
	return answer
}

// said reads the decision out of an answer to PreToolUse: allow, deny, ask, "" for no opinion, "exit 2".
func said(t testing.TB, a hookclient.Answer) (decision, reason string) {
	t.Helper()
	if a.Exit == 2 {
		if len(a.Stderr) == 0 {
			t.Error("exit 2 without a reason lets tools run in some clients")
		}
		return "exit 2", string(a.Stderr)
	}
	var out struct {
		HookSpecificOutput struct {
			HookEventName            string
			PermissionDecision       string
			PermissionDecisionReason string
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(a.Stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("not one object of the contract: %v: %q", err, a.Stdout)
	}
	if decoder.More() || out.HookSpecificOutput.HookEventName != "PreToolUse" {
		t.Errorf("not exactly one PreToolUse object: %q", a.Stdout)
	}
	return out.HookSpecificOutput.PermissionDecision, out.HookSpecificOutput.PermissionDecisionReason
}

// reports remembers what the handler told of sessions.
type reports struct {
	mu        sync.Mutex
	tokens    []int64
	windows   []int64
	compacted int
	exposed   []string
	floor     toolward.Level
	err       error
}

func (s *reports) Usage(_ context.Context, _ toolward.SessionKey, tokens, window int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens, s.windows = append(s.tokens, tokens), append(s.windows, window)
	return s.err
}

func (s *reports) Compacted(context.Context, toolward.SessionKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted++
	return s.err
}

func (s *reports) RaiseFloor(_ context.Context, _ toolward.SessionKey, level toolward.Level, _ time.Duration, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floor = level
	return nil
}

func (s *reports) Expose(_ context.Context, _ toolward.SessionKey, e toolward.Exposure) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exposed = append(s.exposed, e.External...)
	return s.err
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && jsonText(x) == jsonText(y)
}

func jsonText(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}
