package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/server/api"
)

// hostile are names that agents, plug-ins and whoever edits lists could choose to deceive or to run script.
const (
	hostileAgent  = `"><script>alert(1)</script>`
	hostileEntry  = `<img/src=x/onerror=alert(2)>`
	hostileText   = `</th><svg onload=alert(3)> {{.Base}}`
	reversedAgent = "a\u202egnp.tnega"
)

func hostilePolicy(t *testing.T) *policy.Snapshot {
	t.Helper()
	schema := json.RawMessage(`{"type":"object"}`)
	tools := []*toolward.Tool{
		{Name: "read", Description: hostileText, Schema: schema},
		{Name: "srv__go", Plugin: "srv", Description: hostileText, Schema: schema},
	}
	s, _, err := policy.Compile(policy.Config{
		Tools: visible.Tools{Deny: []string{hostileEntry}},
		Agents: []policy.Agent{
			{ID: hostileAgent, Tools: visible.Tools{Allow: []string{"read", hostileEntry}}, TEG: policy.AgentTEG{Tools: map[string]string{hostileEntry: "blocked", "read.<b>": "blocked"}}},
			{ID: reversedAgent},
			{ID: "coder", Tools: visible.Tools{Deny: []string{"read"}}},
		},
	}, tools)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPolicyPagesEscape opens every page about the policy with names that want to be markup, in the policy and in the
// query.
func TestPolicyPagesEscape(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{Policy: hostilePolicy(t)})
	b := signedIn(t, w)
	q := url.Values{
		"q": {hostileText}, "agent": {hostileAgent}, "tool": {"read"}, "model": {hostileEntry}, "session": {hostileText}, "as": {"sandbox"},
	}.Encode()
	for _, path := range []string{"/tools", "/tools?" + q, "/tools/one?" + q, "/tools/layers?" + q, "/tools/one?tool=srv__go", "/tools/layers?agent=" + url.QueryEscape(reversedAgent)} {
		resp, body := b.get(b.base + path)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d\n%s", path, resp.StatusCode, body)
		}
		// A form carries the name as it is, in an attribute.
		body = strings.ReplaceAll(body, `value="`+reversedAgent+`"`, "")
		for _, raw := range []string{"<script>alert", "<img", "<svg onload", "<b>", "\u202e"} {
			if strings.Contains(body, raw) {
				t.Errorf("%s holds %q", path, raw)
			}
		}
	}
	if _, body := b.get(b.base + "/tools"); !strings.Contains(body, `>a<mark class="odd"`) {
		t.Error("a reversed name is not marked")
	}
	for _, wrong := range []string{"/tools?level=relaxed", "/tools?as=root", "/tools/layers?agent=" + strings.Repeat("a", 300), "/tools/layers?model=" + url.QueryEscape("\xff")} {
		if resp, _ := b.get(b.base + wrong); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", wrong, resp.StatusCode)
		}
	}
	if resp, _ := b.get(b.base + "/tools/one?agent=coder&tool=nothing"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown tool: %d", resp.StatusCode)
	}
}

// TestPolicyAPI asks for the matrix, one cell and the layers as scripts of operators do.
func TestPolicyAPI(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{Policy: hostilePolicy(t)})
	b := signedIn(t, w)
	wire := &apiClient{t: t, http: b.http, base: w.URL + b.base}

	var m api.Matrix
	wire.want(200, "GET", "/v1/matrix", nil, &m)
	column := slices.Index(m.Agents, "coder")
	if len(m.Agents) != 4 || m.Agents[3] != "" || column < 0 {
		t.Fatalf("agents %q", m.Agents)
	}
	for _, tool := range m.Tools {
		switch tool.Name {
		case "read":
			denied, others := tool.Cells[column], tool.Cells[3]
			if denied.Visible || denied.Removed == nil || denied.Removed.Layer != "tools.agent (coder)" || (denied.Possible != policy.Possible{}) {
				t.Errorf("read for coder: %+v", denied)
			}
			if (others.Possible != policy.Possible{Allow: true, Ask: true, Deny: true}) {
				t.Errorf("read for others: %+v", others)
			}
		case "exec":
			if tool.Available {
				t.Error("exec is not registered")
			}
		}
	}
	wire.want(200, "GET", "/v1/matrix?level=lockdown&as=owner", nil, &m)
	for _, tool := range m.Tools {
		for i, cell := range tool.Cells {
			if cell.Possible.Allow {
				t.Errorf("in lockdown %s runs for %q", tool.Name, m.Agents[i])
			}
		}
	}
	var one api.ToolForecast
	wire.want(200, "GET", "/v1/matrix/tool?agent=coder&tool=read", nil, &one)
	if one.Visible || len(one.Cases) == 0 || !slices.ContainsFunc(one.Steps, func(s visible.StepResult) bool { return s.Number == 5 && s.Takes != nil }) {
		t.Errorf("%+v", one)
	}
	var layers api.AgentLayers
	wire.want(200, "GET", "/v1/layers?agent=coder&as=subagent", nil, &layers)
	if len(layers.Steps) < 11 || layers.Sandbox.DenySource.Source != "default" {
		t.Errorf("%+v", layers)
	}
	if i := slices.IndexFunc(layers.Steps, func(s visible.StepView) bool { return s.Number == 9 }); layers.Steps[i].Absent != "" {
		t.Errorf("a sub-agent without its layer: %+v", layers.Steps[i])
	}
	wire.want(404, "GET", "/v1/matrix/tool?agent=coder&tool=nothing", nil, nil)
	wire.want(400, "GET", "/v1/layers?as=nobody", nil, nil)
}
