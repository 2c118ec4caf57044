package protocol

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/identity"
)

// shown is how long an approval must have been there before an answer to it counts.
const shown = 600 * time.Millisecond

func TestApprovalOverTheWire(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		desk := w.console(newIdentity(), identity.ScopeApprovals)
		agent := w.connect(nil, identity.ScopeApprovals)
		agent.begin("q", "exec.approval.request", map[string]any{
			"command": "make deploy", "cwd": "/ws", "host": "gateway", "agentId": "main", "env": map[string]any{"TOKEN": "hidden value"}, "twoPhase": true,
		})
		first := agent.response("q")
		if first.Payload["status"] != "accepted" {
			t.Fatalf("%+v", first)
		}
		told := desk.event("exec.approval.requested")
		request := told.Payload["request"].(map[string]any)
		if told.Payload["id"] != first.Payload["id"] || request["command"] != "make deploy" || request["cwd"] != "/ws" || request["nodeId"] != nil {
			t.Errorf("%+v", told)
		}
		if f := desk.event("approval.requested"); f.Payload["kind"] != "exec" || len(f.Payload["allowedDecisions"].([]any)) != 2 {
			t.Errorf("%+v", f)
		}
		if strings.Contains(mustJSON(t, told), "hidden value") {
			t.Error("a value of the environment is shown")
		}
		if list := desk.request("exec.approval.list", nil); len(list.list) != 1 {
			t.Errorf("list: %+v", list)
		}
		id := first.Payload["id"]
		if f := desk.request("exec.approval.resolve", map[string]any{"id": id, "decision": "allow-once"}); f.OK {
			t.Error("an answer within half a second counts")
		}
		time.Sleep(shown)
		for decision, message := range map[string]string{"yes": "invalid decision", "allow-always": "decision not available"} {
			if f := desk.request("exec.approval.resolve", map[string]any{"id": id, "decision": decision}); f.OK || !strings.HasPrefix(f.Error.Message, message) {
				t.Errorf("%s: %+v", decision, f.Error)
			}
		}
		desk.begin("a", "exec.approval.resolve", map[string]any{"id": id, "decision": "allow-once"})
		final := agent.response("q")
		if final.Payload["decision"] != "allow-once" || final.Payload["id"] != id {
			t.Errorf("final: %+v", final)
		}
		if f := desk.response("a"); f.Payload["ok"] != true {
			t.Errorf("resolve: %+v", f)
		}
		if f := desk.request("exec.approval.resolve", map[string]any{"id": id, "decision": "deny"}); f.OK || f.Error.Message != "unknown approval id" {
			t.Errorf("a second answer: %+v", f)
		}
		if f := agent.request("exec.approval.waitDecision", map[string]any{"id": id}); f.Payload["decision"] != "allow-once" {
			t.Errorf("within the grace: %+v", f)
		}
		time.Sleep(15 * time.Second)
		if f := agent.request("exec.approval.waitDecision", map[string]any{"id": id}); f.OK || f.Error.Message != "approval expired or not found" {
			t.Errorf("after the grace: %+v", f)
		}
	})
}

// The gateway's secret may be known to an agent. With it alone, or with a device that nobody vouched for, nothing is
// seen or answered, whatever the scopes.
func TestASecretIsNoPerson(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		desk := w.console(newIdentity(), identity.ScopeApprovals)
		agent := w.connect(nil, identity.ScopeAdmin)
		agent.begin("q", "exec.approval.request", map[string]any{"command": "id", "twoPhase": true})
		id := agent.response("q").Payload["id"]
		time.Sleep(shown)
		for _, other := range []*client{agent, w.connect(nil, identity.ScopeAdmin), w.connect(newIdentity(), identity.ScopeAdmin)} {
			for _, method := range []string{
				"exec.approval.resolve", "approval.resolve", "exec.approval.list", "approval.list", "approval.get", "exec.approval.get",
				"exec.approvals.get", "exec.approvals.set", "audit.list", "audit.tail",
			} {
				f := other.request(method, map[string]any{"id": id, "decision": "allow-once"})
				if f.OK || f.Error.Code != codeForbidden || f.Error.Details["code"] != "PERSON_REQUIRED" {
					t.Errorf("%s: %+v", method, f)
				}
			}
			for method, params := range map[string]any{
				"device.pair.approve": map[string]any{"requestId": newIdentity().id()}, "device.pair.remove": map[string]any{"deviceId": "x"},
				"device.pair.reject": map[string]any{"requestId": "x"},
			} {
				if f := other.request(method, params); f.OK || f.Error.Code != codeForbidden {
					t.Errorf("%s: %+v", method, f)
				}
			}
		}
		if list := desk.request("approval.list", nil).Payload["approvals"].([]any); len(list) != 1 {
			t.Errorf("the question does not wait any more: %v", list)
		}
	})
}

