package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/server/api"
)

var secretPattern = regexp.MustCompile(`<p class="secret mono">([^<]+)</p>`)

// TestTokensPage makes a token in a browser: the secret is on that one answer and works; revoking ends it.
func TestTokensPage(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	wrong := url.Values{"agent": {"Not An Agent"}, "workspace": {`/srv/<b>`}, "life": {"720h"}}
	resp, body := b.post(b.base+"/tokens", wrong)
	if resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, `value="/srv/&lt;b&gt;"`) || secretPattern.MatchString(body) {
		t.Errorf("a wrong agent: %d\n%s", resp.StatusCode, body)
	}
	resp, body = b.post(b.base+"/tokens", url.Values{"agent": {"coder"}, "workspace": {"/srv/shop"}, "name": {"<i>laptop</i>"}, "life": {"720h"}, "owner": {"yes"}})
	found := secretPattern.FindStringSubmatch(body)
	if resp.StatusCode != http.StatusOK || found == nil || strings.Contains(body, "<i>") {
		t.Fatalf("%d\n%s", resp.StatusCode, body)
	}
	token, err := w.People.Token(t.Context(), found[1])
	if err != nil || token.Agent != "coder" || !token.Owner || token.Expires.IsZero() {
		t.Errorf("%+v, %v", token, err)
	}
	if _, body := b.get(b.base + "/tokens"); strings.Contains(body, found[1]) || !strings.Contains(body, token.Prefix) {
		t.Error("the list shows the secret, or not the token")
	}
	if resp, _ := b.post(b.base+"/tokens/"+token.ID+"/revoke", nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("revoke: %d", resp.StatusCode)
	}
	if _, err := w.People.Token(t.Context(), found[1]); err == nil {
		t.Error("a revoked token works")
	}
	records, err := w.Audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig})
	if err != nil || len(records) != 2 || strings.Contains(records[1].JSON, found[1]) {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// TestPassphrasePage changes the passphrase: only with the old one, and every other sign-in ends.
func TestPassphrasePage(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b, other := signedIn(t, w), signedIn(t, w)
	const fresh = "four other random words"
	form := func(old, one, two string) url.Values {
		return url.Values{"old": {old}, "passphrase": {one}, "again": {two}}
	}
	for name, c := range map[string]struct {
		form url.Values
		want int
	}{
		"wrong":  {form("not the passphrase", fresh, fresh), http.StatusForbidden},
		"differ": {form(consoletest.Passphrase, fresh, fresh+"!"), http.StatusUnprocessableEntity},
		"short":  {form(consoletest.Passphrase, "short", "short"), http.StatusUnprocessableEntity},
	} {
		if resp, body := b.post(b.base+"/passphrase", c.form); resp.StatusCode != c.want || strings.Contains(body, fresh) {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if resp, _ := other.get(other.base + "/"); resp.StatusCode != http.StatusOK {
		t.Fatalf("a failed change ended a sign-in: %d", resp.StatusCode)
	}
	if resp, body := b.post(b.base+"/passphrase", form(consoletest.Passphrase, fresh, fresh)); resp.StatusCode != http.StatusOK || !strings.Contains(body, "is changed") {
		t.Fatalf("%d\n%s", resp.StatusCode, body)
	}
	if resp, _ := b.get(b.base + "/"); resp.StatusCode != http.StatusOK {
		t.Errorf("the one who changed it is signed out: %d", resp.StatusCode)
	}
	if resp, _ := other.get(other.base + "/"); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("another sign-in goes on: %d", resp.StatusCode)
	}
	for passphrase, want := range map[string]int{consoletest.Passphrase: http.StatusForbidden, fresh: http.StatusSeeOther} {
		if resp, _ := newBrowser(t, w).post("/sign-in", url.Values{"passphrase": {passphrase}}); resp.StatusCode != want {
			t.Errorf("sign in with %q: %d", passphrase, resp.StatusCode)
		}
	}
	wire := &apiClient{t: t, http: b.http, base: w.URL + b.base}
	wire.want(401, "POST", "/v1/passphrase", api.NewPassphrase{Old: "wrong again and again", Passphrase: fresh}, nil)
	wire.want(422, "POST", "/v1/passphrase", api.NewPassphrase{Old: fresh, Passphrase: "short"}, nil)
	wire.want(200, "POST", "/v1/passphrase", api.NewPassphrase{Old: fresh, Passphrase: consoletest.Passphrase}, nil)
}

// TestSessionPages raises and clears the level of a session whose name and sources want to be markup.
func TestSessionPages(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	key := toolward.SessionKey(`agent:coder:<script>alert(1)</script>`)
	note := func(sources ...string) {
		t.Helper()
		if err := w.Levels.Expose(t.Context(), key, toolward.Exposure{External: sources}); err != nil {
			t.Fatal(err)
		}
	}
	note("https://example.org/<img src=x>", "a\u202eb")
	one := b.base + "/sessions/one?" + url.Values{"session": {string(key)}}.Encode()
	field := func(name string) string {
		t.Helper()
		_, body := b.get(one)
		found := regexp.MustCompile(`name="` + name + `" value="([0-9a-f]+)"`).FindStringSubmatch(body)
		if found == nil {
			t.Fatalf("no field %s\n%s", name, body)
		}
		return found[1]
	}
	stamp := func() string { return field("read") }
	for _, path := range []string{"/sessions", "/anomalies?text=%3Cscript%3E", strings.TrimPrefix(one, b.base)} {
		resp, body := b.get(b.base + path)
		if resp.StatusCode != http.StatusOK || strings.Contains(body, "<script>") || strings.Contains(body, "<img") || strings.Contains(body, "\u202e") {
			t.Errorf("%s: %d\n%s", path, resp.StatusCode, body)
		}
	}
	if resp, _ := b.post(b.base+"/sessions/floor", url.Values{"session": {string(key)}, "level": {"lockdown"}}); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("set a floor: %d", resp.StatusCode)
	}
	if o, _ := w.Levels.Overview(t.Context(), key); o.Level != toolward.Lockdown || !strings.HasPrefix(o.Floor.By, "owner") {
		t.Errorf("%+v", o)
	}
	clearAll := func(read string) int {
		form := url.Values{"session": {string(key)}, "external": {"yes"}, "raised": {field("raised")}}
		if read != "" {
			form.Set("read", read)
		}
		resp, _ := b.post(b.base+"/sessions/clear", form)
		return resp.StatusCode
	}
	if got := clearAll(""); got != http.StatusUnprocessableEntity {
		t.Errorf("cleared without having read: %d", got)
	}
	read := stamp()
	note("https://example.com/came-in-meanwhile")
	if got := clearAll(read); got != http.StatusConflict {
		t.Errorf("cleared what came in while the list was read: %d", got)
	}
	if o, _ := w.Levels.Overview(t.Context(), key); !o.External || o.Floor.Level != toolward.Lockdown {
		t.Errorf("%+v", o)
	}
	shown := field("raised")
	if err := w.Levels.RaiseFloor(t.Context(), key, toolward.Lockdown, time.Hour, "alarm: denied"); err != nil {
		t.Fatal(err)
	}
	for _, raised := range []string{shown, ""} {
		resp, _ := b.post(b.base+"/sessions/clear", url.Values{"session": {string(key)}, "raised": {raised}})
		if o, _ := w.Levels.Overview(t.Context(), key); resp.StatusCode != http.StatusConflict || o.Floor.Level != toolward.Lockdown {
			t.Errorf("an alarm was cleared that the page did not show: %d", resp.StatusCode)
		}
	}
	for i := range 50 {
		note(fmt.Sprintf("https://example.com/%d", i))
	}
	if _, body := b.get(one); !strings.Contains(body, "There were more: only the latest 50 are kept.") {
		t.Error("the page does not say that the list was cut")
	}
	if got := clearAll(stamp()); got != http.StatusSeeOther {
		t.Errorf("clear: %d", got)
	}
	if o, _ := w.Levels.Overview(t.Context(), key); o.External || o.Level != toolward.Normal {
		t.Errorf("%+v", o)
	}
	for _, bad := range []string{"/sessions/one?session=coder", "/anomalies?below=x"} {
		if resp, _ := b.get(b.base + bad); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, resp.StatusCode)
		}
	}
	for _, form := range []url.Values{{"session": {"coder"}, "level": {"normal"}}, {"session": {string(key)}, "level": {"relaxed"}}} {
		if resp, _ := b.post(b.base+"/sessions/floor", form); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %d", form, resp.StatusCode)
		}
	}
}

// TestConfigurationInWords: the card lists the settings that change, escaped, above the difference.
func TestConfigurationInWords(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := signedIn(t, w)
	w.Config.Offer(desk.ConfigChange{File: "toolward.jsonc", Revision: "r1", Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n", Changes: []string{"teg.preset: strict → workspace", "agents.list[0].id: a → <b>"}})
	_, body := b.get(b.base + "/")
	settings, diff := strings.Index(body, "teg.preset: strict → workspace"), strings.Index(body, `class="diff"`)
	if settings < 0 || diff < settings || strings.Contains(body, "→ <b>") {
		t.Errorf("settings at %d, difference at %d\n%s", settings, diff, body)
	}
}
