package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

// call makes a call as a face would.
func (w *world) call(tool string, a args) toolward.Call {
	w.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		w.Fatal(err)
	}
	return toolward.Call{
		ID: tool, Tool: tool, Arguments: raw, WorkDir: w.workspace, Host: toolward.HostGateway, Surface: toolward.SurfaceMCP,
		Session: "agent:coder:test", Caller: toolward.Caller{Agent: "coder", Workspace: w.workspace},
	}
}

// TestThroughTheGateway: what a person approves runs; what is declined or was exchanged while they thought does not.
func TestThroughTheGateway(t *testing.T) {
	calls := map[string]args{
		"exec":        {"command": "touch done"},
		"write":       {"path": "dir/done", "content": "x"},
		"apply_patch": patchOf("*** Add File: dir/done", "+x"),
	}
	for tool, a := range calls {
		made := "ws/dir/done"
		if tool == "exec" {
			a["workdir"] = "dir"
		}
		t.Run(tool+" approved", func(t *testing.T) {
			w := newWorld(t)
			w.put("ws/dir/f", "")
			gate := gatetest.New(t, toolward.Ask, w.box.Tools()...)
			gate.Approver.Decision = toolward.AllowOnce
			if result, err := gate.Call(t.Context(), w.call(tool, a)); err != nil || result.IsError {
				t.Fatalf("%v %q", err, text(result))
			}
			if _, err := os.Stat(w.root + "/" + made); err != nil {
				t.Error(err)
			}
			if asked := gate.Approver.Asked(); len(asked) != 1 || (tool != "exec" && !strings.Contains(asked[0].Diff, "+x")) {
				t.Errorf("people were shown %+v", asked)
			}
		})
		t.Run(tool+" declined", func(t *testing.T) {
			w := newWorld(t)
			w.put("ws/dir/f", "")
			gate := gatetest.New(t, toolward.Ask, w.box.Tools()...)
			gate.Approver.Decision = toolward.DenyCall
			if _, err := gate.Call(t.Context(), w.call(tool, a)); err == nil {
				t.Error("it ran")
			}
			w.holds(made, "<gone>")
		})
		t.Run(tool+" target exchanged while people think", func(t *testing.T) {
			w := newWorld(t)
			w.put("ws/dir/f", "")
			gate := gatetest.New(t, toolward.Ask, w.box.Tools()...)
			gate.Approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) {
				if err := os.Rename(w.workspace+"/dir", w.workspace+"/was"); err != nil {
					t.Fatal(err)
				}
				link(t, w.outside, w.workspace+"/dir")
				return toolward.Answer{ApprovalID: "1", Decision: toolward.AllowOnce}, nil
			}
			_, err := gate.Call(t.Context(), w.call(tool, a))
			var refusal *toolward.Refusal
			if !errors.As(err, &refusal) || refusal.Code != toolward.CodeTargetChanged {
				t.Errorf("got %v", err)
			}
			w.holds("outside/done", "<gone>")
		})
	}
}

// TestExplainTouchesNothing: an explanation finds the facts of a call and leaves no trace.
func TestExplainTouchesNothing(t *testing.T) {
	w := newWorld(t)
	gate := gatetest.New(t, toolward.Ask, w.box.Tools()...)
	for tool, a := range map[string]args{
		"exec":        {"command": "touch done"},
		"write":       {"path": "a/b/done", "content": "x"},
		"apply_patch": patchOf("*** Add File: c/done", "+x"),
		"edit":        {"path": "done", "oldText": "a", "newText": "b"},
	} {
		for range 3 {
			gate.Explain(t.Context(), w.call(tool, a), toolward.ExplainOptions{})
		}
	}
	w.tidy("ws")
	if n := len(w.box.sessions.byID); n != 0 {
		t.Errorf("%d commands were started", n)
	}
}
