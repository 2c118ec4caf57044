package live_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox/fleet"
)

// confinedClient is an agent whose commands run in a sandbox with the network egress.
type confinedClient struct {
	*guardedMachine
	session *sdk.ClientSession
	get     string        // the program inside that gets a URL
	port    string        // of the site
	secure  string        // of the same with TLS
	held    chan struct{} // told of each request that the site does not answer
}

// newConfinedClient starts a site and a machine that reaches it by several names.
func newConfinedClient(t *testing.T, settings string, environment ...string) *confinedClient {
	t.Helper()
	held := make(chan struct{}, 1)
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			held <- struct{}{}
			<-r.Context().Done()
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "the site got %s for %s with %d bytes\n", r.Method, r.Host, len(body))
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	portOf := func(s *httptest.Server) string {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u.Port()
	}
	c := &confinedClient{get: "curl -sS -m 100", held: held, port: portOf(plain), secure: portOf(secure)}
	hosts := map[string]string{}
	for _, name := range []string{"listed.example", "asked.example", "other.example", "below.wide.example"} {
		hosts[name] = "127.0.0.1"
	}
	hosts["inner.example"] = "10.0.0.1"
	m := live.NewMachineWithHosts(t, "", hosts)
	m.Extra = append(m.Extra, environment...)
	c.guardedMachine = guard(t, m, fmt.Sprintf(`{"agents": {"defaults": {"sandbox": {
		"mode": "all", "workspaceAccess": "rw", "network": "egress", %s,
		"egress": {"hosts": ["listed.example:%s", "listed.example:%s", "*.wide.example:%s", "inner.example:443"]}}}}}`, settings, c.port, c.secure, c.port))
	c.session = c.connect(t)
	return c
}

// run runs a command in the sandbox.
func (c *confinedClient) run(t *testing.T, command string) string {
	t.Helper()
	return c.call(t, c.session, "exec", map[string]any{"command": command})
}

// asked runs a command and answers what people are asked about it, one after the other.
func (c *confinedClient) asked(t *testing.T, command string, answers ...string) string {
	t.Helper()
	out := make(chan string, 1)
	go func() { out <- c.run(t, command) }()
	for _, answer := range answers {
		id := c.pending(t)
		time.Sleep(unread)
		if said, status := c.terminal.Run("toolward approvals " + answer + " " + id); status != 0 {
			t.Errorf("approvals %s: %d\n%s", answer, status, said)
		}
	}
	return <-out
}

// records are the records of connections.
func (c *confinedClient) records(t *testing.T) (decisions, outcomes []map[string]any) {
	t.Helper()
	out, status := c.terminal.Run("toolward audit export 2>/dev/null")
	if status != 0 {
		t.Fatalf("audit export: %d\n%.2000s", status, out)
	}
	for line := range strings.Lines(out) {
		var r map[string]any
		if json.Unmarshal([]byte(line), &r) != nil || r["tool"] != "egress" {
			continue
		}
		if r["type"] == "decision" {
			decisions = append(decisions, r)
		} else if r["type"] == "outcome" {
			outcomes = append(outcomes, r)
		}
	}
	return decisions, outcomes
}

// fetch is a command that gets the site by a name.
func (c *confinedClient) fetch(host string) string {
	return c.get + " http://" + host + ":" + c.port + "/"
}

// TestEgressNative: what a program in a sandbox connects to is a call like any other: listed hosts pass, others ask the
// person at the terminal, and nothing else is reached.
func TestEgressNative(t *testing.T) {
	live.Need(t, live.Program("curl"))
	c := newConfinedClient(t, `"engine": "native", "degradeOk": ["cgroup"]`)
	c.tryEgress(t)
	c.tryOthers(t)
	c.tryKill(t)
}

