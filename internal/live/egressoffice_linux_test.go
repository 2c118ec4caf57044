package live_test

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/netguard"
)

// privateListener listens on an address of this machine's own network.
func privateListener(t *testing.T) net.Listener {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil || !prefix.Addr().Is4() || !netguard.Private(prefix.Addr()) {
			continue
		}
		if l, err := net.Listen("tcp", netip.AddrPortFrom(prefix.Addr(), 0).String()); err == nil {
			return l
		}
	}
	l, err := net.Listen("tcp", netip.AddrPortFrom(ownAddress(t), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ownAddress gives this machine a private address for the time of the test: a bare one may have none.
func ownAddress(t *testing.T) netip.Addr {
	t.Helper()
	address := netip.AddrFrom4([4]byte{192, 168, 213, 1})
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	set := func(request uint, value netip.Addr) error {
		ifr, err := unix.NewIfreq("lo:office")
		if err == nil {
			err = ifr.SetInet4Addr(value.AsSlice())
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, request, ifr)
		}
		return err
	}
	if err := set(unix.SIOCSIFADDR, address); err != nil {
		t.Skipf("this machine has no private address, and gets none: %v", err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "address", "delete", address.String()+"/32", "dev", "lo").CombinedOutput(); err != nil {
			t.Logf("%s stays: %v %s", address, err, out)
		}
	})
	if err := set(unix.SIOCSIFNETMASK, netip.AddrFrom4([4]byte{255, 255, 255, 255})); err != nil {
		t.Fatal(err)
	}
	return address
}

// TestEgressOffice is a firm: a registry inside its own network, which the person's .npmrc names with a token.
func TestEgressOffice(t *testing.T) {
	live.Need(t, live.Program("curl"))
	listener := privateListener(t)
	registry := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "the registry got %s with %q\n", r.URL.Path, r.Header.Get("Authorization"))
	})}
	go func() { _ = registry.Serve(listener) }()
	t.Cleanup(func() { _ = registry.Close() })
	address, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	m := live.NewMachineWithHosts(t, "", map[string]string{"npm.office.example": address, "git.office.example": address})
	npmrc := "//npm.office.example:" + port + "/:_authToken=npm_s3cret0123456789\nregistry=http://ann:s3cret@npm.office.example:" + port + "/\n"
	if err := os.WriteFile(filepath.Join(m.Home, ".npmrc"), []byte(npmrc), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &confinedClient{guardedMachine: guard(t, m, `{"agents": {"defaults": {"sandbox": {
		"mode": "all", "workspaceAccess": "rw", "network": "egress", "engine": "native", "degradeOk": ["cgroup"], "egress": {"packs": ["npm"]}}}}}`)}
	c.session = c.connect(t)
	if got := c.run(t, "env | grep -i registry; env | grep -c s3cret"); !strings.Contains(got, "npm_config_registry=http://npm.office.example:"+port+"/\n0") {
		t.Errorf("programs are told %q", got)
	}
	c.terminal.Watch()
	defer c.terminal.Run("kill %%; wait %%")
	install := `for i in 1 2 3; do curl -sS ${npm_config_registry}left-pad; done; exit 3`
	out := make(chan string, 1)
	go func() { out <- c.run(t, install) }()
	id := c.pending(t)
	shown, _ := c.terminal.Run("toolward approvals list")
	for _, want := range []string{"npm.office.example:" + port, "for i in 1 2 3; do curl"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the question does not say %q:\n%s", want, shown)
		}
	}
	time.Sleep(unread)
	if said, status := c.terminal.Run("toolward approvals allow " + id); status != 0 {
		t.Fatalf("%s", said)
	}
	if got := <-out; strings.Count(got, `the registry got /left-pad with ""`) != 3 {
		t.Errorf("three requests of one command: %q", got)
	}
	// Another machine there is named by nobody, a name that turned is not followed, and a no is one for the whole command.
	for command, want := range map[string]string{
		"curl -sSif http://" + address + ":" + port + "/": "Host asked for: " + address + ":" + port + ": it is not a host of the public internet",
	} {
		if got := c.run(t, command); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	c.mustEnd(t)
	if got := c.asked(t, install, "deny"); strings.Contains(got, "the registry got") || !strings.Contains(got, "Host asked for: npm.office.example:"+port+": a person declined it") {
		t.Errorf("declined: %q", got)
	}
	if got := c.asked(t, "curl -sSf http://git.office.example:"+port, "allow"); !strings.Contains(got, "sandbox.egress.internal") {
		t.Errorf("a machine that nothing names: %q", got)
	}
	if got := c.run(t, "curl -sSf http://git.office.example:"+port); !strings.Contains(got, "sandbox.egress.internal") {
		t.Errorf("asked twice in vain: %q", got)
	}
}
