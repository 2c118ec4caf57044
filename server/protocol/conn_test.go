package protocol

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward/identity"
)

// bubble runs a test with a clock of its own.
func bubble(t *testing.T, config Config, run func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, config)
		run(t, w)
	})
}

func TestHelloTellsWhatIsThere(t *testing.T) {
	w := newWorld(t, byToken)
	_, f := w.tryConnect(visit{}, nil, identity.ScopeRead)
	features := f.Payload["features"].(map[string]any)
	methods := features["methods"].([]any)
	if len(methods) != len(methodTable()) || len(features["events"].([]any)) != len(eventTable) {
		t.Errorf("features: %v", features)
	}
	limits := f.Payload["policy"].(map[string]any)
	if limits["maxPayload"] != 26214400.0 || limits["maxBufferedBytes"] != 52428800.0 || limits["tickIntervalMs"] != 30000.0 {
		t.Errorf("policy: %v", limits)
	}
	snapshot := f.Payload["snapshot"].(map[string]any)
	if snapshot["stateDir"] != nil || snapshot["configPath"] != nil {
		t.Error("paths are told to somebody who is no admin")
	}
	if auth := f.Payload["auth"].(map[string]any); auth["deviceToken"] != nil || auth["role"] != "operator" {
		t.Errorf("auth: %v", auth)
	}
	// Every method that is offered is there, and asks for parameters of its own shape.
	c := w.connect(nil, identity.ScopeAdmin)
	for _, m := range methods {
		f := c.request(m.(string), map[string]any{"no such field": 1})
		if f.OK || strings.HasPrefix(f.Error.Message, "unknown method") {
			t.Errorf("%s: %+v", m, f.Error)
		}
	}
}

func TestVersionsDiffer(t *testing.T) {
	w := newWorld(t, byToken)
	connect := func(version int) (*client, frame) {
		c := w.dial(visit{})
		c.begin("1", "connect", hello(func(p map[string]any) {
			p["minProtocol"], p["maxProtocol"], p["auth"] = version, version, map[string]any{"token": secret}
		}))
		return c, c.response("1")
	}
	c, f := connect(3)
	if f.Payload["auth"] != nil {
		t.Errorf("version 3 is told its scopes without a device token: %v", f.Payload["auth"])
	}
	if f := c.request("status", nil); f.Error.Code != codeInvalid || f.Error.Message != "missing scope: operator.read" {
		t.Errorf("version 3: %+v", f.Error)
	}
	c, f = connect(4)
	if f.Payload["auth"] == nil {
		t.Error("version 4 is not told its scopes")
	}
	f = c.request("status", nil)
	if f.Error.Code != codeForbidden || f.Error.Message != "missing scope: operator.read" || f.Error.Details["missingScope"] != "operator.read" {
		t.Errorf("version 4: %+v", f.Error)
	}
}

// A client that says nothing is let go of after ten seconds; one that connected gets a tick every thirty.
func TestRhythms(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		idle := w.dial(visit{})
		began := time.Now()
		if code, _ := idle.closed(); code == closePolicy || time.Since(began) != handshakeTime {
			t.Errorf("closed with %d after %s", code, time.Since(began))
		}
		c := w.connect(nil)
		for range 3 {
			f := c.event("tick")
			if f.Payload["ts"] != float64(time.Now().UnixMilli()) || f.Seq == 0 {
				t.Errorf("tick: %+v", f)
			}
		}
		if got := time.Since(began); got != 3*tickEvery {
			t.Errorf("three ticks after %s", got)
		}
	})
}

// A client that does not answer pings is gone.
func TestSilentClient(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		w.tryConnect(visit{lazy: true}, nil)
		began := time.Now()
		time.Sleep(pingEvery + pongPatience + 20*time.Second)
		synctest.Wait()
		if n := len(w.connected()); n != 0 {
			t.Errorf("after %s %d connections are left", time.Since(began), n)
		}
	})
}

// Numbers are a connection's own: what is not meant for it uses up none, what it missed does.
func TestSequences(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		reader, approver := w.connect(nil, identity.ScopePairing), w.connect(nil)
		w.broadcast("device.pair.resolved", map[string]any{"n": 1}, nil)
		w.broadcast("device.pair.resolved", map[string]any{"n": 2}, nil)
		if a, b := reader.read(), reader.read(); a.Seq != 1 || b.Seq != 2 || b.Payload["n"] != 2.0 {
			t.Errorf("%+v %+v", a, b)
		}
		if a, b := approver.read(), approver.read(); a.Event != "presence" || a.Seq != 1 || b.Event != "tick" || b.Seq != 2 {
			t.Errorf("it sees a gap that is none: %+v %+v", a, b)
		}
	})
}

