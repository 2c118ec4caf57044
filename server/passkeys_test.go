package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/internal/passkeytest"
	"github.com/toolward/toolward/server/console"
	"github.com/toolward/toolward/server/door"
)

// at is a browser that shows the console under another name than the world's address.
func at(t *testing.T, w *consoletest.World, name string) *browser {
	t.Helper()
	b := newBrowser(t, w)
	b.origin = strings.Replace(w.URL, "127.0.0.1", name, 1)
	return b
}

func (b *browser) enter() {
	b.t.Helper()
	resp, body := b.post("/sign-in", url.Values{"passphrase": {consoletest.Passphrase}})
	if resp.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("sign-in: %d\n%s", resp.StatusCode, body)
	}
	b.base = strings.TrimSuffix(resp.Header.Get("Location"), "/")
}

// json posts as the console's script does.
func (b *browser) json(path string, body any, into any) (int, string) {
	b.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, text := b.do("POST", path, strings.NewReader(string(raw)), map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "Origin": b.origin, "Sec-Fetch-Site": "same-origin",
	})
	if into != nil && resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			b.t.Fatalf("%v\n%s", err, text)
		}
	}
	return resp.StatusCode, text
}

type question struct {
	Question json.RawMessage `json:"question"`
	Answer   string          `json:"answer"`
}

func (b *browser) ask(path string, body any) question {
	b.t.Helper()
	var q question
	if status, text := b.json(path, body, &q); status != http.StatusOK {
		b.t.Fatalf("%s: %d %s", path, status, text)
	}
	return q
}

func (b *browser) register(a *passkeytest.Authenticator, name string) {
	b.t.Helper()
	q := b.ask(b.base+"/passkeys/new", console.NewPasskey{Passphrase: consoletest.Passphrase})
	if status, text := b.json(b.base+"/passkeys", console.NamedPasskey{Name: name, Answer: a.Make(b.t, []byte(q.Question))}, nil); status != http.StatusOK {
		b.t.Fatalf("add: %d %s", status, text)
	}
}

// enterWith signs in with a passkey.
func (b *browser) enterWith(a *passkeytest.Authenticator) (status int, said string) {
	b.t.Helper()
	q := b.ask("/sign-in/passkey", nil)
	var in struct{ To string }
	status, said = b.json(q.Answer, console.PasskeyAnswer{Answer: a.Sign(b.t, []byte(q.Question))}, &in)
	b.base = strings.TrimSuffix(in.To, "/")
	return status, said
}

// TestPasskeys adds one at localhost, signs in with it, renames and removes it.
func TestPasskeys(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := at(t, w, "localhost")
	if _, body := b.get("/"); strings.Contains(body, "data-passkey") {
		t.Error("the door offers passkeys though there are none")
	}
	b.enter()
	a := passkeytest.New(b.origin)
	if status, _ := b.json(b.base+"/passkeys/new", console.NewPasskey{Passphrase: "wrong and wrong again"}, nil); status != http.StatusForbidden {
		t.Errorf("a wrong passphrase: %d", status)
	}
	b.register(a, `<b>laptop</b>`)
	_, body := b.get(b.base + "/passkeys")
	found := regexp.MustCompile(`/passkeys/(p-[a-z0-9]+)/remove`).FindStringSubmatch(body)
	if found == nil || strings.Contains(body, "<b>") || !strings.Contains(body, "data-add") {
		t.Fatalf("%s", body)
	}
	id := found[1]

	c := at(t, w, "localhost")
	if _, body := c.get("/"); !strings.Contains(body, "data-passkey") || !strings.Contains(body, `name="passphrase"`) {
		t.Error("the door does not offer passkeys, or no passphrase")
	}
	if status, said := c.enterWith(a); status != http.StatusOK {
		t.Fatalf("%d %s", status, said)
	}
	if resp, _ := c.get(c.base + "/"); resp.StatusCode != http.StatusOK {
		t.Fatalf("the console: %d", resp.StatusCode)
	}
	if _, body := c.get(c.base + "/sign-ins"); !strings.Contains(body, "passkey &lt;b&gt;laptop") {
		t.Error("the list does not say that a passkey opened it")
	}
	// A second one, with the first in place of the passphrase.
	presence := c.ask(c.base+"/passkeys/presence", nil)
	q := c.ask(c.base+"/passkeys/new", console.NewPasskey{Answer: a.Sign(t, []byte(presence.Question))})
	second := passkeytest.New(b.origin)
	if status, said := c.json(c.base+"/passkeys", console.NamedPasskey{Name: " ", Answer: second.Make(t, []byte(q.Question))}, nil); status != http.StatusUnprocessableEntity {
		t.Errorf("without a name: %d %s", status, said)
	}
	if status, said := c.json(c.base+"/passkeys", console.NamedPasskey{Name: "phone", Answer: second.Make(t, []byte(q.Question))}, nil); status != http.StatusOK {
		t.Errorf("%d %s", status, said)
	}

	if resp, body := c.post(c.base+"/passkeys/"+id+"/rename", url.Values{"name": {"a\nb"}}); resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, "control character") {
		t.Errorf("a bad name: %d", resp.StatusCode)
	}
	if resp, _ := c.post(c.base+"/passkeys/"+id+"/rename", url.Values{"name": {"old laptop"}}); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("rename: %d", resp.StatusCode)
	}
	if resp, _ := c.post(c.base+"/passkeys/"+id+"/remove", nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("remove: %d", resp.StatusCode)
	}
	if resp, _ := c.get(c.base + "/"); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("a sign-in of a removed passkey goes on: %d", resp.StatusCode)
	}
	if resp, body := b.get(b.base + "/passkeys"); resp.StatusCode != http.StatusOK || strings.Contains(body, id) || !strings.Contains(body, "phone") {
		t.Errorf("%d\n%s", resp.StatusCode, body)
	}
	if status, _ := at(t, w, "localhost").enterWith(a); status != http.StatusForbidden {
		t.Errorf("a removed passkey: %d", status)
	}
	records, err := w.Audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig})
	if err != nil || len(records) != 3 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// TestPasskeyAnswersAreBound refuses answers from elsewhere, and those that were given before.
