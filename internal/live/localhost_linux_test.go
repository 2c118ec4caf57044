package live_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// onLocalhost is an agent in a sandbox, and a service of this machine that listens on its loopback address alone: one that asks, unless egress
// lists it, where %s stands for its port.
func onLocalhost(t *testing.T, settings, egress string, environment ...string) *confinedClient {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "the machine's service") }))
	t.Cleanup(service.Close)
	u, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	m := live.NewMachineWithHosts(t, "", nil)
	m.Extra = append(m.Extra, environment...)
	c := &confinedClient{port: u.Port(), guardedMachine: guard(t, m, fmt.Sprintf(`{"agents": {"defaults": {"sandbox": {
		"mode": "all", "workspaceAccess": "rw", "network": "egress", %s, "egress": {"hostPorts": [%s]%s}}}}}`, settings, u.Port(), strings.ReplaceAll(egress, "%s", u.Port())))}
	return c
}

// tryLocalhost starts a server in one call and reaches it in the next, which nobody is asked about. The machine's service at the
// same address is asked about, as a host is; the gateway's own door is not reached.
func (c *confinedClient) tryLocalhost(t *testing.T, server string) {
	t.Helper()
	local := "http_proxy= " + c.get // wget of busybox does not know no_proxy
	c.session = c.connect(t)
	c.run(t, "echo the session\\'s server > index.html")
	// exec ends what a command leaves behind, but not what has left its group; process shows what goes on in the background.
	c.run(t, "setsid "+server+" 8123 >/dev/null 2>&1 &\n for i in 1 2 3 4 5 6 7 8 9; do "+local+" http://localhost:8123/index.html >/dev/null 2>&1 && break; sleep 0.3; done")
	c.call(t, c.session, "exec", map[string]any{"command": server + " 8124", "background": true})
	for _, port := range []string{"8123", "8124"} {
		if got := c.run(t, "for i in 1 2 3 4 5 6 7 8 9; do "+local+" http://localhost:"+port+"/index.html 2>/dev/null && break; sleep 0.3; done"); !strings.Contains(got, "the session's server") {
			t.Errorf("port %s: %q", port, got)
		}
	}
	if ids := c.questions(t); len(ids) > 0 {
		t.Errorf("people are asked about servers of the session: %v", ids)
	}
	console, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"host.toolward.internal:" + console.Port(), net.JoinHostPort("127.0.0.1", console.Port())} {
		if got := c.run(t, c.get+" http://"+own+"/healthz 2>&1; http_proxy=http://127.0.0.1:3128 no_proxy= "+c.get+" http://"+own+"/healthz 2>&1; exit 1"); strings.Contains(got, "ok\n") || !strings.Contains(got, "Host asked for: "+own) && !strings.HasPrefix(own, "127") {
			t.Errorf("the gateway's own door: %q", got)
		}
	}
	c.terminal.Watch()
	defer c.terminal.Run("kill %%; wait %%")
	const service = "the machine's service"
	if got := c.asked(t, local+" http://localhost:"+c.port+"/ && "+local+" http://127.0.0.1:"+c.port+"/ && "+c.get+" http://host.toolward.internal:"+c.port+"/", "allow"); strings.Count(got, service) != 3 {
		t.Errorf("allowed: %q", got)
	}
	if got := c.asked(t, local+" http://localhost:"+c.port+"/", "deny"); strings.Contains(got, service) || !strings.Contains(got, "Host asked for: host.toolward.internal:"+c.port+": a person declined it") {
		t.Errorf("declined: %q", got)
	}
}

func TestLocalhostNative(t *testing.T) {
	live.Need(t, live.Program("curl"))
	live.Need(t, live.Program("python3"))
	c := onLocalhost(t, `"engine": "native", "degradeOk": ["cgroup"]`, "")
	c.get = "curl -sS -m 100"
	c.tryLocalhost(t, "python3 -m http.server")
}

func TestLocalhostDocker(t *testing.T) {
	host := live.Docker(t)
	b := &boxed{t: t, engine: "docker"}
	c := onLocalhost(t, fmt.Sprintf(`"engine": "docker", "docker": {"image": %q}`, b.image()), "", "DOCKER_HOST="+host)
	c.get, b.Machine = "wget -qO-", c.Machine
	t.Cleanup(b.forget)
	if out, status := c.Run("sandbox", "image", "build", "--busybox", "--name", b.image()); status != 0 {
		t.Fatalf("image build: %d\n%s", status, out)
	}
	c.tryLocalhost(t, "httpd -f -p")
}

// A service of the machine that the configuration lists is reached without a question, at its own port of localhost and by the machine's
// name; another one of the machine is not reached by that.
func TestLocalhostListed(t *testing.T) {
	live.Need(t, live.Program("curl"))
	c := onLocalhost(t, `"engine": "native", "degradeOk": ["cgroup"]`, `, "internal": ["host.toolward.internal:%s"], "unlisted": "deny"`)
	c.session = c.connect(t)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	got := c.run(t, "http_proxy= curl -sS -m 100 http://localhost:"+c.port+"/ && curl -sS -m 100 http://host.toolward.internal:"+c.port+"/")
	if strings.Count(got, "the machine's service") != 2 {
		t.Errorf("a listed service: %q", got)
	}
	_, port, _ := net.SplitHostPort(other.Listener.Addr().String())
	if got = c.run(t, "curl -sS -m 100 http://host.toolward.internal:"+port+"/; curl -sS --noproxy '*' -m 5 http://localhost:"+port+"/"); !strings.Contains(got, "was not reached") || strings.Contains(got, "404 page") {
		t.Errorf("another one: %q", got)
	}
	if ids := c.questions(t); len(ids) > 0 {
		t.Errorf("people are asked about it: %v", ids)
	}
}
