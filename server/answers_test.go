package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/server/api"
)

// seen finds the stamp of a call on a page.
func seen(t *testing.T, body, id string) string {
	t.Helper()
	_, card, found := strings.Cut(body, `id="a-`+id+`"`)
	m := regexp.MustCompile(`name="seen" value="([^"]*)"`).FindStringSubmatch(card)
	if !found || m == nil {
		t.Fatalf("no card of %s with a stamp on the page:\n%s", id, body)
	}
	return html.UnescapeString(m[1])
}

// answer posts until half a second has passed; it fails if an answer counts earlier.
func (b *browser) answer(id string, form url.Values, shownAt time.Time) *http.Response {
	b.t.Helper()
	for {
		resp, body := b.post(b.base+"/approvals/"+id, form)
		early := time.Since(shownAt) < 490*time.Millisecond
		switch {
		case resp.StatusCode == http.StatusTooEarly:
			if time.Since(shownAt) > 5*time.Second {
				b.t.Fatalf("still too early:\n%s", body)
			}
		case early && resp.StatusCode == http.StatusSeeOther:
			b.t.Fatalf("an answer counted %s after the call was shown", time.Since(shownAt))
		default:
			return resp
		}
	}
}

func TestAnswerByForm(t *testing.T) {
	for _, tt := range []struct {
		decision string
		form     url.Values
		ran      bool
	}{
		{"deny", url.Values{"decision": {"deny"}, "reason": {"use the package manager"}}, false},
		{"allow-once", url.Values{"decision": {"allow-once"}, "reason": {"typed, then allowed"}}, true},
		{"allow-always", url.Values{"decision": {"allow-always 1"}}, true},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			w := consoletest.New(t, consoletest.Options{})
			b := signedIn(t, w)
			call := w.Call("coder", "exec", map[string]any{"command": "make release"})
			id := w.AwaitPending(1)[0].ID
			shown := time.Now()
			_, page := b.get(b.base + "/")
			tt.form.Set("seen", seen(t, page, id))
			if resp := b.answer(id, tt.form, shown); resp.StatusCode != http.StatusSeeOther {
				t.Fatalf("answer: %d", resp.StatusCode)
			}
			result := <-call
			if result.Ran != tt.ran {
				t.Errorf("ran %v (%v), want %v", result.Ran, result.Err, tt.ran)
			}
			var refusal *toolward.Refusal
			if !tt.ran && (!errors.As(result.Err, &refusal) || refusal.Detail != "use the package manager") {
				t.Errorf("the model is told %v", result.Err)
			}
			grants := w.Approvals.Grants()
			if (len(grants) == 1) != (tt.decision == "allow-always") {
				t.Errorf("grants: %+v", grants)
			}
			if len(grants) == 1 && grants[0].Scope != approval.ScopeAgent {
				t.Errorf("the second proposal was shown and chosen, but %+v was saved", grants[0])
			}
			if resp, _ := b.post(b.base+"/approvals/"+id, tt.form); resp.StatusCode != http.StatusConflict {
				t.Errorf("a second answer: %d", resp.StatusCode)
			}
			for _, g := range grants {
				if resp, _ := b.post(b.base+"/grants/"+g.ID+"/revoke", nil); resp.StatusCode != http.StatusSeeOther || len(w.Approvals.Grants()) != 0 {
					t.Errorf("revoking: %d, %d grants left", resp.StatusCode, len(w.Approvals.Grants()))
				}
				records, err := w.Audit.Query(t.Context(), audit.Filter{Type: audit.TypeGrant, Text: g.ID})
				if err != nil || len(records) != 1 || !strings.Contains(records[0].JSON, `"by":"owner (console)"`) {
					t.Errorf("the record of the revocation: %v, %v", records, err)
				}
			}
			if _, page := b.get(b.base + "/"); !strings.Contains(page, "owner (console)") {
				t.Errorf("recent decisions do not name who answered:\n%s", page)
			}
		})
	}
}

