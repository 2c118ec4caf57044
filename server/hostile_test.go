package server_test

import (
	"html"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/consoletest"
)

// TestHostileText puts text that tries to break out of the page, or to look like something else, everywhere a caller
// can write.
func TestHostileText(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	evil := "</pre><script>alert(1)</script><img src=x onerror=alert(1)> \u202egnp.exe \u200b\x1b[31m"
	w.Call("coder", "exec", map[string]any{"command": evil, "</th><b>": evil})
	w.AwaitPending(1)
	w.Call("coder", "edit", map[string]any{"path": "a\nb<script>", "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-" + evil + "\n+x\n"})
	list := w.AwaitPending(2)
	_, page := b.get(b.base + "/")
	for _, bad := range []string{"<script>alert", "<img src=x", "\u202e", "\u200b", "\x1b", "</th><b>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, good := range []string{"⟦U+202E⟧", "<script>alert(1)</script>"} {
		if !strings.Contains(html.UnescapeString(page), good) {
			t.Errorf("the page does not show %q", good)
		}
	}
	for _, r := range list {
		if resp, _ := b.get(b.base + "/approvals/" + r.ID); resp.StatusCode != 200 {
			t.Errorf("page of one call: %d", resp.StatusCode)
		}
	}
}

// TestCutCalls checks that a call of which not everything can be shown says so, and offers no "always".
func TestCutCalls(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	w.Call("coder", "mail", map[string]any{"text": strings.Repeat("long ", 10_000), "to": "ada"})
	w.AwaitPending(1)
	_, page := b.get(b.base + "/")
	for _, want := range []string{"Arguments, shortened", "longer than what is shown here", "Not all of this call is shown"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "allow-always") {
		t.Error("always is offered for a call that nobody has seen whole")
	}
}

// TestProblemsOfPages asks for what is not there.
func TestProblemsOfPages(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	for path, want := range map[string]int{
		"/approvals/unknown": 404, "/nothing": 404, "/decisions?below=x": 400, "/record/x": 400,
	} {
		resp, body := b.get(b.base + path)
		if resp.StatusCode != want || !strings.Contains(body, "Back to waiting calls") && path != "/nothing" {
			t.Errorf("%s: %d\n%s", path, resp.StatusCode, body)
		}
	}
	for _, path := range []string{"/grants/nothing/revoke", "/sign-ins/nothing/end"} {
		if resp, _ := b.post(b.base+path, nil); resp.StatusCode != 404 {
			t.Errorf("POST %s: %d", path, resp.StatusCode)
		}
	}
}
