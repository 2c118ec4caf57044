package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/consoletest"
)

// TestWhatAlwaysWouldHaveAllowed counts past calls by what a proposal covers: not those of other agents, places, tools or
// sessions, not those that ran anyway, and apart those that a person denied.
func TestWhatAlwaysWouldHaveAllowed(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	settle := func(agent, tool, path, decision string) {
		t.Helper()
		r, done := arrive(w, 0, agent, tool, map[string]any{"path": path, "content": "x"})
		shown := time.Now()
		_, page := b.get(b.base + "/")
		if resp := b.answer(r.ID, url.Values{"decision": {decision}, "seen": {seen(t, page, r.ID)}}, shown); resp.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s %s: %d", tool, path, resp.StatusCode)
		}
		<-done
	}
	settle("coder", "write", "docs/a.md", "allow-once")
	settle("coder", "write", "docs/deep/<b>.md", "deny")
	settle("coder", "write", "src/a.go", "allow-once")
	settle("coder", "edit", "docs/a.md", "allow-once")
	settle("researcher", "write", "docs/a.md", "allow-once")
	<-w.Call("coder", "read", map[string]any{"path": "docs/a.md"})

	r, done := arrive(w, 0, "coder", "write", map[string]any{"path": "docs/new.md", "content": "x"})
	if len(r.Request.Proposals) < 3 || !strings.Contains(r.Request.Proposals[0].Text, "docs") {
		t.Fatalf("proposals: %+v", r.Request.Proposals)
	}
	address := b.base + "/approvals/" + r.ID + "/past/"
	_, page := b.get(address + "0")
	for _, want := range []string{"2 calls run without a question: you allowed 1, denied 1", "calls that you denied", "docs/deep/&lt;b&gt;.md"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "src/a.go") || strings.Contains(page, "<b>.md") {
		t.Error("the page shows a call that is not covered, or text as markup")
	}
	for i, p := range r.Request.Proposals {
		if !strings.Contains(p.Text, "docs/new.md") {
			continue // the file alone: nothing was called with it before
		}
		_, body := b.do("GET", fmt.Sprint(address, i), nil, map[string]string{"Accept": "application/json"})
		var part struct{ HTML string }
		if err := json.Unmarshal([]byte(body), &part); err != nil || !strings.Contains(part.HTML, "spared no question") {
			t.Errorf("%v, %s", err, body)
		}
	}
	for _, bad := range []string{"99", "-1", "x"} {
		if resp, _ := b.get(address + bad); resp.StatusCode != http.StatusNotFound {
			t.Errorf("proposal %s: %d", bad, resp.StatusCode)
		}
	}
	w.Approvals.Close()
	<-done

	// Of an exact call only the very same is known.
	w2 := consoletest.New(t, consoletest.Options{})
	b2 := signedIn(t, w2)
	for range 2 {
		r, done := arrive(w2, 0, "coder", "exec", map[string]any{"command": "make"})
		shown := time.Now()
		_, page := b2.get(b2.base + "/")
		b2.answer(r.ID, url.Values{"decision": {"allow-once"}, "seen": {seen(t, page, r.ID)}}, shown)
		<-done
	}
	r, done = arrive(w2, 0, "coder", "exec", map[string]any{"command": "make"})
	if _, page := b2.get(b2.base + "/approvals/" + r.ID + "/past/0"); !strings.Contains(page, "2 calls run without a question: you allowed 2, denied 0") || !strings.Contains(page, "Only this very call") {
		t.Errorf("an exact call:\n%s", page)
	}
	w2.Approvals.Close()
	<-done
}
