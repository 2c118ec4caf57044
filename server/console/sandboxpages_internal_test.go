package console

import (
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox/fleet"
)

// A page that shows one sandbox does not end another one of the same name.
func TestSeenNamesOneSandbox(t *testing.T) {
	i := fleet.Info{Engine: "native", EngineID: "12 3", Created: time.UnixMilli(5)}
	same, other, later, elsewhere := i, i, i, i
	same.Users, same.Running = 3, true
	other.EngineID, later.Created, elsewhere.Engine = "1 23", time.UnixMilli(6), "docker"
	if seenOf(&i) != seenOf(&same) {
		t.Error("use changes which sandbox it is")
	}
	for _, o := range []fleet.Info{other, later, elsewhere} {
		if seenOf(&i) == seenOf(&o) {
			t.Errorf("%+v is taken for another one", o)
		}
	}
}

// Whoever may not manage the gateway sees no buttons.
func TestSandboxesWithoutTheRight(t *testing.T) {
	for _, c := range []struct {
		may  bool
		want int
	}{{true, 4}, {false, 0}} {
		ports := []portView{{Number: "3000", Listens: true, Local: true}, {Number: "3001", At: "http://127.0.0.1:3001/"}, {Number: "3002", Listens: true}}
		p := &sandboxPage{May: c.may, Ports: portsPart{May: c.may, Ports: ports}}
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
