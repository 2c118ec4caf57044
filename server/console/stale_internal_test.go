package console

import (
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
	"github.com/toolward/toolward/store"
)

// answeringDoor is the console's door on real approvals, with a browser that is signed in and never runs a script.
type answeringDoor struct {
	t         *testing.T
	mux       *http.ServeMux
	approvals *approval.Manager
	cookie    string
}

func newAnsweringDoor(t *testing.T) *answeringDoor {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	db, err := store.Open(t.Context(), home, store.Options{})
	must(err)
	t.Cleanup(func() { db.Close() })
	people, err := identity.Open(t.Context(), identity.Options{Store: store.NewDevices(db)})
	must(err)
	must(people.SetUp(t.Context(), "test", people.SetupCode(), passphrase))
	same := func(s string) string { return s }
	records, err := db.Audit(t.Context())
	must(err)
	key, first, err := audit.LoadKey(home)
	must(err)
	log, err := audit.Open(t.Context(), records, audit.Options{Key: key, First: first, Redact: same, Escape: same})
	must(err)
	t.Cleanup(log.Close)
	approvals, err := approval.Open(t.Context(), approval.Options{
		Store: store.NewApprovals(db), Redact: same, Settings: approval.Settings{Absent: approval.AbsentWait},
	})
	must(err)
	t.Cleanup(approvals.Close)
	counter, err := desk.New(desk.Options{Audit: log, People: people, Approvals: approvals, Records: log})
	must(err)
	s := New(&Options{
		Address: &door.Address{Listen: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7411}},
		People:  people, Approvals: approvals, Desk: counter,
	})
	d := &answeringDoor{t: t, mux: http.NewServeMux(), approvals: approvals}
	s.Routes(d.mux)
	d.cookie, _ = signIn(t, people)
	return d
}

// ask puts a question as a program at the gateway protocol does, under an id of its own choice.
func (d *answeringDoor) ask(id, command, binding string) *approval.Record {
	d.t.Helper()
	r, err := d.approvals.Submit(d.t.Context(), approval.Submission{
		ID: id, Kind: approval.KindExec, Binding: binding, Timeout: time.Minute, Connection: "wire",
		Details: approval.Details{Tool: "exec", Title: "exec: " + command, Command: command, Digest: binding, ByClient: true},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *answeringDoor) do(method, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, consolePrefix+pathKey(d.cookie)+path, strings.NewReader(form.Encode()))
	r.AddCookie(&http.Cookie{Name: cookieName, Value: d.cookie})
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	d.mux.ServeHTTP(w, r)
	return w
}

var stampPattern = regexp.MustCompile(`name="seen" value="([^"]+)"`)

// look opens the page of a call and returns the form on it, with "allow" chosen.
func (d *answeringDoor) look(id string) url.Values {
	d.t.Helper()
	page := d.do(http.MethodGet, "/approvals/"+id, nil)
	m := stampPattern.FindStringSubmatch(page.Body.String())
	if page.Code != http.StatusOK || m == nil {
		d.t.Fatalf("the page of %s: %d\n%s", id, page.Code, page.Body)
	}
	return url.Values{"decision": {"allow-once"}, "seen": {html.UnescapeString(m[1])}}
}

// A program chooses the id of its question, and an id is free again soon after its question is over. A page that was left
// open shows the first question for as long as it is open: its form must not answer the second one.
func TestAPageOfAnEarlierQuestionAnswersNothing(t *testing.T) {
	for name, second := range map[string]struct{ command, binding string }{
		"another command":               {"rm -rf ~", "b2"},
		"the same once more":            {"make test", "b1"},
		"other words for the same bind": {"make  test", "b1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newAnsweringDoor(t)
				first := d.ask("build-1", "make test", "b1")
				page := d.look("build-1")
				time.Sleep(time.Second)
				if w := d.do(http.MethodPost, "/approvals/build-1", d.look("build-1")); w.Code != http.StatusTooEarly {
					t.Errorf("at once: %d", w.Code)
				}
				if w := d.do(http.MethodPost, "/approvals/build-1", page); w.Code != http.StatusSeeOther {
					t.Fatalf("the page of the question that waits: %d\n%s", w.Code, w.Body)
				}
				if got, err := d.approvals.Wait(t.Context(), first.ID); got != toolward.AllowOnce || err != nil {
					t.Fatalf("%v, %v", got, err)
				}
				time.Sleep(20 * time.Second) // the id is free again
				d.ask("build-1", second.command, second.binding)
				time.Sleep(time.Second)
				if w := d.do(http.MethodPost, "/approvals/build-1", page); w.Code != http.StatusPreconditionFailed {
					t.Errorf("the page of the first question: %d", w.Code)
				}
				batch := url.Values{"decision": {"allow-once"}, "call": {"build-1 " + page.Get("seen")}}
				if w := d.do(http.MethodPost, "/approvals", batch); !strings.Contains(w.Header().Get("Location"), "answered=0&of=1") {
					t.Errorf("several at once from that page: %d to %s", w.Code, w.Header().Get("Location"))
				}
				if n := d.approvals.Count(); n != 1 {
					t.Fatalf("%d questions wait, want the second", n)
				}
				fresh := d.look("build-1")
				time.Sleep(time.Second)
				if w := d.do(http.MethodPost, "/approvals/build-1", fresh); w.Code != http.StatusSeeOther || d.approvals.Count() != 0 {
					t.Errorf("its own page: %d", w.Code)
				}
			})
		})
	}
}
