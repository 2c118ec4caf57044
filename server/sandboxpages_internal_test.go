package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/sandbox"
)

func TestWordsOfSandboxes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 312 << 20: "312 MiB", 1023 << 20: "1.0 GiB", 4 << 30: "4 GiB", 1340 << 20: "1.3 GiB", 10 << 40: "10 TiB",
	} {
		if got := sizeWords(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", 90 * time.Second: "1 min", 24 * time.Hour: "24 h", 25*time.Hour + 3*time.Minute: "25 h 3 min", 50 * time.Hour: "2 days",
	} {
		if got := agoWords(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	half, over := 0.5, 2.2
	for _, c := range []struct {
		usage sandbox.Usage
		want  figure
	}{
		{sandbox.Usage{}, figure{Text: "–"}},
		{sandbox.Usage{Busy: &half, Processors: 2}, figure{"25 % of 2 processors", "0.250", "1"}},
		{sandbox.Usage{Busy: &half, Processors: 0.5}, figure{"100 % of 0.5 processors", "1.000", "1"}},
		{sandbox.Usage{Busy: &over, Processors: 2}, figure{"100 % of 2 processors", "1.000", "1"}},
		{sandbox.Usage{Busy: &half}, figure{Text: "50 % of one processor"}},
	} {
		if got := busyFigure(&c.usage); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

// What is not known is never shown as zero.
func TestFiguresThatAreNotKnown(t *testing.T) {
	one := Sandbox{Info: sandbox.Info{Running: true, Limits: sandbox.ShownLimits{Memory: 1 << 30}}}
	for note, usage := range map[string]*sandbox.Usage{"no answer": nil, "gone away": {Problem: "gone away"}} {
		one.Usage = usage
		f := figuresOf(&one, time.Now())
		if f.CPU.Text != "–" || f.Memory.Text != "–" || f.Pids.Text != "–" || f.Note != note || f.Memory.Max != "" {
			t.Errorf("%+v", f)
		}
	}
	one.Usage = &sandbox.Usage{At: time.Now(), Memory: 2 << 30, Pids: 3, OOMKills: 2, Cache: 5 << 20}
	f := figuresOf(&one, time.Now())
	if f.Memory != (figure{"2 GiB of 1 GiB", "1073741824", "1073741824"}) || f.Pids.Text != "3" || !strings.Contains(f.Note, "memory ran out 2 ×") || !strings.Contains(f.Note, "5 MiB") {
		t.Errorf("%+v", f)
	}
}

// A page that shows one sandbox does not end another one of the same name.
func TestSeenNamesOneSandbox(t *testing.T) {
	i := sandbox.Info{Engine: "native", EngineID: "12 3", Created: time.UnixMilli(5)}
	same, other, later, elsewhere := i, i, i, i
	same.Users, same.Running = 3, true
	other.EngineID, later.Created, elsewhere.Engine = "1 23", time.UnixMilli(6), "docker"
	if seenOf(&i) != seenOf(&same) {
		t.Error("use changes which sandbox it is")
	}
	for _, o := range []sandbox.Info{other, later, elsewhere} {
		if seenOf(&i) == seenOf(&o) {
			t.Errorf("%+v is taken for another one", o)
		}
	}
}

// Whoever may not manage the gateway sees no buttons, and ends nothing.
func TestSandboxesWithoutTheRight(t *testing.T) {
	s := &Server{}
	nobody := &visitor{by: identity.Requester(), base: "/c/k"}
	for name, handle := range map[string]func(http.ResponseWriter, *http.Request, *visitor) error{
		"stop": s.stopFromPage, "recreate": s.recreateFromPage, "prune": s.pruneFromPage, "list": s.showSandboxes, "one": s.showSandbox, "events": s.followSandboxes,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(url.Values{"name": {"a"}}.Encode()))
		if err := handle(httptest.NewRecorder(), r, nobody); err == nil || problemOf(err).Status != http.StatusUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		may  bool
		want int
	}{{true, 2}, {false, 0}} {
		p := &sandboxPage{May: c.may}
		html, err := renderPart("sandbox", p)
		if err != nil || strings.Count(html, "<form method=\"post\" action=\"/sandboxes/") != c.want {
			t.Errorf("may %v: %v, %d forms", c.may, err, strings.Count(html, "<form"))
		}
		list := &sandboxesPage{Prunes: c.may, boxesPart: boxesPart{Boxes: []boxView{{}}}}
		if html, err = renderPart("sandboxes", list); err != nil || strings.Contains(html, "/sandboxes/prune") != c.may {
			t.Errorf("may %v: %v\n%s", c.may, err, html)
		}
	}
}
