package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/netguard/registries"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

// names is a name server whose answers a test changes.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	if a, ok := n[strings.TrimSuffix(name, ".")]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// newOffice is a world in which this machine's configuration names a registry, with a name server.
func newOffice(t *testing.T, c settings.Config, n names) *world {
	t.Helper()
	w := newWorld(t, c)
	compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}}, settings.Surroundings{
		StateDir: "/nowhere", Registries: []registries.Registry{{Pack: "npm", Host: "npm.corp", Port: 443, URL: "https://npm.corp/", From: "~/.npmrc"}},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w.settings.Store(compiled)
	policy, err := netguard.NewPolicy(netguard.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w.guard = netguard.NewGuard(policy, n)
	return w
}

// A registry inside the own network is asked about as what it is, once its address is known, and a yes is for that address.
func TestAnInternalRegistryAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		where := names{"npm.corp": "10.1.2.3"}
		w := newOffice(t, packed("npm"), where)
		w.run(t, "agent:coder:a", "npm install")
		leaves := make(chan netguard.Leave, 1)
		go func() {
			l, err := w.connect(t.Context(), "npm.corp")
			if err != nil {
				t.Error(err)
			}
			leaves <- l
		}()
		q := <-w.people.asked
		if f := q.Request.Facts; f.Hosts[0] != "internal://npm.corp:443" || f.Listed != "" || !q.Judgment.AllowAlways || !strings.Contains(fmt.Sprint(f.Findings), "~/.npmrc") {
			t.Errorf("%+v", f)
		}
		q.allow()
		l := <-leaves
		where["npm.corp"] = "10.9.9.9" // the name server changes its mind between the question and the connection
		if l == nil || l.Guard() == nil {
			t.Fatal("the connection looks the name up again")
		}
		if _, err := l.Guard().Dial(t.Context(), "other.corp", 443); err == nil {
			t.Error("another host is reached by the yes")
		}
		l.End(netguard.Connection{})
		// What is public, or refused, after all is what it is.
		for address, want := range map[string]string{"93.184.216.34": "", "127.0.0.1": "dns_address", "169.254.169.254": "dns_address"} {
			where["npm.corp"] = address
			l, err := w.connect(t.Context(), "npm.corp")
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v", address, err)
			}
			if l != nil {
				l.End(netguard.Connection{})
			}
		}
		w.people.none(t)
	})
}

// Another port, another name and a host that nothing names are no registry.
func TestWhatNothingNamesIsNotLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOffice(t, hosts(), names{"npm.corp": "10.1.2.3"})
		w.enter(t, "agent:coder:a")
		for _, to := range []target{{"npm.corp", 8443}, {"git.corp", 443}, {"10.1.2.3", 443}} {
			if w.known(box, to) {
				t.Errorf("%s may be inside the own network", to)
			}
		}
		if !w.known(box, target{"npm.corp", 443}) || w.known("another", target{"npm.corp", 443}) {
			t.Error("the registry is not known")
		}
	})
}

func TestInternalHostsThatAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hosts()
		c.Egress.Internal = []string{"Git.Corp:443"}
		w := newOffice(t, c, names{"git.corp": "192.168.7.7"})
		w.enter(t, "agent:coder:a")
		l, err := w.connect(t.Context(), "git.corp")
		if err != nil {
			t.Fatal(err)
		}
		if f := w.audit.Decisions()[0].Facts; f.Listed != "agents.defaults.sandbox.egress.internal" || f.Hosts[0] != "internal://git.corp:443" {
			t.Errorf("%+v", f)
		}
		w.configure(t, hosts())
		if l.Spend(1) == nil {
			t.Error("bytes leave to a host that is not listed any more")
		}
		l.End(netguard.Connection{})
		w.people.none(t)
	})
}

// Nobody is asked twice about a host that turns out to be inside.
func TestNobodyIsAskedTwiceInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newOffice(t, hosts(), names{})
		install := w.run(t, "agent:coder:a", "npm install")
		connect := func() error {
			l, err := w.connect(t.Context(), "a.example")
			if l != nil {
				l.End(netguard.Connection{Err: &netguard.Error{Code: netguard.CodeDNSAddress, Host: "a.example"}})
			}
			return err
		}
		go func() { _ = connect() }()
		(<-w.people.asked).allow()
		synctest.Wait()
		install.Leave()
		w.run(t, "agent:coder:a", "npm install")
		refused, ok := errors.AsType[*netguard.Error](connect())
		if !ok || !strings.Contains(refused.Reason(), "sandbox.egress.internal") {
			t.Errorf("%v", refused)
		}
		w.people.none(t)
		time.Sleep(innerTime)
		go func() { _ = connect() }()
		(<-w.people.asked).answer <- toolward.Answer{Decision: toolward.DenyCall}
	})
}

// A service of this machine asks, is no other host by its yes, and the gateway's own door is none.
func TestServicesOfThisMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, hosts())
		w.run(t, "agent:coder:a", "psql -h localhost")
		database := target{sandbox.MachineHost, 5432}
		go func() {
			l, err := w.permit(t.Context(), box, w.way, database)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := l.Guard().Dial(t.Context(), sandbox.MachineHost, 5433); err == nil {
				t.Error("another port is reached by the yes")
			}
			l.End(netguard.Connection{})
		}()
		q := <-w.people.asked
		if f := q.Request.Facts; f.Hosts[0] != "machine://host.toolward.internal:5432" || !q.Judgment.AllowAlways || !strings.Contains(fmt.Sprint(f.Findings), "127.0.0.1:5432") {
			t.Errorf("%+v", f)
		}
		q.allow()
		synctest.Wait()
		for port, want := range map[uint16]bool{5432: true, 7411: false, 22: false, 25: false, 6000: false} {
			if w.known(box, target{sandbox.MachineHost, port}) != want {
				t.Errorf("port %d: may be asked about: %t", port, !want)
			}
		}
		for _, name := range []string{"x." + sandbox.MachineHost, "127.0.0.1", "localhost", "toolward.internal"} {
			if w.known(box, target{name, 5432}) {
				t.Errorf("%s may be asked about", name)
			}
		}
		c := hosts()
		c.Egress.Internal, c.Egress.Unlisted = []string{sandbox.MachineHost + ":5432"}, "deny"
		w.configure(t, c)
		w.Close(box)
		w.ways[box] = w.way
		w.run(t, "agent:coder:a", "psql")
		l, err := w.permit(t.Context(), box, w.way, database)
		if err != nil {
			t.Fatal(err)
		}
		l.End(netguard.Connection{})
		if _, err := w.permit(t.Context(), box, w.way, target{sandbox.MachineHost, 6379}); err == nil {
			t.Error("a service that is not listed is reached")
		}
		w.people.none(t)
	})
}