// Nobody answers their own question, not even over another connection of the same device.
func TestNobodyAnswersThemselves(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		other := w.console(newIdentity(), identity.ScopeApprovals)
		self := newIdentity()
		desk := w.console(self, identity.ScopeAdmin)
		desk.begin("q", "exec.approval.request", map[string]any{"command": "id", "twoPhase": true})
		id := desk.response("q").Payload["id"]
		time.Sleep(shown)
		for _, c := range []*client{desk, w.connect(self, identity.ScopeAdmin)} {
			if f := c.request("approval.resolve", map[string]any{"id": id, "decision": "allow-once"}); f.OK {
				t.Error("a device answered its own question")
			}
		}
		if f := other.request("approval.resolve", map[string]any{"id": id, "decision": "deny", "reason": "not today"}); f.Payload["applied"] != true {
			t.Errorf("%+v", f)
		}
		if f := desk.response("q"); f.Payload["decision"] != "deny" {
			t.Errorf("%+v", f)
		}
	})
}

// With nobody there to answer, a question is over at once.
func TestNobodyIsThere(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		self := newIdentity()
		asker := w.console(self, identity.ScopeApprovals) // may answer, but not itself
		began := time.Now()
		f := asker.request("exec.approval.request", map[string]any{"command": "id"})
		if !f.OK || f.Payload["decision"] != nil || time.Since(began) > 100*time.Millisecond {
			t.Errorf("%+v after %s", f, time.Since(began))
		}
		f = asker.request("approval.get", map[string]any{"id": f.Payload["id"]})
		if f.Payload["resolvedBy"] != approval.ByNoApprover {
			t.Errorf("%+v", f)
		}
	})
}

func TestTimeoutIsNoDecision(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		desk := w.console(newIdentity(), identity.ScopeApprovals)
		agent := w.connect(nil, identity.ScopeApprovals)
		began := time.Now()
		f := agent.request("exec.approval.request", map[string]any{"command": "id", "timeoutMs": 5000})
		if !f.OK || f.Payload["decision"] != nil || time.Since(began) != 5*time.Second {
			t.Errorf("%+v after %s", f, time.Since(began))
		}
		if f := desk.event("exec.approval.resolved"); f.Payload["decision"] != nil {
			t.Errorf("the prompt is not told: %+v", f)
		}
	})
}

// Whoever asked may take the question back and may wait for its answer; nobody else may.
func TestOnesOwnQuestions(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		w.console(newIdentity(), identity.ScopeApprovals)
		agent, stranger := w.connect(nil, identity.ScopeApprovals), w.connect(nil, identity.ScopeApprovals)
		agent.begin("q", "approval.request", toolQuestion("t-1"))
		agent.response("q")
		for _, method := range []string{"approval.waitDecision", "approval.cancel"} {
			if f := stranger.request(method, map[string]any{"id": "t-1"}); f.OK {
				t.Errorf("%s of another's question: %+v", method, f)
			}
		}
		if f := agent.request("exec.approval.waitDecision", map[string]any{"id": "t-1"}); f.OK {
			t.Errorf("a method about commands shows another approval: %+v", f)
		}
		if f := agent.request("approval.request", toolQuestion("t-1")); f.OK || f.Error.Message != "approval id already pending" {
			t.Errorf("the same id twice: %+v", f)
		}
		if f := agent.request("approval.cancel", map[string]any{"id": "t-1"}); f.Payload["ok"] != true {
			t.Errorf("cancel: %+v", f)
		}
		if f := agent.response("q"); f.Payload["decision"] != nil {
			t.Errorf("%+v", f)
		}
	})
}

