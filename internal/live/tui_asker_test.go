package live_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// asker is a program that asks by itself, over the gateway protocol. Unlike an agent's calls, its identical questions each
// wait by themselves.
type asker struct{ ws *websocket.Conn }

// askTwice connects and asks about a command twice.
func askTwice(t *testing.T, url, token, command string) *asker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(url, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.CloseNow() })
	a := &asker{ws}
	a.send(t, map[string]any{"type": "req", "id": "connect", "method": "connect", "params": map[string]any{
		"minProtocol": 3, "maxProtocol": 4, "auth": map[string]any{"token": strings.TrimSpace(token)}, "role": "operator",
		"scopes": []string{"operator.read", "operator.approvals"},
		"client": map[string]any{"id": "cli", "version": "1", "platform": "linux", "mode": "cli"},
	}})
	if f := a.response(t, "connect"); !f.OK {
		t.Fatalf("connect: %s", f.Error)
	}
	for _, id := range []string{"first", "second"} {
		a.send(t, map[string]any{"type": "req", "id": id, "method": "exec.approval.request", "params": map[string]any{
			"id": id + strings.ReplaceAll(command, " ", "-"), "command": command, "cwd": "/", "agentId": "main", "timeoutMs": 120_000,
		}})
	}
	return a
}

func (a *asker) send(t *testing.T, frame map[string]any) {
	t.Helper()
	raw, err := json.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.ws.Write(t.Context(), websocket.MessageText, raw); err != nil {
		t.Fatal(err)
	}
}

// answerFrame is an answer of the gateway.
type answerFrame struct {
	Type, ID string
	OK       bool
	Payload  struct{ Decision string }
	Error    json.RawMessage
}

// response is the next answer; id is the one that it must be for, "" for any.
func (a *asker) response(t *testing.T, id string) answerFrame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, raw, err := a.ws.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var f answerFrame
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatal(err)
		}
		if f.Type == "res" && (id == "" || f.ID == id) {
			return f
		}
	}
}

// decision is what became of the next of its questions.
func (a *asker) decision(t *testing.T) string {
	t.Helper()
	f := a.response(t, "")
	if !f.OK {
		t.Fatalf("%s: %s", f.ID, f.Error)
	}
	return f.Payload.Decision
}
