package mcp

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/toolward/toolward"
)

func TestSessionKey(t *testing.T) {
	now := time.Date(2026, 11, 21, 23, 30, 0, 0, time.FixedZone("", -3600)) // the 22nd in UTC
	cases := []struct {
		name, client string
		id           Identity
		want         toolward.SessionKey
	}{
		{"client session", "abc", Identity{Agent: "coder", TokenID: "t1"}, "agent:coder:mcp:t1:abc"},
		{"day", "", Identity{Agent: "coder", TokenID: "t1"}, "agent:coder:mcp:t1:2026-11-22"},
		{"stream", "", Identity{Agent: "coder", TokenID: "local", stream: "s"}, "agent:coder:mcp:local:s"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.id.session(c.client, now)
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
			if !c.id.owns(got) {
				t.Error("the identity does not own its own session")
			}
		})
	}
}

func TestIdentityOwnsOnlyItsSessions(t *testing.T) {
	id := Identity{Agent: "coder", TokenID: "t1"}
	for _, foreign := range []toolward.SessionKey{
		"", "agent:coder:main", "agent:coder:mcp:t10:x", "agent:coder:mcp:t2:x", "agent:other:mcp:t1:x", "xagent:coder:mcp:t1:x",
	} {
		if id.owns(foreign) {
			t.Errorf("owns %q", foreign)
		}
	}
}

func TestIdentityCheck(t *testing.T) {
	for name, id := range map[string]Identity{
		"empty":           {},
		"no token":        {Agent: "coder"},
		"no agent":        {TokenID: "t1"},
		"upper case":      {Agent: "Coder", TokenID: "t1"},
		"colon in token":  {Agent: "coder", TokenID: "t1:x"},
		"newline in name": {Agent: "coder", TokenID: "t\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if id.check() == nil {
				t.Error("is taken")
			}
			w := newWorld(t)
			if err := w.server.ServeConn(t.Context(), nopStream{}, id); err == nil {
				t.Error("is served")
			}
		})
	}
}

type nopStream struct{}

func (nopStream) Read([]byte) (int, error)    { return 0, errNoIdentity }
func (nopStream) Write(p []byte) (int, error) { return len(p), nil }
func (nopStream) Close() error                { return nil }

func TestRunEndsWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs{idle: 30 * time.Minute}
		first := r.current("s", time.Now())
		for range 10 {
			time.Sleep(29 * time.Minute)
			if r.current("s", time.Now()) != first {
				t.Fatal("a busy run ended")
			}
		}
		if r.current("other", time.Now()) == first {
			t.Error("two sessions share a run")
		}
		time.Sleep(30*time.Minute + time.Millisecond)
		if r.current("s", time.Now()) == first {
			t.Error("an idle run goes on")
		}
	})
}

func TestRunsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs{idle: 30 * time.Minute}
		latest := ""
		for i := range maxRuns + 100 {
			latest = r.current(toolward.SessionKey(strings.Repeat("s", 1+i%7)+time.Duration(i).String()), time.Now())
			time.Sleep(time.Millisecond)
		}
		if n := len(r.last); n != maxRuns {
			t.Errorf("%d runs remembered, want %d", n, maxRuns)
		}
		i := maxRuns + 99
		if r.current(toolward.SessionKey(strings.Repeat("s", 1+i%7)+time.Duration(i).String()), time.Now()) != latest {
			t.Error("the newest run was forgotten")
		}
	})
}

func TestCallsInFlight(t *testing.T) {
	c := calls{limit: 2}
	for i, want := range []struct {
		key  string
		room bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}} {
		if got := c.enter(want.key); got != want.room {
			t.Errorf("call %d, of %s: room %v", i, want.key, got)
		}
	}
	c.leave("a")
	if !c.enter("a") {
		t.Error("a place that became free is not given")
	}
	c.leave("a")
	c.leave("a")
	c.leave("b")
	if len(c.count) != 0 {
		t.Errorf("left behind: %v", c.count)
	}
}

func TestTruncate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, limit := rapid.String().Draw(t, "text"), rapid.IntRange(8, 64).Draw(t, "limit")
		got := truncate(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || (len(text) <= limit) != (got == text) {
			t.Fatalf("truncate(%q, %d) = %q", text, limit, got)
		}
	})
}

func TestClientName(t *testing.T) {
	got := clientName(&sdk.Implementation{Name: "a\xff" + strings.Repeat("ü", 200), Version: "1"})
	if len(got) > 100 || !utf8.ValidString(got) || !strings.HasPrefix(got, "a\uFFFDü") {
		t.Errorf("got %q", got)
	}
	if clientName(nil) != "" {
		t.Error("no client has a name")
	}
}

// A state that is changed in any way opens nothing; one that is not opens what was sealed.
func TestStateProperties(t *testing.T) {
	s := sealer{key: []byte(strings.Repeat("k", 32))}
	id := Identity{Agent: "coder", TokenID: "t1"}
	now := time.UnixMilli(1_000_000)
	rapid.Check(t, func(t *rapid.T) {
		w := waiting{
			Approval: rapid.StringMatching(`[a-z0-9]{1,20}`).Draw(t, "approval"), Tool: rapid.String().Draw(t, "tool"),
			Digest: rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "digest"), Principal: id.principal(),
			Session: "agent:coder:mcp:t1:x", Revision: "r", ExpiresAt: now.UnixMilli() + 1,
		}
		state, err := s.seal(w)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.open(state)
		if err != nil || got.Approval != w.Approval || got.Digest != w.Digest {
			t.Fatalf("opened %+v, %v", got, err)
		}
		if err := w.covers(id, w.Tool, w.Digest, "r", now); err != nil {
			t.Fatalf("covers: %v", err)
		}
		changed := []byte(state)
		at := rapid.IntRange(0, len(changed)-1).Draw(t, "at")
		to := rapid.Byte().Draw(t, "to")
		if changed[at] == to {
			return
		}
		changed[at] = to
		if got, err := s.open(string(changed)); err == nil {
			t.Fatalf("a changed state opened %+v", got)
		}
	})
}

func TestStateCovers(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	id := Identity{Agent: "coder", TokenID: "t1"}
	good := waiting{
		Approval: "a", Tool: "act", Digest: "d", Principal: "coder:t1", Session: "agent:coder:mcp:t1:x", Revision: "r", ExpiresAt: now.UnixMilli() + 1,
	}
	cases := []struct {
		name   string
		change func(*waiting)
		want   error
	}{
		{"as sealed", func(*waiting) {}, nil},
		{"the very deadline", func(w *waiting) { w.ExpiresAt = now.UnixMilli() }, errStateStale},
		{"other token", func(w *waiting) { w.Principal = "coder:t2" }, errStateForeign},
		{"other agent", func(w *waiting) { w.Principal = "other:t1" }, errStateForeign},
		{"foreign session", func(w *waiting) { w.Session = "agent:coder:mcp:t2:x" }, errStateForeign},
		{"other tool", func(w *waiting) { w.Tool = "echo" }, errStateChanged},
		{"other arguments", func(w *waiting) { w.Digest = "e" }, errStateChanged},
		{"other policy", func(w *waiting) { w.Revision = "s" }, errStatePolicy},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := good
			c.change(&w)
			if err := w.covers(id, "act", "d", "r", now); err != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	none := good
	none.Tool, none.Digest = "", ""
	if none.covers(id, "", "", "r", now) == nil {
		t.Error("a call that could not run is covered")
	}
}