// A person with operator.admin ends anybody's question; one who may only answer does not.
func TestAdminsCancel(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		desk, admin := w.console(newIdentity(), identity.ScopeApprovals), w.console(newIdentity(), identity.ScopeAdmin)
		agent := w.connect(nil, identity.ScopeApprovals)
		agent.begin("q", "approval.request", toolQuestion("t-1"))
		agent.response("q")
		for name, c := range map[string]*client{"who may answer": desk, "the secret alone": w.connect(nil, identity.ScopeAdmin)} {
			if f := c.request("approval.cancel", map[string]any{"id": "t-1"}); f.OK || f.Error.Message != "unknown approval id" {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if f := admin.request("approval.cancel", map[string]any{"id": "t-1"}); f.Payload["ok"] != true {
			t.Errorf("%+v", f)
		}
		if f := agent.response("q"); !f.OK || f.Payload["decision"] != nil {
			t.Errorf("%+v", f)
		}
		if f := desk.request("approval.get", map[string]any{"id": "t-1"}); f.Payload["resolvedBy"] != approval.ByCanceled {
			t.Errorf("%+v", f)
		}
		if f := admin.request("approval.cancel", map[string]any{"id": "t-1"}); f.OK {
			t.Errorf("twice: %+v", f)
		}
	})
}

// However long it is, the event of the end says what ended.
func TestEndOfALongQuestion(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		desk, agent := w.console(newIdentity(), identity.ScopeApprovals), w.connect(nil, identity.ScopeApprovals)
		agent.begin("q", "exec.approval.request", map[string]any{"command": "echo " + strings.Repeat("x", 9000), "timeoutMs": 1000, "twoPhase": true})
		agent.response("q")
		asked, over := desk.event("exec.approval.requested"), desk.event("exec.approval.resolved")
		if was, is := asked.Payload["request"].(map[string]any), over.Payload["request"]; is == nil || is.(map[string]any)["command"] != was["command"] {
			t.Errorf("the end is told without the question: %.200v", over.Payload)
		}
	})
}

// What a program says about its binding is part of the question: with another one it is another question.
func TestBindingOfACommand(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		desk, agent := w.console(newIdentity(), identity.ScopeApprovals), w.connect(nil, identity.ScopeApprovals)
		digests := map[string]bool{}
		for i, binding := range []string{"a", "b"} {
			id := "q-" + strconv.Itoa(i)
			agent.begin(id, "exec.approval.request", map[string]any{
				"id": id, "command": "make", "twoPhase": true, "binding": map[string]any{"script": binding}, "allowAlwaysPatterns": []string{"/usr/bin/make"},
			})
			if f := agent.response(id); !f.OK {
				t.Fatalf("%+v", f.Error)
			}
			digests[desk.event("approval.requested").Payload["bindingDigest"].(string)] = true
		}
		if len(digests) != 2 {
			t.Errorf("two bindings have the digests %v", digests)
		}
	})
}

func toolQuestion(id string) map[string]any {
	return map[string]any{
		"id": id, "tool": "message", "title": "message: hello", "severity": "warning", "riskClass": "needs_approval", "runtimeLevel": "normal",
		"reasons": []string{}, "preview": map[string]any{"to": "ada"}, "paramsDigest": "abcd", "twoPhase": true,
	}
}

