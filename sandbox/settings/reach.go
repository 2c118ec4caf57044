package settings

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/netguard/packs"
	"github.com/toolward/toolward/netguard/registries"
)

// The words of EgressConfig.Unlisted.
const (
	UnlistedAsk  = "ask"
	UnlistedDeny = "deny"
)

const defaultMaxSent Quantity = `"100m"`

// fetchSent bounds what leaves within a day to a host that is there to fetch from. Every registry takes uploads, too, from
// whoever has an account: a hostile program brings its own. A day of builds sends far less.
const fetchSent = 16 << 20

// Reach is what the programs of an agent reach through the network egress. The zero value reaches nothing.
type Reach struct {
	hosts    []netguard.Pattern
	key      string   // of the configuration, where they are listed
	packs    []string // names of lists of hosts
	packsKey string
	// registries of this machine: as their packs, and such as may be inside the own network
	registries  []registries.Registry
	internal    []string // host:port, in one form
	internalKey string
	Unlisted    string // UnlistedAsk, or nothing else is reached
	maxSent     int64  // bytes to one host within a day; 0 is no bound
}

// Listed is the key of the configuration by which a host is reached without a question; "" if it is not listed.
func (r *Reach) Listed(host string, port uint16) string {
	switch pack := packs.Of(r.packs, host, port); {
	case r.named(host, port):
		return r.key
	case pack != "":
		return r.packsKey + " (" + pack + ")"
	}
	for _, own := range r.registries {
		if own.Host == host && own.Port == port && slices.Contains(r.packs, own.Pack) {
			return r.packsKey + " (" + own.Pack + ": " + own.From + ")"
		}
	}
	return ""
}

// Remotes is the key of the configuration by which the remotes of a workspace are reached without a question; "" if they are not.
func (r *Reach) Remotes() string {
	if slices.Contains(r.packs, packs.Remotes) {
		return r.packsKey + " (" + packs.Remotes + ")"
	}
	return ""
}

// Internal is the key of the configuration by which a host is reached without a question though it is one of the own
// network; "" if it is not listed so.
func (r *Reach) Internal(host string, port uint16) string {
	if slices.Contains(r.internal, net.JoinHostPort(host, strconv.Itoa(int(port)))) {
		return r.internalKey
	}
	return ""
}

// Registry is where this machine's own configuration names a host as a registry of packages; "" if it does not.
func (r *Reach) Registry(host string, port uint16) string {
	if i := slices.IndexFunc(r.registries, func(own registries.Registry) bool { return own.Host == host && own.Port == port }); i >= 0 {
		return r.registries[i].From
	}
	return ""
}

// named reports whether the configuration lists the host by its name.
func (r *Reach) named(host string, port uint16) bool {
	return slices.ContainsFunc(r.hosts, func(p netguard.Pattern) bool { return p.Matches(host, port) })
}

// MaxSent is how many bytes may leave to a host within a day before a person is asked again; 0 is no bound.
func (r *Reach) MaxSent(host string, port uint16) int64 {
	if r.named(host, port) || r.Listed(host, port) == "" {
		return r.maxSent
	}
	return r.FetchSent()
}

// FetchSent is MaxSent of a host that is there to fetch from.
func (r *Reach) FetchSent() int64 {
	if r.maxSent == 0 {
		return fetchSent
	}
	return min(r.maxSent, fetchSent)
}

// egress is where an agent's programs get to.
func (r *resolver) egress() EgressConfig {
	return EgressConfig{
		Hosts:     choose(r, "egress.hosts", []string(nil), at("egress.hosts", func(c *Config) []string { return c.Egress.Hosts })),
		Packs:     choose(r, "egress.packs", []string(nil), at("egress.packs", func(c *Config) []string { return c.Egress.Packs })),
		Internal:  choose(r, "egress.internal", []string(nil), at("egress.internal", func(c *Config) []string { return c.Egress.Internal })),
		HostPorts: choose(r, "egress.hostPorts", []int64(nil), at("egress.hostPorts", func(c *Config) []int64 { return c.Egress.HostPorts })),
		Unlisted:  choose(r, "egress.unlisted", UnlistedAsk, at("egress.unlisted", func(c *Config) string { return c.Egress.Unlisted })),
		MaxSent:   choose(r, "egress.maxSent", defaultMaxSent, at("egress.maxSent", func(c *Config) Quantity { return c.Egress.MaxSent })),
	}
}

