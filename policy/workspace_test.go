package policy

import (
	"encoding/json"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/visible"
)

func pointer[V any](v V) *V { return &v }

func TestApplyPatchStaysInTheWorkspace(t *testing.T) {
	outside := request(t, "apply_patch", json.RawMessage(`{}`), toolward.Facts{Targets: []toolward.Target{{Path: "/etc/x", Real: "/etc/x", Op: toolward.OpWrite, Zone: "outside", Kind: "file", Links: 1}}})
	if j := compile(t, Config{}, coreTools()...).Judge(outside); j.Verdict != toolward.Deny {
		t.Errorf("got %v", j.Verdict)
	}
	open := Config{Tools: visible.Tools{Exec: visible.Exec{ApplyPatch: visible.ApplyPatch{WorkspaceOnly: pointer(false)}}}}
	if j := compile(t, open, coreTools()...).Judge(outside); j.Verdict != toolward.Ask {
		t.Errorf("got %v", j.Verdict)
	}
}

// TestTheSessionNamesTheAgent: a face that leaves the agent out must not free a caller from the agent's rules.
func TestTheSessionNamesTheAgent(t *testing.T) {
	s := compile(t, Config{Agents: []Agent{{ID: "work", Tools: visible.Tools{Deny: []string{"exec"}}, TEG: AgentTEG{Tools: map[string]string{"read": "blocked"}}}}}, coreTools()...)
	if found, _ := s.Find(toolward.Caller{Session: "agent:Work:main"}, "exec"); found != nil {
		t.Error("its lists do not count")
	}
	r := request(t, "read", json.RawMessage(`{}`), target("workspace", toolward.OpRead))
	r.Call.Caller.Agent, r.Call.Session = "", "agent:work:main"
	if j := s.Judge(r); j.Verdict != toolward.Deny {
		t.Error("its classes do not count")
	}
}
