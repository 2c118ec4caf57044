package attacks

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/toolward/toolward/netguard"
)

// judgeURL: a URL is about to be reached. The guard's own checks and look-up say whether anything would be dialed, and
// what; nothing is.
func judgeURL(t *testing.T, c *attack) (outcome, error) {
	err := errors.Join(setupOnly(c, "policy", "dns", "dnsSequence"), c.Attempt.only("attempt", "url"), c.Check.only("check", "connect_only"))
	if err != nil {
		return outcome{}, err
	}
	config := netguard.Config{}
	switch policy, hosts, _ := strings.Cut(c.Setup.text("policy"), ":"); policy {
	case "default":
	case "allowHosts":
		config.HostnameAllowlist = strings.Split(hosts, ",")
	default:
		return outcome{}, unsupported{"policy " + policy}
	}
	policy, err := netguard.NewPolicy(config)
	if err != nil {
		return outcome{}, err
	}
	var clock stopwatch
	var o outcome
	clock.time(func() { o = reach(t.Context(), policy, c) })
	if c.Class == "url.literal" && o.holds(c.Want) {
		d := &dialing{guard: netguard.NewGuard(policy, &zone{c.Setup.object("dns"), c.Setup.object("dnsSequence")}), public: c.Control}
		clock.time(func() {
			if why := d.wrong(c.Attempt.text("url")); why != "" {
				o = outcome{answer: harmful, why: why}
			}
		})
	}
	o.took = clock.longest
	return o, nil
}

func reach(ctx context.Context, policy *netguard.Policy, c *attack) outcome {
	u, err := policy.URL(c.Attempt.text("url"))
	if err != nil {
		return outcome{answer: denied, why: err.Error()}
	}
	to, err := netguard.NewGuard(policy, &zone{c.Setup.object("dns"), c.Setup.object("dnsSequence")}).Resolve(ctx, u.Host)
	if err != nil {
		return outcome{answer: denied, why: err.Error()}
	}
	if only := c.Check.list("connect_only"); len(only) > 0 {
		for _, a := range to {
			if a.String() != only[0] {
				return outcome{answer: harmful, why: "would connect to " + a.String()}
			}
		}
		return outcome{answer: contained}
	}
	return outcome{answer: allowed}
}

// zone answers for names: the corpus gives lists of addresses, "timeout", and answers that change.
type zone struct{ always, inTurn fields }

func (z *zone) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	name = strings.TrimSuffix(name, ".")
	if turns, ok := z.inTurn[name].([]any); ok && len(turns) > 0 {
		z.inTurn[name] = turns[1:]
		return addresses(turns[0])
	}
	answer, ok := z.always[name]
	if !ok {
		answer, ok = z.always["*"]
	}
	if !ok {
		return nil, &net.DNSError{Name: name, IsNotFound: true}
	}
	return addresses(answer)
}

func addresses(answer any) ([]netip.Addr, error) {
	list, ok := answer.([]any)
	if !ok {
		return nil, &net.DNSError{IsTimeout: true}
	}
	var found []netip.Addr
	for _, item := range list {
		text, _ := item.(string)
		if strings.HasPrefix(text, "cname:") {
			continue // the name behind it is not what is judged: its address is
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		found = append(found, a)
	}
	return found, nil
}