// TestAlwaysForLess keeps an "always" for fewer calls and less time than was proposed, and finds all of that on the page.
func TestAlwaysForLess(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	call := w.Call("coder", "write", map[string]any{"path": "docs/a.md", "content": "# A"})
	id := w.AwaitPending(1)[0].ID
	shown := time.Now()
	_, page := b.get(b.base + "/")
	for _, field := range []string{`name="minutes"`, `name="uses"`} {
		if !strings.Contains(page, field) {
			t.Errorf("the card has no %s", field)
		}
	}
	form := url.Values{"decision": {"allow-always 0"}, "minutes": {" 10 "}, "uses": {"2"}, "seen": {seen(t, page, id)}}
	if resp := b.answer(id, form, shown); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("answer: %d", resp.StatusCode)
	}
	<-call
	grants := w.Approvals.Grants()
	if len(grants) != 1 || grants[0].MaxUses != 2 || grants[0].ExpiresMs-grants[0].CreatedMs != (10*time.Minute).Milliseconds() {
		t.Fatalf("saved: %+v", grants)
	}
	grantsPage := func() string {
		_, page := b.get(b.base + "/grants")
		return page
	}
	for _, want := range []string{"for 2 more calls at most", ">2 of 2<", "never", ">write<", ">coder<", ">" + grants[0].Match.Prefix + "<", "by owner (console)"} {
		if page := grantsPage(); !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	for left := 1; left >= 0; left-- {
		if result := <-w.Call("coder", "write", map[string]any{"path": fmt.Sprintf("docs/%d.md", left), "content": "x"}); !result.Ran {
			t.Fatalf("a call that was allowed before: %v", result.Err)
		}
		if page := grantsPage(); left > 0 && (!strings.Contains(page, ">1 of 2<") || !strings.Contains(page, "1 ×<span class=\"last\">last ")) {
			t.Errorf("after one use:\n%s", page)
		}
	}
	w.Call("coder", "write", map[string]any{"path": "docs/more.md", "content": "x"})
	w.AwaitPending(1) // it is used up
}

func TestAnswersThatDoNotCount(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b, other := signedIn(t, w), signedIn(t, w)
	w.Call("coder", "exec", map[string]any{"command": "first"})
	first := w.AwaitPending(1)[0].ID
	w.Call("coder", "exec", map[string]any{"command": "second"})
	list := w.AwaitPending(2)
	second := list[0].ID
	if second == first {
		second = list[1].ID
	}
	_, page := b.get(b.base + "/")
	stamp, foreign := seen(t, page, first), seen(t, page, second)
	// A stamp that is old enough, so that only what is wrong with each answer refuses it.
	for shown := time.Now(); time.Since(shown) < 600*time.Millisecond; {
		b.get("/healthz")
	}
	for name, tt := range map[string]struct {
		who    *browser
		form   url.Values
		status int
	}{
		"no stamp":                   {b, url.Values{"decision": {"allow-once"}}, 412},
		"forged stamp":               {b, url.Values{"decision": {"allow-once"}, "seen": {"AAAAAAAAAAAAAAAA"}}, 412},
		"stamp of another call":      {b, url.Values{"decision": {"allow-once"}, "seen": {foreign}}, 412},
		"stamp of another's screen":  {other, url.Values{"decision": {"allow-once"}, "seen": {stamp}}, 412},
		"no decision":                {b, url.Values{"seen": {stamp}}, 400},
		"a near miss":                {b, url.Values{"decision": {"allow"}, "seen": {stamp}}, 400},
		"always without a proposal":  {b, url.Values{"decision": {"allow-always"}, "seen": {stamp}}, 400},
		"always, unknown proposal":   {b, url.Values{"decision": {"allow-always 9"}, "seen": {stamp}}, 422},
		"always, negative":           {b, url.Values{"decision": {"allow-always -1"}, "seen": {stamp}}, 422},
		"always, for no time":        {b, url.Values{"decision": {"allow-always 0"}, "minutes": {"0"}, "seen": {stamp}}, 400},
		"always, for half a minute":  {b, url.Values{"decision": {"allow-always 0"}, "minutes": {"0.5"}, "seen": {stamp}}, 400},
		"always, for too long":       {b, url.Values{"decision": {"allow-always 0"}, "minutes": {"999999"}, "seen": {stamp}}, 422},
		"always, for too many calls": {b, url.Values{"decision": {"allow-always 0"}, "uses": {"9999999"}, "seen": {stamp}}, 422},
		"always, for words":          {b, url.Values{"decision": {"allow-always 0"}, "uses": {"some"}, "seen": {stamp}}, 400},
		"reason that is too long":    {b, url.Values{"decision": {"deny"}, "reason": {strings.Repeat("a", 501)}, "seen": {stamp}}, 400},
		"reason with control chars":  {b, url.Values{"decision": {"deny"}, "reason": {"a\x1b[2Jb"}, "seen": {stamp}}, 400},
		"an unknown call":            {b, url.Values{"decision": {"deny"}, "seen": {stamp}, "id": {"x"}}, 404},
		"a stranger without session": {newBrowser(t, w), url.Values{"decision": {"allow-once"}, "seen": {stamp}}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			id := first
			if tt.form.Get("id") != "" {
				id = "no-such-approval"
			}
			base := tt.who.base
			if base == "" {
				base = b.base
			}
			resp, body := tt.who.do("POST", base+"/approvals/"+id, strings.NewReader(tt.form.Encode()), map[string]string{
				"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json",
			})
			if resp.StatusCode != tt.status {
				t.Errorf("status %d, want %d\n%s", resp.StatusCode, tt.status, body)
			}
			w.AwaitPending(2)
		})
	}
	t.Run("from another web page", func(t *testing.T) {
		form := url.Values{"decision": {"allow-once"}, "seen": {stamp}}
		resp, _ := b.do("POST", b.base+"/approvals/"+first, strings.NewReader(form.Encode()), map[string]string{
			"Content-Type": "application/x-www-form-urlencoded", "Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site",
		})
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("status %d", resp.StatusCode)
		}
		w.AwaitPending(2)
	})
}