// reach makes settings ready for use. What is wrong in them was reported, and is left out.
func (c EgressConfig) reach(sources map[string]Source, own []registries.Registry) *Reach {
	r := &Reach{
		key: sources["egress.hosts"].Key, packs: c.Packs, packsKey: sources["egress.packs"].Key, Unlisted: c.Unlisted,
		registries: own, internalKey: sources["egress.internal"].Key,
	}
	for _, text := range c.Internal {
		if host, port, err := netguard.ParseInternal(text); err == nil {
			r.internal = append(r.internal, net.JoinHostPort(host, strconv.Itoa(int(port))))
		}
	}
	for _, text := range c.Hosts {
		if p, err := netguard.ParsePattern(text); err == nil {
			r.hosts = append(r.hosts, p)
		}
	}
	var err error
	if r.maxSent, err = c.MaxSent.Count(); err != nil {
		r.maxSent, _ = defaultMaxSent.Count()
	}
	return r
}

// egress checks one object "egress".
func (k *checker) egress(at string, c *EgressConfig) {
	for i, text := range c.Hosts {
		if _, err := netguard.ParsePattern(text); err != nil {
			k.wrong(at+".hosts["+strconv.Itoa(i)+"]", sandbox.CodeConfig, "%v", err)
		}
	}
	for i, name := range c.Packs {
		if !slices.Contains(packs.Names(), name) {
			k.wrong(at+".packs["+strconv.Itoa(i)+"]", sandbox.CodeConfig, "%q: write %s", name, strings.Join(packs.Names(), ", "))
		}
	}
	for i, text := range c.Internal {
		if _, _, err := netguard.ParseInternal(text); err != nil {
			k.wrong(at+".internal["+strconv.Itoa(i)+"]", sandbox.CodeConfig, "%v", err)
		}
	}
	for i, port := range c.HostPorts {
		key := at + ".hostPorts[" + strconv.Itoa(i) + "]"
		switch {
		case port < 1024 || port > 65535:
			k.wrong(key, sandbox.CodeConfig, "%d: write a port from 1024 to 65535: programs inside cannot listen below", port)
		case port == 3128 || port == 1080:
			k.wrong(key, sandbox.CodeConfig, "%d: the gateway's proxy listens there inside", port)
		case slices.Contains(c.HostPorts[:i], port):
			k.wrong(key, sandbox.CodeConfig, "%d stands there twice", port)
		default:
			if _, _, err := netguard.ParseInternal(sandbox.MachineHost + ":" + strconv.FormatInt(port, 10)); err != nil {
				k.is(key, sandbox.Errorf(sandbox.CodeConfig, "%v", err))
			}
		}
	}
	k.word(at+".unlisted", c.Unlisted, UnlistedAsk, UnlistedDeny)
	_, err := c.MaxSent.Count()
	k.is(at+".maxSent", err)
}

// looserEgress reports by which key an agent reaches more than is written for all. Its own hosts are no such thing: that
// lists are written for agents is what they are for.
func looserEgress(all, own *EgressConfig) (keys []string) {
	if all.Unlisted == UnlistedDeny && own.Unlisted == UnlistedAsk {
		keys = append(keys, "egress.unlisted")
	}
	if most, err := all.MaxSent.Count(); err == nil && most > 0 && own.MaxSent != "" {
		if n, err := own.MaxSent.Count(); err == nil && (n == 0 || n > most) {
			keys = append(keys, "egress.maxSent")
		}
	}
	return keys
}

// registryVariables tell programs inside of the registries that this machine's own configuration names: that configuration is
// not there. A call could not set them, because they choose where packages come from; this machine's person has.
func (r *Resolved) registryVariables(engine string) (own []Variable) {
	if r.NetworkOf(engine) != sandbox.NetworkEgress {
		return nil
	}
	for _, v := range registries.Environment(r.settings.around.Registries) {
		own = append(own, Variable{v[0], v[1]})
	}
	return own
}

// forwards are the services of this machine that programs inside reach at their own loopback address.
func (c EgressConfig) forwards() (targets []string) {
	for _, port := range c.HostPorts {
		targets = append(targets, net.JoinHostPort(sandbox.MachineHost, strconv.FormatInt(port, 10)))
	}
	return targets
}