// A client that reads nothing loses what it may miss, and is closed at what it must not. Others notice nothing, and
// nothing is kept for it.
func TestSlowConsumer(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		w.tryConnect(visit{lazy: true}, nil, identity.ScopePairing)
		quick := w.connect(nil, identity.ScopePairing)
		block := strings.Repeat("x", 1<<20)
		got := make(chan frame, 1000)
		go func() {
			for {
				f, err := quick.next()
				if err != nil {
					return
				}
				got <- f
			}
		}()
		for range 60 {
			w.broadcast("device.pair.resolved", map[string]any{"block": block}, nil)
			synctest.Wait()
		}
		if n := len(got); n != 60 {
			t.Errorf("the quick one got %d events of 60", n)
		}
		for _, c := range w.connected() {
			c.queue.mu.Lock()
			if c.queue.buffered > maxBuffered+2<<20 || c.queue.seq != 60 {
				t.Errorf("%d bytes wait, number %d", c.queue.buffered, c.queue.seq)
			}
			c.queue.mu.Unlock()
		}
		w.broadcast("shutdown", map[string]any{"reason": "test"}, nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(w.connected()); n != 1 {
			t.Errorf("%d connections are left, want the quick one", n)
		}
	})
}

func TestShutdownIsTold(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		c := w.connect(nil)
		unsaid := w.dial(visit{})
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			done <- w.Close(ctx)
		}()
		if f := c.event("shutdown"); f.Payload["reason"] != "service restart" {
			t.Errorf("%+v", f)
		}
		if code, reason := c.closed(); code != closeRestart || reason != "service restart" {
			t.Errorf("closed with %d %q", code, reason)
		}
		if code, _ := unsaid.closed(); code == closeNormal {
			t.Error("a connection that never said connect was closed as if it had been served")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWrongRoleIsCutOff(t *testing.T) {
	w := newWorld(t, byToken)
	c := w.connect(nil, identity.ScopeAdmin)
	for range maxWrongRole {
		if f := c.request("node.event", nil); f.Error == nil || f.Error.Message != "unauthorized role: operator" {
			t.Fatalf("%+v", f)
		}
	}
	c.begin("last", "node.event", nil)
	if code, _ := c.closed(); code != closePolicy {
		t.Errorf("closed with %d", code)
	}
}

func TestFramesThatAreRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"not an object": `[]`, "two values": `{"type":"req","id":"1","method":"health"} {}`, "a name twice": `{"type":"req","id":"1","id":"2","method":"health"}`,
		"other letters": `{"Type":"req","id":"1","method":"health"}`, "event": `{"type":"event","id":"1","method":"health"}`,
		"long trace": `{"type":"req","id":"1","method":"health","traceparent":"` + strings.Repeat("x", 129) + `"}`,
		"no UTF-8":   "{\"type\":\"req\",\"id\":\"\xff\",\"method\":\"health\"}",
	} {
		if _, err := readRequest([]byte(raw)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	w := newWorld(t, byToken)
	c := w.connect(nil)
	must(t, c.ws.Write(t.Context(), websocket.MessageBinary, []byte(`{}`)))
	if code, _ := c.closed(); code != closePolicy {
		t.Errorf("a binary frame: closed with %d", code)
	}
	c = w.connect(nil)
	if f := c.request("connect", hello()); f.Error == nil || f.Error.Code != codeInvalid {
		t.Errorf("connect twice: %+v", f)
	}
	go c.ws.Write(t.Context(), websocket.MessageText, []byte(strings.Repeat(" ", maxFrame+1)))
	if code, _ := c.closed(); code != closeTooBig {
		t.Errorf("a frame over 25 MiB: closed with %d", code)
	}
}

func TestIdempotency(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		c := w.connect(nil, identity.ScopeWrite)
		invoke := func(args map[string]any) frame {
			return c.request("tools.invoke", map[string]any{"name": "sessions_list", "args": args, "idempotencyKey": "k1"})
		}
		first, second := invoke(map[string]any{}), invoke(map[string]any{})
		if !first.OK || first.Payload["ok"] != true || second.Payload["ok"] != true || w.ran.Load() != 1 {
			t.Errorf("%+v %+v, ran %d times", first, second, w.ran.Load())
		}
		if f := invoke(map[string]any{"path": "x"}); f.Error == nil || f.Error.Code != codeInvalid {
			t.Errorf("another call with the same key: %+v", f)
		}
		time.Sleep(keepAnswers)
		if f := invoke(map[string]any{}); f.Payload["ok"] != true || w.ran.Load() != 2 {
			t.Errorf("after five minutes: %+v, ran %d times", f, w.ran.Load())
		}
	})
}

// Repeats of a request that is still running wait for it; the oldest answers go when there are too many.
func TestRepeatsOfARunningRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRepeats()
		ran := 0
		release := make(chan struct{})
		run := func() (any, *Error) { ran++; <-release; return "done", nil }
		got := make(chan any, 3)
		for range 3 {
			go func() {
				v, _ := r.do(t.Context(), repeatKey{"d", "m", "k"}, nil, run)
				got <- v
			}()
		}
		synctest.Wait()
		close(release)
		for range 3 {
			if v := <-got; v != "done" {
				t.Errorf("%v", v)
			}
		}
		if ran != 1 {
			t.Errorf("ran %d times", ran)
		}
		for i := range maxKept + 10 {
			key, _ := json.Marshal(i)
			r.do(t.Context(), repeatKey{"d", "m", string(key)}, nil, func() (any, *Error) { return nil, nil })
		}
		if len(r.kept) > maxKept || r.kept[repeatKey{"d", "m", "k"}] != nil {
			t.Errorf("%d answers are kept", len(r.kept))
		}
	})
}