// tryOthers looks for the sockets of another agent's sandbox.
func (c *confinedClient) tryOthers(t *testing.T) {
	t.Helper()
	token, status := c.terminal.Run("toolward token create --agent second --workspace " + c.Workspace + " 2> /dev/null")
	if status != 0 {
		t.Fatalf("token create: %d\n%s", status, token)
	}
	second := &confinedClient{guardedMachine: &guardedMachine{Machine: c.Machine, terminal: c.terminal, token: token}, get: c.get, port: c.port}
	second.session = second.connect(t)
	if got := second.run(t, c.fetch("listed.example")); !strings.Contains(got, "the site got GET") {
		t.Fatalf("the second agent: %q", got)
	}
	for _, one := range []*confinedClient{c, second} {
		if got := one.run(t, "find /run /tmp /var /home /root /workspace -type s ! -path /run/toolward/egress.sock 2>/dev/null; test -S /run/toolward/egress.sock && echo own; ls "+c.State+" || echo hidden"); !strings.HasPrefix(got, "own\n") || !strings.Contains(got, "hidden") {
			t.Errorf("sockets inside: %q", got)
		}
	}
}

func (c *confinedClient) tryEgress(t *testing.T) {
	t.Helper()
	reached := "the site got GET for "
	for _, one := range []struct{ command, want string }{
		{c.fetch("listed.example"), reached + "listed.example"},
		{c.fetch("below.wide.example"), reached + "below.wide.example"},
		{"curl -sSk https://LISTED.example.:" + c.secure + "/", reached + "LISTED.example"},
		{"curl -sS --noproxy '' -x socks5h://127.0.0.1:1080 http://listed.example:" + c.port, reached + "listed.example"},
		{"curl -sS --data-binary abcd http://listed.example:" + c.port, "POST for listed.example:" + c.port + " with 4 bytes"},
		{"curl -sSi http://10.0.0.1/", "403 toolward: 10.0.0.1 was not reached: it is not a host of the public internet"},
		{"curl -sSi http://inner.example:443/", "inner.example was not reached: it is not a host of the public internet"},
		{"curl -sSi http://169.254.169.254/latest/", "169.254.169.254 was not reached"},
		{"curl -sSi http://[::ffff:10.0.0.1]/", "was not reached"},
		{"curl -sSi http://nowhere.wide.example:" + c.port + "/", "502 toolward: nowhere.wide.example was not reached: its name was not found"},
		{"curl -sS --noproxy '*' -m 5 http://127.0.0.1:" + c.port + "/; echo $?", "7"},
		{"curl -sS --noproxy '*' -m 5 http://listed.example:" + c.port + "/; echo $?", "6"},
		{"ls -A /run/toolward; touch /run/toolward/x || rm /run/toolward/egress.sock || echo no", "egress.sock"},
		{"ls " + c.State + " || echo hidden", "hidden"},
	} {
		if got := c.run(t, one.command); !strings.Contains(got, one.want) {
			t.Errorf("%s:\n%q, want %q", one.command, got, one.want)
		}
	}
	c.tryQuestions(t)
}

// tryQuestions has people asked about hosts that are not listed.
func (c *confinedClient) tryQuestions(t *testing.T) {
	t.Helper()
	const reached = "the site got GET for "
	if ids := c.questions(t); len(ids) > 0 {
		t.Errorf("people were asked: %v", ids)
	}
	if got := c.run(t, c.fetch("asked.example")); !strings.Contains(got, "nobody can approve it now") {
		t.Errorf("without anybody there: %q", got)
	}
	c.terminal.Watch()
	defer c.terminal.Run("kill %%; wait %%")
	if got := c.asked(t, c.fetch("asked.example"), "deny"); !strings.Contains(got, "asked.example was not reached: a person declined it") {
		t.Errorf("denied: %q", got)
	}
	if got := c.asked(t, c.fetch("other.example"), "allow"); !strings.Contains(got, reached+"other.example") {
		t.Errorf("allowed: %q", got)
	}
	// Several at once are one question.
	if got := c.asked(t, "for i in 1 2 3 4; do "+c.fetch("other.example")+" & done; wait", "allow"); strings.Count(got, reached+"other.example") != 4 {
		t.Errorf("four at once: %q", got)
	}
	// Who hangs up takes the question back.
	gone := make(chan string, 1)
	go func() { gone <- c.run(t, "timeout 2 "+c.fetch("other.example")) }()
	c.pending(t)
	<-gone
	c.mustEnd(t)
	c.checkRecords(t)
}