func TestPasskeyAnswersAreBound(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := at(t, w, "localhost")
	b.enter()
	a := passkeytest.New(b.origin)
	b.register(a, "laptop")

	thief := a.Copy()
	thief.Origin = "http://localhost:3000"
	if status, said := at(t, w, "localhost").enterWith(thief); status != http.StatusForbidden {
		t.Errorf("the page of another port: %d %s", status, said)
	}
	a.Count = thief.Count
	c := at(t, w, "localhost")
	q := c.ask("/sign-in/passkey", nil)
	answer := console.PasskeyAnswer{Answer: a.Sign(t, []byte(q.Question)), For: "../../evil"}
	if status, _ := at(t, w, "localhost").json(q.Answer, answer, nil); status != http.StatusForbidden {
		t.Errorf("without the cookie: %d", status)
	}
	cookie := cookieFor(t, c, q.Answer)
	if !cookie || cookieFor(t, c, "/sign-in/passkey/aaaaaaaaaaaaaaaa") || cookieFor(t, c, "/") {
		t.Error("the cookie goes elsewhere, too")
	}
	var in struct{ To string }
	if status, said := c.json(q.Answer, answer, &in); status != http.StatusOK || !regexp.MustCompile(`^/c/[a-z0-9]{16}/$`).MatchString(in.To) {
		t.Fatalf("%d %s", status, said)
	}
	if status, _ := c.json(q.Answer, answer, nil); status != http.StatusForbidden {
		t.Errorf("the same answer again: %d", status)
	}
	for name, header := range map[string]map[string]string{
		"another page": {"Origin": "http://localhost:3000", "Content-Type": "application/json"},
		"a form":       {"Origin": b.origin, "Content-Type": "application/x-www-form-urlencoded"},
	} {
		q := c.ask("/sign-in/passkey", nil)
		raw, _ := json.Marshal(console.PasskeyAnswer{Answer: a.Sign(t, []byte(q.Question))})
		header["Accept"] = "application/json"
		if resp, _ := c.do("POST", q.Answer, strings.NewReader(string(raw)), header); resp.StatusCode == http.StatusOK {
			t.Errorf("%s got in", name)
		}
	}
	clone := a.Copy()
	clone.Still, clone.Count = true, 1
	if status, said := c.enterWith(clone); status != http.StatusForbidden || !strings.Contains(said, "may be a copy") {
		t.Errorf("a copy: %d %s", status, said)
	}
	if _, body := b.get(b.base + "/passkeys"); !strings.Contains(body, "There may be a copy") {
		t.Error("the page says nothing about the copy")
	}
}

