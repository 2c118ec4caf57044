package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/forward"
	"github.com/toolward/toolward/server/api"
)

// Whoever asks at the socket without a sign-in, as an agent does, neither sees what listens nor opens it.
func TestPortsThroughTheAPI(t *testing.T) {
	forwards := forward.New(listeners{}, func(forward.Forward, string) {}, slog.New(slog.DiscardHandler))
	t.Cleanup(forwards.Close)
	w := consoletest.New(t, consoletest.Options{Sandboxes: &boxes{names: []string{"a"}}, Forwards: forwards})
	wire := &apiClient{t: t, http: w.SocketClient(), base: "http://toolward"}
	wire.want(401, "GET", "/v1/sandboxes/a/ports", nil, nil)
	wire.want(401, "GET", "/v1/forwards", nil, nil)
	wire.want(401, "POST", "/v1/sandboxes/a/forwards", api.ForwardRequest{Port: 3000}, nil)
	wire.want(401, "POST", "/v1/sandboxes/a/forwards/3000/stop", struct{}{}, nil)
	if list := forwards.List(); len(list) > 0 {
		t.Fatalf("an agent has opened %+v", list)
	}
	wire.want(200, "POST", "/v1/login", api.Passphrase{Passphrase: consoletest.Passphrase}, nil)
	wire.want(404, "POST", "/v1/sandboxes/b/forwards", api.ForwardRequest{Port: 3000}, nil)
	wire.want(404, "POST", "/v1/sandboxes/a/forwards", api.ForwardRequest{Port: 3001}, nil)
	wire.want(400, "POST", "/v1/sandboxes/a/forwards", api.ForwardRequest{Port: 3000, To: 80}, nil)
	wire.want(400, "POST", "/v1/sandboxes/a/forwards/x/stop", struct{}{}, nil)
	wire.want(404, "POST", "/v1/sandboxes/a/forwards/3000/stop", struct{}{}, nil)
	var started api.StartedForward
	wire.want(200, "POST", "/v1/sandboxes/a/forwards", api.ForwardRequest{Port: 3000}, &started)
	if started.Sandbox != "a" || started.Port != 3000 || started.At != fmt.Sprintf("http://127.0.0.1:%d/", started.Local) {
		t.Errorf("%+v", started)
	}
	var ports api.SandboxPorts
	wire.want(200, "GET", "/v1/sandboxes/a/ports", nil, &ports)
	if len(ports.Ports) != 1 || ports.Ports[0].Port != 3000 || len(ports.Forwards) != 1 || ports.Forwards[0].Local != started.Local {
		t.Errorf("%+v", ports)
	}
	wire.want(404, "GET", "/v1/sandboxes/b/ports", nil, nil)
	wire.want(200, "POST", "/v1/sandboxes/a/forwards/3000/stop", struct{}{}, nil)
	var all api.PortForwards
	if wire.want(200, "GET", "/v1/forwards", nil, &all); len(all.Forwards) > 0 {
		t.Errorf("%+v", all)
	}
	records, err := w.Audit.Query(t.Context(), audit.Filter{Type: audit.TypeSandbox, Text: "forwarded"})
	must(t, err)
	if len(records) != 1 || !strings.Contains(records[0].JSON, `"by":`) {
		t.Errorf("%+v", records)
	}
}

// listeners are the sandbox "a", in which something listens at port 3000.
type listeners struct{}

func (listeners) Running(name string) (sandbox.Handle, error) {
	if name != "a" {
		return nil, sandbox.Errorf(sandbox.CodeNotFound, "no %s", name)
	}
	return listener{}, nil
}

type listener struct{ sandbox.Handle }

func (listener) State() sandbox.State  { return sandbox.State{} }
func (listener) Done() <-chan struct{} { return nil }
func (listener) Ports(context.Context) ([]sandbox.Port, bool, error) {
	return []sandbox.Port{{Number: 3000, Local: true}}, false, nil
}

// A person opens a port on the sandbox's page, and closes it there. A page that is served at another port of the console's host, as what
// is behind a forward is, opens nothing, whatever it knows.
func TestAPortIsOpenedOnItsPage(t *testing.T) {
	forwards := forward.New(listeners{}, func(forward.Forward, string) {}, slog.New(slog.DiscardHandler))
	t.Cleanup(forwards.Close)
	b := signedIn(t, consoletest.New(t, consoletest.Options{Sandboxes: &boxes{names: []string{"a"}}, Forwards: forwards}))
	_, page := b.get(b.base + "/sandboxes/one?name=a")
	if !strings.Contains(page, "<b>3000</b>") || !strings.Contains(page, "node") || !strings.Contains(page, "Open on this machine") || strings.Contains(page, "http://127.0.0.1:3") {
		t.Errorf("what listens:\n%s", page)
	}
	form := formOf(t, page)
	form.Set("port", "3000")
	for _, origin := range []string{"http://127.0.0.1:3000", "http://localhost:3000", "null"} {
		resp, _ := b.do("POST", b.base+"/sandboxes/forward", strings.NewReader(form.Encode()), map[string]string{
			"Content-Type": "application/x-www-form-urlencoded", "Origin": origin, "Sec-Fetch-Site": "same-site",
		})
		if resp.StatusCode != 403 || len(forwards.List()) > 0 {
			t.Errorf("from %s: %d, %v", origin, resp.StatusCode, forwards.List())
		}
	}
	for name, wrong := range map[string]url.Values{
		"another sandbox": {"name": {"a"}, "seen": {"0"}, "port": {"3000"}}, "nothing listens": {"name": {"a"}, "seen": form["seen"], "port": {"3001"}},
		"no port": {"name": {"a"}, "seen": form["seen"], "port": {"0"}}, "no sandbox": {"name": {"b"}, "seen": form["seen"], "port": {"3000"}},
	} {
		if resp, body := b.post(b.base+"/sandboxes/forward", wrong); resp.StatusCode < 400 || len(forwards.List()) > 0 {
			t.Errorf("%s: %d, %v\n%s", name, resp.StatusCode, forwards.List(), body)
		}
	}
	resp, page := b.post(b.base+"/sandboxes/forward", form)
	list := forwards.List()
	if resp.StatusCode != 303 || len(list) != 1 || resp.Header.Get("Location") != b.base+"/sandboxes/one?name=a&done=forwarded&port=3000#ports" {
		t.Fatalf("%d, %v, %s\n%s", resp.StatusCode, list, resp.Header.Get("Location"), page)
	}
	_, page = b.get(strings.TrimSuffix(resp.Header.Get("Location"), "#ports"))
	if link := fmt.Sprintf(`href="%s" target="_blank" rel="noopener noreferrer"`, list[0].URL()); !strings.Contains(page, link) || !strings.Contains(page, "Port 3000 is open on this machine") {
		t.Errorf("after opening it:\n%s", page)
	}
	if resp, page = b.post(b.base+"/sandboxes/unforward", form); resp.StatusCode != 303 || len(forwards.List()) > 0 {
		t.Errorf("closing it: %d, %v\n%s", resp.StatusCode, forwards.List(), page)
	}
}
