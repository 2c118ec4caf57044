package netguard

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/gatetest"
)

// answers is a resolver that answers from a table; every other name resolves to a public address.
type answers map[string][]string

func (a answers) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	texts, ok := a[strings.TrimSuffix(name, ".")]
	if !ok {
		texts = []string{"93.184.216.34"}
	}
	var list []netip.Addr
	for _, text := range texts {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		list = append(list, addr)
	}
	return list, nil
}

type verdict struct {
	Allow bool
	Code  Code
	Range string
}

func verdictOf(err error) verdict {
	if e, ok := errors.AsType[*Error](err); ok {
		return verdict{Code: e.Code, Range: e.Range}
	}
	return verdict{Allow: err == nil}
}

func TestVectorsAddressesAndNames(t *testing.T) {
	const file = "web-memory.json"
	for kind, cases := range gatetest.Vectors(t, file, "ssrf.ip", "ssrf.host", "ssrf.url", "ssrf.policy") {
		gatetest.Play(t, file, kind, cases, func(t *testing.T, c gatetest.Case) {
			var in struct {
				IP, Host, URL string
				Policy        Config
				DNS           map[string][]string
			}
			var want verdict
			gatetest.Decode(t, c.Input, &in)
			gatetest.Decode(t, c.Want, &want)
			policy, err := NewPolicy(in.Policy)
			if err != nil {
				t.Fatal(err)
			}
			switch kind {
			case "ssrf.ip":
				addr, parseErr := netip.ParseAddr(in.IP)
				if err = parseErr; err == nil {
					err = policy.Address(addr)
				}
			case "ssrf.host":
				_, err = policy.Host(in.Host)
			case "ssrf.url":
				_, err = policy.URL(in.URL)
			case "ssrf.policy":
				var u URL
				if u, err = policy.URL(in.URL); err == nil {
					_, err = NewGuard(policy, answers(in.DNS)).Resolve(t.Context(), u.Host)
				}
			}
			if got := verdictOf(err); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestVectorsLoggedURLs(t *testing.T) {
	gatetest.Run(t, "web-memory.json", "web.redactUrl", func(t *testing.T, input json.RawMessage) any {
		var in struct{ URL string }
		gatetest.Decode(t, input, &in)
		return map[string]any{"logged": Logged(in.URL)}
	})
}
