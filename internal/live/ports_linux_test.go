package live_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// tryPorts starts a server in a sandbox, opens it on the machine, and sees to it that nothing else is opened, and that it ends.
func (c *confinedClient) tryPorts(t *testing.T, server string) {
	t.Helper()
	c.session = c.connect(t)
	c.run(t, "echo the session\\'s server > index.html")
	for _, port := range []string{"8123", "8124"} {
		c.call(t, c.session, "exec", map[string]any{"command": server + " " + port, "background": true})
		c.run(t, "for i in 1 2 3 4 5 6 7 8 9; do http_proxy= "+c.get+" http://localhost:"+port+"/index.html >/dev/null 2>&1 && break; sleep 0.3; done")
	}
	listed := c.see(t, 0, "toolward sandbox ports")
	name := regexp.MustCompile(`(?m)^(\S+) +8123 +\S+ +–`).FindStringSubmatch(listed)
	if name == nil || strings.Contains(listed, "3128") || strings.Contains(listed, c.port) {
		t.Fatalf("the ports of sandboxes:\n%s", listed)
	}
	box := name[1]
	c.tryRefused(t, box)
	at := c.opened(t, box, "8123")
	c.tryManyAtOnce(t, at)
	if listed = c.see(t, 0, "toolward sandbox ports "+box); !strings.Contains(listed, at) {
		t.Errorf("an open port:\n%s", listed)
	}
	if said := c.see(t, 0, "toolward sandbox forward "+box+" 8124 --to "+strings.TrimSuffix(at[strings.LastIndexByte(at, ':')+1:], "/")); !strings.Contains(said, "of the machine is taken") {
		t.Errorf("a taken port: %s", said)
	}
	c.run(t, "pkill -f '8123$' || kill $(ps | grep '[8]123' | awk '{print $1}'); true")
	c.closed(t, at, "a server that has ended")
	c.see(t, 0, "toolward sandbox forward "+box+" 8123 --stop")
	if said := c.see(t, 1, "toolward sandbox forward "+box+" 8123"); !strings.Contains(said, "nothing listens at port 8123 in sandbox "+box) {
		t.Errorf("where nothing listens: %s", said)
	}
	other := c.opened(t, box, "8124")
	c.see(t, 0, "toolward sandbox recreate --all --force")
	c.closed(t, other, "a sandbox that was removed")
	if said := c.see(t, 1, "toolward sandbox forward "+box+" 8124"); !strings.Contains(said, "does not run") {
		t.Errorf("without its sandbox: %s", said)
	}
	c.checkPortRecords(t)
}

// see runs a command in the signed-in terminal.
func (c *confinedClient) see(t *testing.T, want int, command string) string {
	t.Helper()
	out, status := c.terminal.Run(command)
	if status != want {
		t.Errorf("%s: %d\n%s", command, status, out)
	}
	return out
}

// tryRefused asks for what nobody gets: ports where nothing listens, Toolward's own, which lead out of the sandbox, and any of them without a
// sign-in, as an agent would ask.
func (c *confinedClient) tryRefused(t *testing.T, box string) {
	t.Helper()
	for _, port := range []string{"9", "3128", "1080", c.port} {
		if said := c.see(t, 1, "toolward sandbox forward "+box+" "+port); !strings.Contains(said, "nothing listens at port "+port) {
			t.Errorf("port %s: %s", port, said)
		}
	}
	if said := c.see(t, 1, "toolward sandbox forward "+box+" 8123 --to 80"); !strings.Contains(said, "from 1024") {
		t.Errorf("a privileged port: %s", said)
	}
	for _, args := range [][]string{{"sandbox", "forward", box, "8123"}, {"sandbox", "ports"}} {
		if out, status := c.Run(args...); status != 77 {
			t.Errorf("%v without a sign-in: %d\n%s", args, status, out)
		}
	}
}

// opened opens a port of the sandbox, and returns its address.
func (c *confinedClient) opened(t *testing.T, box, port string) string {
	t.Helper()
	said := c.see(t, 0, "toolward sandbox forward "+box+" "+port)
	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(said)
	if at == "" {
		t.Fatalf("port %s: %s", port, said)
	}
	return at
}

func (c *confinedClient) tryManyAtOnce(t *testing.T, at string) {
	t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/")
	var open []net.Conn
	for range 50 {
		conn, err := net.DialTimeout("tcp", address, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /index.html HTTP/1.0\r\n")
		open = append(open, conn)
		time.Sleep(20 * time.Millisecond) // these servers lose connections that they have not accepted when more than five come
	}
	var all sync.WaitGroup
	for _, conn := range open {
		all.Go(func() {
			fmt.Fprint(conn, "\r\n")
			_ = conn.(*net.TCPConn).CloseWrite() // half of it; the answer comes all the same
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "the session's server") {
				t.Errorf("%q, %v", answer, err)
			}
		})
	}
	all.Wait()
}

// closed waits until nobody gets an answer at an address.
func (c *confinedClient) closed(t *testing.T, at, what string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		answer, err := client.Get(at)
		if err != nil {
			return
		}
		answer.Body.Close()
		if time.Now().After(end) {
			t.Errorf("%s still answers: %s", what, answer.Status)
			return
		}
	}
}

func (c *confinedClient) checkPortRecords(t *testing.T) {
	t.Helper()
	records := c.see(t, 0, "toolward audit export 2>/dev/null")
	for _, want := range []string{
		`"event":"listening"[^\n]*"port":8123`, `"by":"[^"]+"[^\n]*"event":"forwarded"[^\n]*"port":8123`,
		`"event":"forward-ended"[^\n]*"port":8123[^\n]*"why":"by `, `"event":"forward-ended"[^\n]*"port":8124[^\n]*"why":"its sandbox ended"`,
	} {
		if !regexp.MustCompile(want).MatchString(records) {
			t.Errorf("the record has no %s", want)
		}
	}
}

func TestPortsNative(t *testing.T) {
	live.Need(t, live.Program("curl"))
	live.Need(t, live.Program("python3"))
	c := onLocalhost(t, `"engine": "native", "degradeOk": ["cgroup"]`, "")
	c.get = "curl -sS -m 100"
	c.tryPorts(t, "python3 -m http.server")
}

func TestPortsDocker(t *testing.T) {
	host := live.Docker(t)
	b := &boxed{t: t, engine: "docker"}
	c := onLocalhost(t, fmt.Sprintf(`"engine": "docker", "docker": {"image": %q}`, b.image()), "", "DOCKER_HOST="+host)
	c.get, b.Machine = "wget -qO-", c.Machine
	t.Cleanup(b.forget)
	if out, status := c.Run("sandbox", "image", "build", "--busybox", "--name", b.image()); status != 0 {
		t.Fatalf("image build: %d\n%s", status, out)
	}
	c.tryPorts(t, "httpd -f -p")
}
