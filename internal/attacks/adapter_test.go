package attacks

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/bridge/hookclient"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/place"
)

// clientTimeout is how long the client of the cases waits for its hook before it runs the tool.
const clientTimeout = 30 * time.Second

// judgeAdapter: the hook in front of another agent's tools, when something is wrong with the event or the gate.
func judgeAdapter(t *testing.T, _ *attack, what fields) (outcome, error) {
	if err := what.only("client-hook-adapter", "gate-unreachable", "deadline", "stdin", "tool_name"); err != nil {
		return outcome{}, err
	}
	w := newWorld(t)
	event := map[string]any{
		"hook_event_name": "PreToolUse", "session_id": "s1", "cwd": w.at("/ws"), "tool_name": "Bash",
		"tool_input": map[string]any{"command": "touch PWNED"}, "tool_use_id": "1",
	}
	switch {
	case what.has("gate-unreachable"):
		return w.runHook(event)
	case what.has("tool_name"):
		event["tool_name"], event["tool_input"] = what.text("tool_name"), map[string]any{"x": 1}
	}
	body, err := json.Marshal(event)
	if err != nil {
		return outcome{}, err
	}
	switch {
	case what.has("stdin") && what.text("stdin") == "not json":
		body = []byte("not json")
	case what.has("stdin"):
		body = []byte(what.text("stdin"))
	case what.has("deadline") && what.text("deadline") != "client timeout minus 1s":
		return outcome{}, unsupported{"a hook whose deadline is " + what.text("deadline")}
	}
	return w.serveHook(string(body))
}

// runHook runs the hook program's own code where no gate listens.
func (w *world) runHook(event map[string]any) (o outcome, err error) {
	body, err := json.Marshal(event)
	if err != nil {
		return outcome{}, err
	}
	in, out, problems := filepath.Join(w.root, "in"), filepath.Join(w.root, "out"), filepath.Join(w.root, "err")
	var files [3]*os.File
	for i, name := range []string{in, out, problems} {
		must(w.t, os.WriteFile(name, nil, 0o600))
		if i == 0 {
			must(w.t, os.WriteFile(name, body, 0o600))
		}
		files[i], err = os.OpenFile(name, os.O_RDWR, 0)
		must(w.t, err)
		defer files[i].Close()
	}
	h := &hookclient.Hook{
		Client: bridge.ClaudeCode, Event: "PreToolUse", Home: w.at("/home/dev/.nothing"), Deadline: clientTimeout - time.Second,
		Env: func(string) string { return "" }, In: int(files[0].Fd()), Out: int(files[1].Fd()), Err: int(files[2].Fd()),
	}
	exit := 0
	w.watch.time(func() { exit = h.Run() })
	said, err := os.ReadFile(out)
	must(w.t, err)
	why, err := os.ReadFile(problems)
	must(w.t, err)
	return w.hookOutcome(hookclient.Answer{Exit: exit, Stdout: said, Stderr: why}), nil
}

// serveHook answers an event as the daemon does. While people are asked, the answer is still to come: then the question
// counts, and that the client gets a refusal before it loses patience.
func (w *world) serveHook(body string) (outcome, error) {
	layout, err := place.Layout{Home: w.at("/home/dev"), StateDir: w.stateDir, ConfigFile: filepath.Join(w.stateDir, config.FileName)}.Canonical()
	must(w.t, err)
	handler, err := bridge.NewHandler(bridge.Config{
		Gateway: w.gateway, Sessions: w.sessions, Layout: layout, Command: w.toolbox.ClientCommand, Started: w.toolbox.RecordUse,
	})
	must(w.t, err)
	request := httptest.NewRequest(http.MethodPost, "/v1/hook/"+bridge.ClaudeCode+"/PreToolUse", strings.NewReader(body))
	request.Header.Set("Toolward-Deadline-Ms", strconv.FormatInt((clientTimeout-time.Second).Milliseconds(), 10))
	recorder := httptest.NewRecorder()
	start := time.Now()
	answered := make(chan struct{})
	w.watch.time(func() {
		go func() { defer close(answered); handler.ServeHTTP(recorder, request) }()
		synctest.Wait()
	})
	waits := w.approver.Count() > 0
	<-answered
	if late := time.Since(start) >= clientTimeout; late {
		return outcome{answer: harmful, why: "the answer comes after the client has run the tool"}, nil
	}
	frame, err := io.ReadAll(recorder.Body)
	must(w.t, err)
	answer, ok := hookclient.ParseAnswer(frame)
	if !ok {
		return outcome{answer: harmful, why: fmt.Sprintf("no frame: %.200q", frame)}, nil
	}
	o := w.hookOutcome(answer)
	if waits && o.answer == denied {
		o.why += " (people were asked, and nobody answered)"
	}
	return o, nil
}

// hookOutcome reads a hook's answer as the client does: status 2 with a reason refuses, and so does a decision that
// says so; anything else lets the tool run.
func (w *world) hookOutcome(a hookclient.Answer) outcome {
	o := outcome{answer: allowed, why: strings.TrimSpace(string(a.Stdout) + string(a.Stderr)), took: w.watch.longest}
	var decision struct {
		HookSpecificOutput struct{ PermissionDecision string }
	}
	switch {
	case a.Exit == hookclient.ExitRefuse && len(a.Stderr) > 0:
		o.answer = denied
	case a.Exit == 0 && json.Unmarshal(a.Stdout, &decision) == nil && decision.HookSpecificOutput.PermissionDecision != "allow":
		if word := decision.HookSpecificOutput.PermissionDecision; word == "deny" || word == "ask" {
			o.answer = answer(word)
		}
	}
	return o
}
