package protocol

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/identity"
)

// Whoever is connected is told who else is, once for a crowd; where they are is told to nobody.
func TestPresence(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		desk := w.console(newIdentity(), identity.ScopeApprovals)
		desk.event("presence")
		var crowd []*client
		for range 20 {
			crowd = append(crowd, w.connect(nil))
		}
		told := desk.event("presence")
		list := told.Payload["presence"].([]any)
		if len(list) != 21 || strings.Contains(mustJSON(t, told), "127.0.0.1") {
			t.Errorf("%d are told of: %+v", len(list), told)
		}
		first, last := list[0].(map[string]any), list[20].(map[string]any)
		if first["tags"] != nil || first["deviceId"] != nil || last["deviceId"] == "" || last["tags"].([]any)[0] != "person" || last["platform"] != "linux" {
			t.Errorf("%+v, %+v", first, last)
		}
		for _, c := range crowd {
			c.ws.CloseNow()
		}
		synctest.Wait()
		if list := desk.event("presence").Payload["presence"].([]any); len(list) != 1 {
			t.Errorf("after they left: %+v", list)
		}
		for range maxPresent + 5 {
			w.connect(nil)
		}
		if list := desk.event("presence").Payload["presence"].([]any); len(list) != maxPresent {
			t.Errorf("%d are told of", len(list))
		}
		before := desk.request("health", nil) // whatever came before this answer has been read
		for _, f := range desk.kept {
			if f.Event == "presence" {
				t.Errorf("%+v is told of without need, before %+v", f, before)
			}
		}
		reader, f := w.tryConnect(visit{}, nil, identity.ScopeRead)
		if list := f.Payload["snapshot"].(map[string]any)["presence"].([]any); len(list) != maxPresent {
			t.Errorf("the greeting tells of %d", len(list))
		}
		if f := reader.request("system-presence", nil); len(f.list) != maxPresent {
			t.Errorf("%+v", f)
		}
	})
}

// Health is told when it changes, with a number of its own, and not otherwise.
func TestHealthNews(t *testing.T) {
	var trouble atomic.Pointer[string]
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, byToken, func(o *Options) {
			o.Trouble = func() string {
				if why := trouble.Load(); why != nil {
					return *why
				}
				return ""
			}
		})
		c, f := w.tryConnect(visit{}, nil)
		version := func(f map[string]any) float64 { return f["stateVersion"].(map[string]any)["health"].(float64) }
		snapshot := f.Payload["snapshot"].(map[string]any)
		if snapshot["health"].(map[string]any)["ok"] != true {
			t.Errorf("%+v", snapshot)
		}
		why := "the disk is full"
		trouble.Store(&why)
		w.HealthNews()
		w.HealthNews() // nothing new
		told := c.event("health")
		if told.Payload["ok"] != false || told.Payload["trouble"] != why {
			t.Errorf("%+v", told)
		}
		trouble.Store(nil)
		if f := c.event("health"); f.Payload["ok"] != true || f.Payload["trouble"] != nil { // with the next tick
			t.Errorf("%+v", f)
		}
		_, f = w.tryConnect(visit{}, nil)
		if again := version(f.Payload["snapshot"].(map[string]any)); again != version(snapshot)+2 {
			t.Errorf("the state has number %v, and had %v", again, version(snapshot))
		}
		if f := c.request("health", map[string]any{"probe": true}); f.Payload["ok"] != true {
			t.Errorf("%+v", f)
		}
	})
}

// What is odd is told to people. Whoever is watched is not told, whatever scopes it has.
func TestSecurityNews(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		desk := w.console(newIdentity(), identity.ScopeApprovals)
		agent := w.connect(nil, identity.ScopeAdmin)
		w.SecurityNews(Alert{Kind: "burst", Severity: toolward.Critical, Session: "agent:main:s", Tool: "exec", Detail: "40 calls within a minute"})
		f := desk.event("security")
		if f.Payload["kind"] != "burst" || f.Payload["severity"] != "critical" || f.Payload["sessionKey"] != "agent:main:s" || f.Payload["tool"] != "exec" {
			t.Errorf("%+v", f)
		}
		for i := range 12 {
			c := w.dial(visit{ip: "192.0.2.7", host: "127.0.0.1:7411"})
			c.begin("c", "connect", hello(func(p map[string]any) { p["auth"] = map[string]any{"token": "guess" + strconv.Itoa(i)} }))
			if f := c.response("c"); f.OK {
				t.Fatal("a guess was right")
			}
		}
		f = desk.event("security")
		if f.Payload["kind"] != "auth-lockout" || !strings.Contains(f.Payload["detail"].(string), "192.0.2.7") || strings.Contains(mustJSON(t, f), "guess") {
			t.Errorf("%+v", f)
		}
		desk.request("health", nil)
		agent.request("health", nil)
		for who, c := range map[string]*client{"the desk": desk, "the agent": agent} {
			for _, f := range c.kept {
				if f.Event == "security" {
					t.Errorf("%s is told %+v", who, f)
				}
			}
		}
	})
}

// tellPresence and the rest end with the server.
func TestNewsEnds(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		w.connect(nil)
		time.Sleep(presenceRhythm / 2) // in the middle of waiting for a crowd
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
