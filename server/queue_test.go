package server_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/internal/consoletest"
)

var cardPattern = regexp.MustCompile(`<article class="card [a-z]+" id="a-([^"]+)"`)

// cardsOn lists the calls on a page, from top to bottom.
func cardsOn(page string) (ids []string) {
	for _, m := range cardPattern.FindAllStringSubmatch(page, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// arrive makes a call and returns its approval.
func arrive(w *consoletest.World, n int, agent, tool string, arguments map[string]any) (*approval.Record, <-chan consoletest.Result) {
	before := map[string]bool{}
	for _, r := range w.AwaitPending(n) {
		before[r.ID] = true
	}
	done := w.Call(agent, tool, arguments)
	for _, r := range w.AwaitPending(n + 1) {
		if !before[r.ID] {
			return r, done
		}
	}
	return nil, done
}

// TestQueueIsArranged shows the same calls in every order that a person can choose.
func TestQueueIsArranged(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	make1, _ := arrive(w, 0, "coder", "exec", map[string]any{"command": "make one"})
	key, _ := arrive(w, 1, "researcher", "read", map[string]any{"path": "/home/ada/.ssh/id_ed25519"})
	make2, _ := arrive(w, 2, "coder", "exec", map[string]any{"command": "make two"})
	ssh, _ := arrive(w, 3, "coder", "read", map[string]any{"path": "/home/ada/.ssh/config"})
	for query, want := range map[string]struct {
		order []*approval.Record
		heads int
	}{
		"":                          {[]*approval.Record{make1, key, make2, ssh}, 0},
		"order=risk":                {[]*approval.Record{key, ssh, make1, make2}, 0},
		"group=session":             {[]*approval.Record{make1, make2, ssh, key}, 2},
		"order=risk&group=session":  {[]*approval.Record{key, ssh, make1, make2}, 2},
		"order=bogus&group=nothing": {[]*approval.Record{make1, key, make2, ssh}, 0},
	} {
		_, page := b.get(b.base + "/?" + query)
		var ids []string
		for _, r := range want.order {
			ids = append(ids, r.ID)
		}
		if got := cardsOn(page); !slices.Equal(got, ids) {
			t.Errorf("%q shows %q, want %q", query, got, ids)
		}
		// Each card also carries the head of its session, for the script.
		if got := strings.Count(page, "data-session-head") - len(ids); got != want.heads {
			t.Errorf("%q has %d heads of sessions, want %d", query, got, want.heads)
		}
	}
}

var batchPattern = regexp.MustCompile(`name="call" value="([^"]+)"`)

// submit puts a question of a program that asks by itself, and not through a call of an agent.
func submit(t *testing.T, w *consoletest.World, command, binding string) *approval.Record {
	t.Helper()
	r, err := w.Approvals.Submit(t.Context(), approval.Submission{
		Kind: approval.KindExec, Details: approval.Details{Tool: "exec", Title: "Run: " + command, Command: command, Digest: strings.Repeat("5a", 32)},
		Binding: binding, Timeout: time.Minute, Connection: "wire",
	})
	must(t, err)
	return r
}

// The card shows the digest of everything that the answer is for, as every other surface does: two calls with the same
// arguments in two directories must not look alike.
func TestCardsShowTheDigestOfTheApproval(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	submit(t, w, "make", "0123456789abcdef")
	submit(t, w, "make", "fedcba9876543210")
	_, page := b.get(b.base + "/")
	for _, digest := range []string{"0123456789ab", "fedcba987654"} {
		if !strings.Contains(page, `Digest <span class="mono">`+digest+`</span>`) {
			t.Errorf("no card shows %s", digest)
		}
	}
}

// TestIdenticalCallsAtOnce answers all of several identical calls: each is used up on its own, and none that was not
// shown, or that is another call, is among them.
func TestIdenticalCallsAtOnce(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	var same []*approval.Record
	for range 3 {
		same = append(same, submit(t, w, "make", "b1"))
	}
	other := submit(t, w, "make", "b2") // in another place
	_, page := b.get(b.base + "/")
	shownAt := time.Now()
	var calls []string
	for _, m := range batchPattern.FindAllStringSubmatch(page, -1) {
		calls = append(calls, m[1])
	}
	if len(calls) != 3 || strings.Contains(strings.Join(calls, " "), other.ID) {
		t.Fatalf("the form answers %q", calls)
	}
	stamp := seen(t, page, other.ID)

	if resp, _ := b.post(b.base+"/approvals", url.Values{"decision": {"deny"}, "call": calls}); time.Since(shownAt) < 490*time.Millisecond &&
		!strings.Contains(resp.Header.Get("Location"), "answered=0&of=3") {
		t.Errorf("too early: %s", resp.Header.Get("Location"))
	}
	time.Sleep(time.Until(shownAt.Add(600 * time.Millisecond))) // so that nothing below is refused for being early
	for name, form := range map[string]url.Values{
		"always":          {"decision": {"allow-always 0"}, "call": calls},
		"another call":    {"decision": {"allow-once"}, "call": append([]string{other.ID + " " + stamp}, calls...)},
		"none":            {"decision": {"allow-once"}},
		"without a stamp": {"decision": {"allow-once"}, "call": {same[0].ID}},
	} {
		resp, _ := b.post(b.base+"/approvals", form)
		if resp.StatusCode == http.StatusSeeOther && !strings.Contains(resp.Header.Get("Location"), "answered=0") {
			t.Errorf("%s: %s", name, resp.Header.Get("Location"))
		}
		w.AwaitPending(4)
	}

	resp, _ := b.post(b.base+"/approvals", url.Values{"decision": {"allow-once"}, "call": calls, "arranged": {"order=risk"}})
	if where := resp.Header.Get("Location"); !strings.Contains(where, "answered=3&of=3&order=risk") {
		t.Fatalf("%d, %s", resp.StatusCode, where)
	}
	for _, r := range same {
		if d, err := w.Approvals.Wait(t.Context(), r.ID); err != nil || d != toolward.AllowOnce {
			t.Errorf("%s: %s, %v", r.ID, d, err)
		}
		if err := w.Approvals.Consume(t.Context(), r.ID, "b1"); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
		if w.Approvals.Consume(t.Context(), r.ID, "b1") == nil {
			t.Errorf("%s lets two calls run", r.ID)
		}
	}
	if _, page := b.get(resp.Header.Get("Location")); !strings.Contains(page, "3 identical calls answered.") {
		t.Error("the page does not say what was answered")
	}
	if left := w.AwaitPending(1); left[0].ID != other.ID {
		t.Errorf("%s was answered with the others", other.ID)
	}

	// One that came in meanwhile has not been shown: it keeps waiting.
	fresh := submit(t, w, "make", "b2")
	resp, body := b.do("POST", b.base+"/approvals", strings.NewReader(url.Values{
		"decision": {"deny"}, "call": {other.ID + " " + stamp, fresh.ID + " " + stamp},
	}.Encode()), map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Origin": b.w.URL, "Accept": "application/json"})
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, "Denied by owner") || !strings.Contains(body, `"error"`) {
		t.Errorf("%d\n%s", resp.StatusCode, body)
	}
	if left := w.AwaitPending(1); left[0].ID != fresh.ID {
		t.Error("a call that nobody had seen was answered")
	}
}