// TestTwoApproversAtOnce lets many browsers answer one call in the same moment: one wins, all others are told what
// became of it, and what ran is what the winner said.
func TestTwoApproversAtOnce(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	const approvers = 6
	call := w.Call("coder", "exec", map[string]any{"command": "make"})
	id := w.AwaitPending(1)[0].ID
	browsers := make([]*browser, approvers)
	forms := make([]url.Values, approvers)
	shown := time.Now()
	for i := range browsers {
		browsers[i] = signedIn(t, w)
		shown = time.Now()
		_, page := browsers[i].get(browsers[i].base + "/")
		forms[i] = url.Values{"seen": {seen(t, page, id)}, "decision": {[]string{"deny", "allow-once"}[i%2]}}
	}
	for time.Since(shown) < 600*time.Millisecond {
		browsers[0].get("/healthz")
	}
	type end struct {
		status int
		said   struct{ Said, Outcome string }
	}
	ends := make([]end, approvers)
	var wg sync.WaitGroup
	for i, b := range browsers {
		wg.Go(func() {
			resp, body := b.do("POST", b.base+"/approvals/"+id, strings.NewReader(forms[i].Encode()), map[string]string{
				"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json",
			})
			ends[i].status = resp.StatusCode
			if err := json.Unmarshal([]byte(body), &ends[i].said); err != nil {
				t.Errorf("answer %d: %v\n%s", i, err, body)
			}
		})
	}
	wg.Wait()
	winner := -1
	for i, e := range ends {
		switch e.status {
		case http.StatusOK:
			if winner >= 0 {
				t.Errorf("both %d and %d won", winner, i)
			}
			winner = i
		case http.StatusConflict:
			if !strings.HasPrefix(e.said.Said, "Already decided.") || e.said.Outcome == "" {
				t.Errorf("a loser is told %+v", e.said)
			}
		default:
			t.Errorf("answer %d: status %d", i, e.status)
		}
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	if result := <-call; result.Ran != (winner%2 == 1) {
		t.Errorf("ran %v, but approver %d won", result.Ran, winner)
	}
}

func TestAnswerThroughTheAPI(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	wire := &apiClient{t: t, http: w.SocketClient(), base: "http://toolward"}
	wire.want(200, "POST", "/v1/login", api.Passphrase{Passphrase: consoletest.Passphrase}, nil)
	call := w.Call("coder", "exec", map[string]any{"command": "make"})
	w.AwaitPending(1)
	var list api.Approvals
	wire.want(200, "GET", "/v1/approvals", nil, &list)
	if len(list.Approvals) != 1 || list.Approvals[0].Seen == "" || list.Approvals[0].Request.Command != "make" {
		t.Fatalf("approvals: %+v", list)
	}
	a := list.Approvals[0]
	wire.want(http.StatusTooEarly, "POST", "/v1/approvals/"+a.ID, api.Answer{Decision: "allow-once", Seen: a.Seen}, nil)
	wire.want(400, "POST", "/v1/approvals/"+a.ID, api.Answer{Decision: "yes"}, nil)
	wire.want(400, "POST", "/v1/approvals/"+a.ID, map[string]string{"decision": "deny", "surprise": "x"}, nil)
	for created := time.UnixMilli(a.CreatedMs); time.Since(created) < 600*time.Millisecond; {
		wire.want(200, "GET", "/v1/status", nil, nil)
	}
	// A person who typed the short id in a terminal needs no stamp.
	var done api.Approval
	wire.want(200, "POST", "/v1/approvals/"+a.Slug, api.Answer{Decision: "deny", Reason: "not now"}, &done)
	if done.Decision != toolward.DenyCall || done.Said != "Denied by owner (terminal): not now" {
		t.Errorf("answer: %+v", done)
	}
	if result := <-call; result.Ran {
		t.Error("a denied call ran")
	}
	wire.want(409, "POST", "/v1/approvals/"+a.ID, api.Answer{Decision: "allow-once"}, nil)
	wire.want(404, "POST", "/v1/approvals/ffffffff", api.Answer{Decision: "allow-once"}, nil)
}