func (c *confinedClient) checkRecords(t *testing.T) {
	t.Helper()
	decisions, outcomes := c.records(t)
	if len(decisions) == 0 || len(outcomes) != len(decisions) {
		t.Fatalf("%d decisions, %d outcomes", len(decisions), len(outcomes))
	}
	listed, sent := 0, false
	for _, d := range decisions {
		if d["surface"] != "sandbox" || d["agentId"] != "coder" || d["host"] != "sandbox" {
			t.Errorf("%v", d)
		}
		if facts, ok := d["facts"].(map[string]any); ok && facts["listed"] == "agents.defaults.sandbox.egress.hosts" && d["verdict"] == "allow" {
			listed++
		}
	}
	for _, o := range outcomes {
		bytes, _ := o["sentBytes"].(float64)
		sent = sent || bytes > 0 && o["status"] == "ok"
	}
	if listed < 2 || !sent {
		t.Errorf("%d were listed; bytes that left are recorded: %t", listed, sent)
	}
}

// tryKill kills the gateway while a connection is open. The sandbox of the next one has its way out again, and nothing of
// the first is left.
func (c *confinedClient) tryKill(t *testing.T) {
	t.Helper()
	dirs := func() []string {
		entries, err := os.ReadDir(filepath.Join(c.State, "sandbox", "egress"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	before := dirs()[:1] // the others' begin when they are used again
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "exec", Arguments: map[string]any{"command": c.fetch("listed.example") + "held"}})
	}()
	<-c.held
	c.Kill()
	<-ended
	c.Start()
	c.terminal = c.SignedIn()
	c.session = c.connect(t)
	if got := c.run(t, c.fetch("listed.example")); !strings.Contains(got, "the site got GET for listed.example") {
		t.Errorf("after kill -9: %q", got)
	}
	if after := dirs(); len(after) != 1 || before[0] != after[0] {
		t.Errorf("directories of sockets: %q, and after kill -9 %q", before, after)
	}
	if _, outcomes := c.records(t); !slices.ContainsFunc(outcomes, func(o map[string]any) bool { return o["status"] == "lost" }) {
		t.Error("the record does not say that the connection was lost")
	}
	c.Stop()
	if left := dirs(); len(left) != 0 {
		t.Errorf("after the end: %q", left)
	}
}

// TestEgressDocker is the same in a container, which is kept when the gateway is killed and used again.
func TestEgressDocker(t *testing.T) {
	host := live.Docker(t)
	b := &boxed{t: t, engine: "docker"}
	c := newConfinedClient(t, fmt.Sprintf(`"engine": "docker", "docker": {"image": %q}`, b.image()), "DOCKER_HOST="+host)
	c.get, b.Machine = "wget -qO-", c.Machine
	t.Cleanup(b.forget)
	if out, status := c.Run("sandbox", "image", "build", "--busybox", "--name", b.image()); status != 0 {
		t.Fatalf("image build: %d\n%s", status, out)
	}
	for command, want := range map[string]string{
		c.fetch("listed.example"):                                                       "the site got GET for listed.example",
		c.fetch("below.wide.example"):                                                   "the site got GET for below.wide.example",
		"wget -qO- http://10.0.0.1/ 2>&1":                                               "403 toolward: 10.0.0.1 was not reached",
		"wget -qO- http://[::ffff:169.254.169.254]/ 2>&1":                               "was not reached",
		"unset http_proxy HTTP_PROXY; " + c.fetch("listed.example") + " || echo no way": "no way",
		"ls -A /run/toolward; touch /run/toolward/x || echo no":                         "no",
		"id -u; ls /run/toolward/..":                                                    "toolward",
	} {
		if got := c.run(t, command); !strings.Contains(got, want) {
			t.Errorf("%s:\n%q, want %q", command, got, want)
		}
	}
	c.tryQuestions(t)
	machine, _, err := fleet.ReadMachine(c.State)
	if err != nil {
		t.Fatal(err)
	}
	containers := func() string {
		return b.docker("ps", "--all", "--no-trunc", "--filter", "label=toolward.instance="+machine.Instance, "--format", "{{.ID}}")
	}
	before := containers()
	c.tryKill(t)
	if after := containers(); len(strings.Fields(before)) != 1 || before != after {
		t.Errorf("the container %q, and after kill -9 %q", before, after)
	}
}
