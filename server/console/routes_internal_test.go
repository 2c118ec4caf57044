package console

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
	"github.com/toolward/toolward/store"
)

const passphrase = "correct horse battery staple"

// newPeople opens the people of a gateway that has been set up.
func newPeople(t *testing.T) *identity.Keeper {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	people, err := identity.Open(t.Context(), identity.Options{Store: store.NewDevices(db)})
	if err == nil {
		err = people.SetUp(t.Context(), "test", people.SetupCode(), passphrase)
	}
	if err != nil {
		t.Fatal(err)
	}
	return people
}

// signIn signs a person in, as their browser does.
func signIn(t *testing.T, people *identity.Keeper) (cookie string, by identity.Authority) {
	t.Helper()
	cookie, by, err := people.SignInWeb(context.WithoutCancel(t.Context()), "test", "", passphrase)
	if err != nil {
		t.Fatal(err)
	}
	return cookie, by
}

// A signed-in person reaches every page, and nobody else reaches any: not the zero authority, not a requester, not
// somebody whose sign-in has ended, whatever right the row names.
func TestWhoReachesEachPage(t *testing.T) {
	people := newPeople(t)
	_, person := signIn(t, people)
	_, gone := signIn(t, people)
	people.SignOut(gone)
	callers := []struct {
		name    string
		by      identity.Authority
		reaches bool
	}{
		{"nobody", identity.Authority{}, false},
		{"a requester", identity.Requester(), false},
		{"an ended sign-in", gone, false},
		{"a signed-in person", person, true},
	}
	rows := (&Server{metrics: http.NotFoundHandler()}).rows()
	if len(rows) < 48 {
		t.Errorf("%d rows, want at least 48", len(rows))
	}
	for _, row := range rows {
		for _, c := range callers {
			reached := false
			row.Handle = func(http.ResponseWriter, *http.Request, *visitor) error {
				reached = true
				return nil
			}
			err := serveRow(row, httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), &visitor{by: c.by})
			var p *door.Problem
			refused := errors.As(err, &p) && p.Status == http.StatusUnauthorized
			if reached != c.reaches || refused == c.reaches {
				t.Errorf("%s: %s: reached %v, %v", row.Pattern, c.name, reached, err)
			}
		}
	}
}

// The guard believes a cookie only at the path that belongs to it. A page sends everybody else to the sign-in; a script
// is told why.
func TestGuardOfEachPage(t *testing.T) {
	people := newPeople(t)
	cookie, _ := signIn(t, people)
	other, _ := signIn(t, people)
	s := &Server{people: people, address: &door.Address{Listen: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7411}}, metrics: http.NotFoundHandler()}
	mux := http.NewServeMux()
	rows := s.rows()
	for i := range rows {
		rows[i].Handle = func(w http.ResponseWriter, _ *http.Request, _ *visitor) error {
			w.WriteHeader(http.StatusTeapot)
			return nil
		}
	}
	door.AddRows(mux, "/c/{key}", rows, s.guard)
	base := consolePrefix + pathKey(cookie)
	for _, row := range rows {
		for name, c := range map[string]struct {
			cookie, accept string
			want           int
		}{
			"signed in":           {cookie, "text/html", http.StatusTeapot},
			"without a cookie":    {"", "text/html", http.StatusSeeOther},
			"script, no cookie":   {"", "application/json", http.StatusUnauthorized},
			"another's cookie":    {other, "application/json", http.StatusUnauthorized},
			"a cookie of nothing": {"made up", "application/json", http.StatusUnauthorized},
		} {
			r := httptest.NewRequest(requestLine(row.Pattern, base))
			r.Header.Set("Accept", c.accept)
			if c.cookie != "" {
				r.AddCookie(&http.Cookie{Name: cookieName, Value: c.cookie})
			}
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%s: %s: status %d, want %d", row.Pattern, name, w.Code, c.want)
			}
		}
	}
}

// requestLine is a request that a pattern answers to.
func requestLine(pattern, base string) (method, target string, body io.Reader) {
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.NewReplacer("{$}", "", "{id}", "a1", "{proposal}", "0", "{seq}", "1", "{role}", "operator").Replace(path)
	return method, base + path, http.NoBody
}
