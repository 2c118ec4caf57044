package policy

import (
	"encoding/json"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/schema"
)

const vectorFile = "policy.json"

type object = map[string]any

// request builds what a gateway would hand to Judge.
func request(t testing.TB, tool string, params json.RawMessage, facts toolward.Facts) *toolward.Request {
	t.Helper()
	canonical, err := schema.Canonicalize(params)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(canonical, &m); err != nil {
		t.Fatal(err)
	}
	return &toolward.Request{
		Call: toolward.Call{Caller: toolward.Caller{Agent: "main", Owner: true, Workspace: "/ws"}, Host: toolward.HostGateway},
		Tool: &toolward.Tool{Name: tool}, Params: toolward.NewParams(canonical, m), Facts: facts, Level: toolward.Normal,
	}
}

func TestClassifyVectors(t *testing.T) {
	table := newTable(PresetStrict)
	gatetest.Run(t, vectorFile, "classify", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Tool   string
			Params json.RawMessage
			Facts  struct {
				Place, Scope, BrowserTarget string
				Elevated                    bool
			}
		}
		gatetest.Decode(t, input, &in)
		facts := toolward.Facts{Scope: in.Facts.Scope, BrowserOn: in.Facts.BrowserTarget, Elevated: in.Facts.Elevated}
		if in.Facts.Place != "" {
			facts.Targets = []toolward.Target{{Zone: toolward.Zone(in.Facts.Place)}}
		}
		r := request(t, in.Tool, in.Params, facts)
		sub := newSubject(r)
		found := (&Snapshot{table: table}).rowOf(r, &sub)
		out := classJSON(found.Classification)
		out["matcher"] = "-"
		if found.Grant != "" {
			out["matcher"] = found.Grant
		}
		return out
	})
}

func TestApplyPatchVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "applyPatch", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			ApplyPatch      visible.ApplyPatch
			Provider, Model string
			SandboxAccess   string
			FSWorkspaceOnly *bool
		}
		gatetest.Decode(t, input, &in)
		s := compile(t, Config{Tools: visible.Tools{Exec: visible.Exec{ApplyPatch: in.ApplyPatch}, FS: visible.FS{WorkspaceOnly: in.FSWorkspaceOnly}}}, coreTools()...)
		found, _ := s.Find(toolward.Caller{Owner: true, Provider: in.Provider, Model: in.Model, SandboxReadOnly: in.SandboxAccess == "ro"}, "apply_patch")
		return object{
			"available":     found != nil,
			"workspaceOnly": s.agentOf(&toolward.Caller{}).keepsInWorkspace("apply_patch"),
		}
	})
}

func classJSON(c toolward.Classification) object {
	out := object{"class": c.Class, "severity": c.Severity}
	if c.Class != toolward.Blocked {
		out["from"] = c.From
	}
	return out
}

func TestOverrideVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "override", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Tool, Action string
			Base         toolward.Classification
			Overrides    map[string]string
		}
		gatetest.Decode(t, input, &in)
		if in.Base.Class == toolward.Blocked {
			in.Base.From = toolward.Normal
		}
		o, errs := newOverrides(in.Overrides, "teg.tools", nil, func(string) bool { return false })
		if errs != nil {
			t.Fatal(errs)
		}
		action, command, _ := cutInvoke(in.Action)
		sub := subject{tool: in.Tool, action: toolward.NormalAction(action)}
		if command != "" {
			sub.params = toolward.NewParams(nil, object{"invokeCommand": command})
		}
		result, warning := in.Base, ""
		if entry := o.find(&sub, false); entry != nil {
			result, warning = entry.apply(in.Base)
		}
		out := classJSON(result)
		if warning != "" {
			out["warning"] = warning
		}
		return out
	})
}

func cutInvoke(action string) (string, string, bool) {
	for i, c := range action {
		if c == ':' {
			return action[:i], action[i+1:], true
		}
	}
	return action, "", false
}

func TestVerdictVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "verdict", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Class    toolward.Class
			From     toolward.Level
			Severity toolward.Severity
			Matcher  string
			Level    toolward.Level
			Grant    bool
			Enabled  bool
			Findings []toolward.Effect
		}
		gatetest.Decode(t, input, &in)
		c := toolward.Classification{Class: in.Class, From: in.From, Severity: in.Severity, Grant: toolward.GrantKind(in.Matcher)}
		if in.Matcher == "-" {
			c.Grant = toolward.GrantNone
		}
		worst := toolward.EffectNote
		for _, f := range in.Findings {
			worst = min(worst, f)
		}
		w := weigh(c, in.Enabled, in.Level, worst)
		switch {
		case w.verdict == toolward.Deny:
			return object{"verdict": "deny", "code": w.code}
		case w.verdict == toolward.Ask && w.grantOK && in.Grant:
			return object{"verdict": "allow", "via": "grant"}
		case w.verdict == toolward.Ask:
			return object{"verdict": "ask", "allowAlways": w.allowAlways}
		}
		return object{"verdict": "allow", "via": "class"}
	})
}

func TestExecVerdictVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "execVerdict", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Host               toolward.Host
			Level              toolward.Level
			Security           modes.Security
			Ask                modes.Ask
			AnalysisOK         bool
			AllowlistSatisfied bool
			Forced             []string
		}
		gatetest.Decode(t, input, &in)
		configured := modes.Modes{Security: in.Security, Ask: in.Ask}
		verdict := modes.Judge(configured, in.Host, in.Level, &toolward.CommandAnalysis{Understood: in.AnalysisOK, Covered: in.AllowlistSatisfied, Findings: in.Forced})
		inForce := configured.At(in.Host, in.Level)
		return object{"security": inForce.Security, "ask": inForce.Ask, "verdict": verdict}
	})
}

func TestURLFindingsVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "urlFindings", func(t *testing.T, input json.RawMessage) any {
		var in struct{ URL string }
		gatetest.Decode(t, input, &in)
		found := URLFindings(in.URL)
		if found == nil {
			found = []string{}
		}
		return object{"findings": found}
	})
}

func TestDigestVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "digest", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Tool       string
			Params     json.RawMessage
			AgentID    string
			SessionKey toolward.SessionKey
		}
		gatetest.Decode(t, input, &in)
		return object{"digest": request(t, in.Tool, in.Params, toolward.Facts{}).Params.Digest(in.Tool, in.AgentID, in.SessionKey)}
	})
}

// TestParamAliasVectors decodes through a snapshot, as the gateway does.
func TestParamAliasVectors(t *testing.T) {
	s := compile(t, Config{}, coreTools()...)
	gatetest.Run(t, vectorFile, "paramAlias", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Tool   string
			Params json.RawMessage
		}
		gatetest.Decode(t, input, &in)
		var packed struct {
			Raw *string `json:"__raw"`
		}
		if json.Unmarshal(in.Params, &packed) == nil && packed.Raw != nil {
			in.Params = []byte(*packed.Raw)
		}
		params, err := s.Decode(s.Tool(in.Tool), in.Params)
		if err != nil {
			return object{"error": toolward.CodeInvalidArgs}
		}
		return object{"params": params.Canonical()}
	})
}
