package sandbox

import (
	"context"
	"slices"
	"strconv"

	"github.com/toolward/toolward/netguard"
)

// Egress is the gateway's proxy, which programs in sandboxes with the network egress reach and nothing else.
type Egress interface {
	// Open has it listen for the sandbox of a name, and returns the directory that holds the socket. It is mounted in that
	// sandbox only, so that the proxy knows by the socket who calls. Opening again gives the same directory.
	Open(name string) (dir string, err error)
	// Close ends that, with all connections. What was not opened is no mistake.
	Close(name string)
	// Outlived says which sandboxes go on, or have gone on, without a gateway, and which sessions have used each: their
	// directories stay, those of all others that are not open go. What the sessions have left in them acts in their names.
	Outlived(sessions map[string][]Former)
}

// closeEgress ends the way out of a sandbox that does not run. The caller has the turn of the box.
func (m *Manager) closeEgress(b *box) {
	if m.options.Egress == nil {
		return
	}
	m.mu.Lock()
	running := b.alive() != nil
	m.mu.Unlock()
	if e := m.engines[EngineNative]; e != nil && !running { // one that goes on has the directory mounted, whether or not it is used now
		state, err := e.Lookup(context.Background(), b.name)
		running = err == nil && state.Detached
	}
	if !running {
		m.options.Egress.Close(b.name)
	}
}

// EgressConfig is "egress": what programs reach through the network egress.
type EgressConfig struct {
	Hosts    []string `json:"hosts,omitzero" jsonschema:"hosts that need no question: name, *.name for those below it, each with :port for another port than 80 and 443"`
	Unlisted string   `json:"unlisted,omitempty" jsonschema:"what becomes of other hosts: ask (default) or deny"`
	MaxSent  Quantity `json:"maxSent,omitempty" jsonschema:"bytes that may leave to one host within a day before a person is asked again; default 100m; 0 is no bound"`
}

// The words of EgressConfig.Unlisted.
const (
	UnlistedAsk  = "ask"
	UnlistedDeny = "deny"
)

const defaultMaxSent Quantity = `"100m"`

// Reach is what the programs of an agent reach through the network egress. The zero value reaches nothing.
type Reach struct {
	hosts    []netguard.Pattern
	key      string // of the configuration, where they are listed
	Unlisted string // UnlistedAsk, or nothing else is reached
	MaxSent  int64  // bytes to one host within a day; 0 is no bound
}

// Listed is the key of the configuration by which a host is reached without a question; "" if it is not listed.
func (r *Reach) Listed(host string, port uint16) string {
	if slices.ContainsFunc(r.hosts, func(p netguard.Pattern) bool { return p.Matches(host, port) }) {
		return r.key
	}
	return ""
}

// egress is where an agent's programs get to.
func (r *resolver) egress() EgressConfig {
	return EgressConfig{
		Hosts:    choose(r, "egress.hosts", []string(nil), at("egress.hosts", func(c *Config) []string { return c.Egress.Hosts })),
		Unlisted: choose(r, "egress.unlisted", UnlistedAsk, at("egress.unlisted", func(c *Config) string { return c.Egress.Unlisted })),
		MaxSent:  choose(r, "egress.maxSent", defaultMaxSent, at("egress.maxSent", func(c *Config) Quantity { return c.Egress.MaxSent })),
	}
}

// reach makes settings ready for use. What is wrong in them was reported, and is left out.
func (c EgressConfig) reach(key string) *Reach {
	r := &Reach{key: key, Unlisted: c.Unlisted}
	for _, text := range c.Hosts {
		if p, err := netguard.ParsePattern(text); err == nil {
			r.hosts = append(r.hosts, p)
		}
	}
	var err error
	if r.MaxSent, err = c.MaxSent.Count(); err != nil {
		r.MaxSent, _ = defaultMaxSent.Count()
	}
	return r
}

// egress checks one object "egress".
func (k *checker) egress(at string, c *EgressConfig) {
	for i, text := range c.Hosts {
		if _, err := netguard.ParsePattern(text); err != nil {
			k.wrong(at+".hosts["+strconv.Itoa(i)+"]", CodeConfig, "%v", err)
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
