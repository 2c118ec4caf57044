package egress

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

// route is how a host is reached. The zero value is the public internet and nothing else.
type route struct {
	machine  bool            // it is a service of this machine
	internal bool            // it is a machine of the own network
	guard    *netguard.Guard // that connects to what was looked up before anybody was asked; nil: the one for all
}

// scheme is the beginning of what is decided about. A yes about a host of the internet says nothing about a machine of the own
// network: else a name that strangers have would lead there by another answer of their name server.
func (r route) scheme() string {
	switch {
	case r.machine:
		return "machine://"
	case r.internal:
		return "internal://"
	}
	return "tcp://"
}

// listed is the key of the configuration by which a host is reached on this route without a question, and how many bytes may
// leave to it within a day.
func (p *Proxies) listed(way route, reach *settings.Reach, workspace string, to target) (key string, most int64) {
	switch {
	case way.internal, way.machine:
		key = reach.Internal(to.host, to.port)
	default:
		key = reach.Listed(to.host, to.port)
	}
	if key == "" && way == (route{}) && reach.Remotes() != "" && p.remotes.had(workspace, to) {
		return reach.Remotes(), reach.FetchSent()
	}
	return key, reach.MaxSent(to.host, to.port)
}

// route looks where a host is before people are asked about it, so that they are not asked in vain. That is done for hosts
// only that this machine's people have named. The name of any other is first asked about: looking it up tells its name server
// whatever a hostile program has written into it.
func (p *Proxies) route(ctx context.Context, name string, to target) (route, error) {
	if !p.known(name, to) {
		if p.inner.has(to.host) {
			return route{}, &netguard.Error{Code: netguard.CodeDNSAddress, Host: to.host}
		}
		return route{}, nil
	}
	if to.host == sandbox.MachineHost {
		return route{machine: true, guard: netguard.Pinned(to.host, to.port, loopback...)}, nil
	}
	at, inner, err := p.guard.Look(ctx, to.host)
	if err != nil {
		return route{}, err
	}
	return route{internal: inner, guard: netguard.Pinned(to.host, to.port, at...)}, nil
}

// loopback is where services of this machine listen that are for nobody else.
var loopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// known reports whether a host may be inside the own network, by the settings of every agent that shares the sandbox: their
// configuration lists it so, or that of this machine names it as a registry of packages. A service of this machine may be
// asked about, but never the gateway's own door: what is inside would come to it as a program of this machine.
func (p *Proxies) known(name string, to target) bool {
	if to.host == sandbox.MachineHost {
		return p.guard.Policy().Port(to.port) == nil && !p.options.Own(to.port)
	}
	agents, all := p.agents(name), p.options.Settings()
	return len(agents) > 0 && !slices.ContainsFunc(agents, func(agent string) bool {
		reach := all.For(agent).Reach()
		return reach.Registry(to.host, to.port) == "" && reach.Internal(to.host, to.port) == ""
	})
}

// agents are those that have used a sandbox since it was started.
func (p *Proxies) agents(name string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := map[string]bool{}
	if all := p.uses[name]; all != nil {
		for _, u := range all.list {
			found[u.call.Caller.Agent] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}

// innerHosts are hosts that people were asked about, and that turned out to be none of the public internet: nobody is asked
// about them again for a while.
type innerHosts struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

const (
	innerTime = time.Hour
	maxInner  = 4096
)

func (i *innerHosts) has(host string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	at, ok := i.seen[host]
	return ok && time.Since(at) < innerTime
}

func (i *innerHosts) add(host string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen == nil {
		i.seen = map[string]time.Time{}
	}
	if len(i.seen) >= maxInner {
		maps.DeleteFunc(i.seen, func(_ string, at time.Time) bool { return time.Since(at) >= innerTime })
	}
	if len(i.seen) < maxInner { // else people are asked once more than they need be
		i.seen[host] = time.Now()
	}
}
