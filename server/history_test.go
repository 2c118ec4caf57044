package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/internal/consoletest"
)

// TestHistorySearch finds decided calls by everything that the form offers, page by page, and says what is wrong with a
// search instead of showing nothing.
func TestHistorySearch(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	for i := range 70 {
		<-w.Call("coder", "read", map[string]any{"path": fmt.Sprintf("src/file-%02d.go", i)})
	}
	<-w.Call("researcher", "read", map[string]any{"path": `notes/<b>100%_"done".md`})
	yesterday, tomorrow := time.Now().Add(-24*time.Hour).Format("2006-01-02T15:04"), time.Now().Add(24*time.Hour).Format("2006-01-02T15:04")
	for name, tt := range map[string]struct {
		query        url.Values
		want, absent string
	}{
		"text":          {url.Values{"text": {"FILE-07"}}, "src/file-07.go", "file-08"},
		"wild cards":    {url.Values{"text": {`100%_"done"`}}, "100%_", "file-0"},
		"no wild cards": {url.Values{"text": {"file%"}}, "No decision matches", "file-07"},
		"agent":         {url.Values{"agent": {"researcher"}}, "notes/", "file-0"},
		"session":       {url.Values{"session": {"agent:researcher:main"}}, "notes/", "file-0"},
		"tool":          {url.Values{"tool": {"write"}}, "No decision matches", "file-0"},
		"decision":      {url.Values{"verdict": {"deny"}}, "No decision matches", "file-0"},
		"time":          {url.Values{"within": {"1h"}}, "file-69", "<b>100"},
		"before":        {url.Values{"to": {yesterday}}, "No decision matches", "file-69"},
		"between":       {url.Values{"from": {yesterday}, "to": {tomorrow}, "text": {"file-69"}}, "file-69", "file-68"},
	} {
		resp, page := b.get(b.base + "/decisions?" + tt.query.Encode())
		if resp.StatusCode != http.StatusOK || !strings.Contains(page, tt.want) || strings.Contains(page, tt.absent) {
			t.Errorf("%s: %d, shows %t what it should, %t what it should not", name, resp.StatusCode, strings.Contains(page, tt.want), strings.Contains(page, tt.absent))
		}
	}
	for name, query := range map[string]string{
		"verdict": "verdict=maybe", "within": "within=long", "backwards": "within=-1h", "from": "from=today",
		"ends first": "from=" + tomorrow + "&to=" + yesterday, "long": "text=" + strings.Repeat("x", 300),
	} {
		if resp, page := b.get(b.base + "/decisions?" + query); resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page, `class="notice warn"`) {
			t.Errorf("a wrong %s: %d", name, resp.StatusCode)
		}
	}
	_, page := b.get(b.base + "/decisions?text=file-")
	_, older, found := strings.Cut(page, `<a class="btn" href="`)
	older, _, _ = strings.Cut(older, `"`)
	if !found || strings.Count(page, "data-entry=") != 60 {
		t.Fatalf("%d on the first page", strings.Count(page, "data-entry="))
	}
	if _, page := b.get(strings.ReplaceAll(older, "&amp;", "&")); strings.Count(page, "data-entry=") != 10 || !strings.Contains(page, "file-00") || strings.Contains(page, "notes/") {
		t.Errorf("%d on the second page", strings.Count(page, "data-entry="))
	}
}

// TestOneRecord shows a record whole: its digest, its outcome, and hostile text as text.
func TestOneRecord(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	<-w.Call("coder", "read", map[string]any{"path": "a</pre><script>alert(1)</script>\u202egpj.exe"})
	records, err := w.Audit.Query(t.Context(), audit.Filter{Type: audit.TypeDecision})
	must(t, err)
	resp, page := b.get(fmt.Sprintf("%s/record/%d", b.base, records[0].Seq))
	if resp.StatusCode != http.StatusOK || strings.Contains(page, "<script>alert") || strings.Contains(page, "\u202e") {
		t.Errorf("%d\n%s", resp.StatusCode, page)
	}
	for _, want := range []string{records[0].Hash.String(), "resultBytes", "agent:coder:main", "Allowed by policy"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"0", "x", "999999"} {
		if resp, _ := b.get(b.base + "/record/" + bad); resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusNotFound {
			t.Errorf("record %s: %d", bad, resp.StatusCode)
		}
	}
	if resp, _ := newBrowser(t, w).get(fmt.Sprintf("%s/record/%d", b.base, records[0].Seq)); resp.StatusCode == http.StatusOK {
		t.Error("a stranger reads records")
	}
}

// TestLiveLog follows the record: what was there, then each record as it comes, of one type if one is asked for.
func TestLiveLog(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	<-w.Call("coder", "read", map[string]any{"path": "one.go"})
	if _, page := b.get(b.base + "/log"); !strings.Contains(page, "one.go — Allowed by policy") || !strings.Contains(page, ">outcome<") {
		t.Errorf("the page lacks what was recorded")
	}
	if resp, _ := b.get(b.base + "/log?type=nonsense"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a wrong type: %d", resp.StatusCode)
	}
	all, decisions := openStream(t, b.http, w.URL+b.base+"/log/events"), openStream(t, b.http, w.URL+b.base+"/log/events?type=decision")
	var lines struct {
		HTML   []string
		Missed int
	}
	for _, s := range []*stream{all, decisions} {
		if s.next("lines", &lines); !strings.Contains(strings.Join(lines.HTML, ""), "one.go") {
			t.Errorf("first %q", lines.HTML)
		}
	}
	<-w.Call("coder", "read", map[string]any{"path": "<i>two.go"})
	if decisions.next("lines", &lines); len(lines.HTML) != 1 || !strings.Contains(lines.HTML[0], "&lt;i&gt;two.go") {
		t.Errorf("then %q", lines.HTML)
	}
	for range 200 {
		<-w.Call("coder", "read", map[string]any{"path": "flood.go"})
	}
	shown, missed := 0, 0
	for shown+missed < 200 { // what comes faster than anybody reads is counted
		decisions.next("lines", &lines)
		shown, missed = shown+len(lines.HTML), missed+lines.Missed
		if len(lines.HTML) > 50 {
			t.Fatalf("%d lines at once", len(lines.HTML))
		}
	}
}
