package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/internal/consoletest"
)

func TestConfigurationWaitsForAPerson(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	w.Config.Offer(desk.ConfigChange{File: "toolward.jsonc", Revision: "r1", Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"})
	apply := func(revision string) int {
		resp, _ := b.post(b.base+"/config", url.Values{"revision": {revision}})
		return resp.StatusCode
	}
	if status := apply("r1"); status != http.StatusPreconditionFailed {
		t.Errorf("applied without having been shown: %d", status)
	}
	shown := time.Now()
	if _, page := b.get(b.base + "/"); !strings.Contains(page, "toolward.jsonc") {
		t.Fatalf("the change is not on the page:\n%s", page)
	}
	if status := apply("r1"); status != http.StatusTooEarly {
		t.Errorf("applied at once: %d", status)
	}
	w.Config.Offer(desk.ConfigChange{File: "toolward.jsonc", Revision: "r2", Diff: "another"})
	for time.Since(shown) < 600*time.Millisecond {
		b.get("/healthz")
	}
	if status := apply("r1"); status != http.StatusConflict {
		t.Errorf("a change that was replaced: %d", status)
	}
	if status := apply("r2"); status != http.StatusPreconditionFailed {
		t.Errorf("a change that was not shown: %d", status)
	}
	shown = time.Now()
	b.get(b.base + "/")
	for time.Since(shown) < 600*time.Millisecond {
		b.get("/healthz")
	}
	if status := apply("r2"); status != http.StatusSeeOther {
		t.Errorf("apply: %d", status)
	}
	if got := w.Config.Applied(); len(got) != 1 || got[0] != "r2" {
		t.Errorf("applied %q", got)
	}
	records, err := w.Audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig, Text: "r2"})
	if err != nil || len(records) != 1 || !strings.Contains(records[0].JSON, `"by":"owner (console)"`) {
		t.Errorf("the record of it: %v, %v", records, err)
	}
}