// A question whose asker does not come back ends; one of a device that reconnects lives on.
func TestAskerLeaves(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		w.console(newIdentity(), identity.ScopeApprovals)
		gone, back := w.connect(nil, identity.ScopeApprovals), newIdentity()
		gone.begin("q", "exec.approval.request", map[string]any{"id": "gone-1", "command": "id", "twoPhase": true})
		gone.response("q")
		returns := w.connect(back, identity.ScopeApprovals)
		returns.begin("q", "exec.approval.request", map[string]any{"id": "back-1", "command": "id", "twoPhase": true})
		returns.response("q")
		gone.ws.CloseNow()
		returns.ws.CloseNow()
		time.Sleep(10 * time.Second)
		again := w.connect(back, identity.ScopeApprovals)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if n := w.approvals.Count(); n != 1 {
			t.Errorf("%d questions wait, want the one whose asker came back", n)
		}
		again.begin("w", "exec.approval.waitDecision", map[string]any{"id": "back-1"})
		again.ws.CloseNow()
		time.Sleep(askerAway + time.Second)
		synctest.Wait()
		if n := w.approvals.Count(); n != 0 {
			t.Errorf("%d questions wait after its asker left for the second time", n)
		}
	})
}

// The same holds for a question that was put before the gateway started again: its asker comes back for it, and leaves.
func TestAskerLeavesAfterARestart(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		w.console(newIdentity(), identity.ScopeApprovals)
		back := newIdentity()
		record, err := w.approvals.Submit(t.Context(), approval.Submission{ // by the server that was there before
			Kind: approval.KindExec, Details: approval.Details{Tool: "exec", Title: "exec", Command: "id"}, Binding: "b", Device: back.id(), Timeout: 10 * time.Minute,
		})
		must(t, err)
		returns := w.connect(back, identity.ScopeApprovals)
		for i := range 3 {
			returns.begin("w"+strconv.Itoa(i), "exec.approval.waitDecision", map[string]any{"id": record.ID})
		}
		synctest.Wait()
		returns.ws.CloseNow()
		time.Sleep(askerAway + time.Second)
		synctest.Wait()
		if n := w.approvals.Count(); n != 0 {
			t.Errorf("%d questions wait whose asker has gone", n)
		}
		if n := len(w.asks.open); n != 0 {
			t.Errorf("%d questions are remembered", n)
		}
	})
}

func TestFloodOfQuestions(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		w.console(newIdentity(), identity.ScopeApprovals)
		agent := w.connect(nil, identity.ScopeApprovals)
		taken := 0
		for i := range maxAsks + 1 {
			id := "q" + strconv.Itoa(i)
			agent.begin(id, "exec.approval.request", map[string]any{"command": "echo " + id, "sessionKey": id, "twoPhase": true})
			f := agent.response(id)
			if f.OK {
				taken++
			} else if f.Error.Code != codeUnavailable {
				t.Errorf("%+v", f.Error)
			}
		}
		if taken != maxAsks {
			t.Errorf("%d questions were taken", taken)
		}
	})
}

func TestAskingAboutANode(t *testing.T) {
	w := newWorld(t, byToken)
	c := w.connect(nil, identity.ScopeApprovals)
	for message, params := range map[string]map[string]any{
		"nodeId is required for host=node": {"command": "id", "host": "node"},
		"RAW_COMMAND_MISMATCH: rawCommand is not the text of the argv": {
			"command": "id", "host": "node", "nodeId": "n1",
			"systemRunPlanV2": map[string]any{"version": 2, "argv": []string{"rm", "-rf", "x"}, "rawCommand": "id"},
		},
		"commandArgv is required for host=node":                             {"command": "id", "host": "node", "nodeId": "n1"},
		`invalid exec.approval.request params: "command" must not be blank`: {"command": "  "},
	} {
		if f := c.request("exec.approval.request", params); f.OK || f.Error.Message != message {
			t.Errorf("%v: %+v", params, f.Error)
		}
	}
	if f := c.request("exec.approval.request", map[string]any{"command": "id", "requestedByConnId": "x"}); f.OK || !strings.HasPrefix(f.Error.Message, "invalid exec.approval.request params:") {
		t.Errorf("an unknown field: %+v", f.Error)
	}
}
