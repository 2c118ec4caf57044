package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/consoletest"
)

// browser is a client with cookies that does not follow redirects by itself.
type browser struct {
	t      *testing.T
	w      *consoletest.World
	origin string // where it sees the console
	http   *http.Client
	base   string // path of the console after sign-in
}

func newBrowser(t *testing.T, w *consoletest.World) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, w: w, origin: w.URL, http: &http.Client{
		Jar: jar, Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// signedIn is a browser of a signed-in person.
func signedIn(t *testing.T, w *consoletest.World) *browser {
	t.Helper()
	b := newBrowser(t, w)
	resp, body := b.post("/sign-in", url.Values{"passphrase": {consoletest.Passphrase}})
	if resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign-in: %d\n%s", resp.StatusCode, body)
	}
	b.base = strings.TrimSuffix(resp.Header.Get("Location"), "/")
	return b
}

func (b *browser) do(method, path string, body io.Reader, header map[string]string) (*http.Response, string) {
	b.t.Helper()
	req, err := http.NewRequest(method, b.origin+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp, string(text)
}

func (b *browser) get(path string) (*http.Response, string) {
	b.t.Helper()
	return b.do("GET", path, nil, nil)
}

func (b *browser) post(path string, form url.Values) (*http.Response, string) {
	b.t.Helper()
	return b.do("POST", path, strings.NewReader(form.Encode()), map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Origin": b.origin, "Sec-Fetch-Site": "same-origin",
	})
}

// apiClient speaks JSON to the API.
type apiClient struct {
	t    *testing.T
	http *http.Client
	base string
}

func (a *apiClient) want(status int, method, path string, body, into any) {
	a.t.Helper()
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			a.t.Fatal(err)
		}
		reader = strings.NewReader(string(raw))
	}
	req, err := http.NewRequest(method, a.base+path, reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.http.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	if resp.StatusCode != status {
		a.t.Fatalf("%s %s: %d, want %d\n%s", method, path, resp.StatusCode, status, raw)
	}
	if into != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			a.t.Fatalf("%s %s: %v\n%s", method, path, err, raw)
		}
	}
}