// cookieFor reports whether the browser sends the passkey's cookie to a path.
func cookieFor(t *testing.T, b *browser, path string) bool {
	t.Helper()
	address, err := url.Parse(b.origin + path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.http.Jar.Cookies(address) {
		if c.Name == "toolward-passkey" {
			return true
		}
	}
	return false
}

// TestPasskeysElsewhere says where passkeys cannot be used, and why; everything else works there.
func TestPasskeysElsewhere(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{Hosts: []string{"gate.example.org"}})
	home := at(t, w, "localhost")
	home.enter()
	a := passkeytest.New(home.origin)
	home.register(a, "laptop")
	b := signedIn(t, w)
	_, body := b.get(b.base + "/passkeys")
	if !strings.Contains(body, "127.0.0.1 is an address. Open the console at "+home.origin) || strings.Contains(body, "data-add") || !strings.Contains(body, "laptop") {
		t.Errorf("at an address:\n%s", body)
	}
	if status, said := b.json("/sign-in/passkey", nil, nil); status != http.StatusConflict {
		t.Errorf("at an address: %d %s", status, said)
	}
	if status, said := b.json(b.base+"/passkeys/new", console.NewPasskey{Passphrase: consoletest.Passphrase}, nil); status != http.StatusConflict {
		t.Errorf("at an address: %d %s", status, said)
	}
	if _, body := newBrowser(t, w).get("/"); !strings.Contains(body, `open <a href="`+home.origin+`/"`) || strings.Contains(body, "data-passkey") {
		t.Errorf("the door does not say where passkeys work:\n%s", body)
	}
	far, err := http.NewRequest("GET", w.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	far.Host = "gate.example.org"
	resp, err := http.DefaultTransport.RoundTrip(far)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || strings.Contains(string(page), home.origin) {
		t.Errorf("people elsewhere are sent to localhost of their own machine: %d %v\n%s", resp.StatusCode, err, page)
	}
	// A name without TLS, and localhost at a port that is not ours: a page there could pass our question on.
	for host, want := range map[string]string{"gate.example.org": "need https", "localhost:3000": "at " + home.origin, "localhost": "at " + home.origin} {
		req, err := http.NewRequest("POST", w.URL+"/sign-in/passkey", strings.NewReader("null"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Accept", "application/json")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		var p door.Problem
		if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusConflict || !strings.Contains(p.Message, want) {
			t.Errorf("%s: %d %s", host, resp.StatusCode, p.Message)
		}
	}
}

// TestPasskeyCloneAtPresence records a passkey with a copy also where somebody shows it who is signed in, and though
// they hang up.
func TestPasskeyCloneAtPresence(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := at(t, w, "localhost")
	b.enter()
	a := passkeytest.New(b.origin)
	b.register(a, "laptop")
	if status, said := at(t, w, "localhost").enterWith(a); status != http.StatusOK {
		t.Fatalf("%d %s", status, said)
	}
	clone := a.Copy()
	clone.Still = true
	presence := b.ask(b.base+"/passkeys/presence", nil)
	if status, said := b.json(b.base+"/passkeys/new", console.NewPasskey{Answer: clone.Sign(t, []byte(presence.Question))}, nil); status != http.StatusForbidden || !strings.Contains(said, "may be a copy") {
		t.Errorf("%d %s", status, said)
	}
	records, err := w.Audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig})
	if err != nil || len(records) == 0 || !strings.Contains(fmt.Sprint(records), "passkey-suspect") {
		t.Errorf("not recorded: %v, %v", records, err)
	}
}

// TestPasskeysOutliveThePassphrase says so to who changes it, perhaps since somebody else has it: they may have added one.
func TestPasskeysOutliveThePassphrase(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{})
	b := at(t, w, "localhost")
	b.enter()
	change := func(old, fresh string) string {
		t.Helper()
		resp, body := b.post(b.base+"/passphrase", url.Values{"old": {old}, "passphrase": {fresh}, "again": {fresh}})
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, "Every other sign-in has ended") {
			t.Fatalf("%d\n%s", resp.StatusCode, body)
		}
		return body
	}
	const fresh = "seven other quiet words"
	if strings.Contains(change(consoletest.Passphrase, fresh), "Passkeys stay valid") {
		t.Error("told about passkeys though there are none")
	}
	change(fresh, consoletest.Passphrase)
	a := passkeytest.New(b.origin)
	b.register(a, "laptop")
	if !strings.Contains(change(consoletest.Passphrase, fresh), "Passkeys stay valid") {
		t.Error("nothing said about the passkeys")
	}
	if status, said := at(t, w, "localhost").enterWith(a); status != http.StatusOK {
		t.Errorf("%d %s", status, said)
	}
}
