package egress

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/sandbox/settings"
)

func packed(names ...string) settings.Config {
	return settings.Config{Network: new("egress"), Egress: settings.EgressConfig{Packs: names}}
}

// A registry of a pack is reached without a question, and what is open to it sends nothing more once its pack is struck out.
func TestPackIsStruckOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, packed("go", "npm"))
		w.enter(t, "agent:coder:a")
		l, err := w.connect(t.Context(), "registry.npmjs.org")
		if err != nil {
			t.Fatal(err)
		}
		reasons := w.audit.Decisions()[0].Judgment.Reasons
		if last := reasons[len(reasons)-1]; last.Rule != "agents.defaults.sandbox.egress.packs (npm)" {
			t.Errorf("the record names %q", last.Rule)
		}
		w.configure(t, packed("go"))
		if err := l.Spend(1); err == nil {
			t.Error("bytes leave to a pack that is struck out")
		}
		l.End(netguard.Connection{})
		go func() { _, _ = w.connect(t.Context(), "registry.npmjs.org") }()
		(<-w.people.asked).answer <- toolward.Answer{Decision: toolward.DenyCall}
		synctest.Wait()
		for _, other := range []target{{"registry.npmjs.org", 80}, {"proxy.golang.org", 8443}, {"evil.proxy.golang.org", 443}} {
			go func() { _, _ = w.permit(t.Context(), box, w.way, other) }()
			(<-w.people.asked).answer <- toolward.Answer{Decision: toolward.DenyCall}
			synctest.Wait()
		}
	})
}

// A pack is there to fetch from: whoever has an account at a registry would be sent a lot otherwise.
func TestPackTakesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const little = 16 << 20
		for most, want := range map[settings.Quantity]int64{"": little, "0": little, "1000": 1000, `"1g"`: little} {
			c := packed("go")
			c.Egress.MaxSent = most
			w := newWorld(t, c)
			w.enter(t, "agent:coder:a")
			l, err := w.connect(t.Context(), "proxy.golang.org")
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(l.Spend(int(want)-1), l.Spend(1)); err != nil {
				t.Errorf("%s: %v", most, err)
			}
			if err := l.Spend(1); err == nil {
				t.Errorf("%s: more than %d bytes leave", most, want)
			}
			l.End(netguard.Connection{})
			go func() { _, _ = w.connect(t.Context(), "proxy.golang.org") }()
			(<-w.people.asked).answer <- toolward.Answer{Decision: toolward.DenyCall}
			synctest.Wait()
		}
		// Who lists the host by its name says how much.
		c := packed("go")
		c.Egress.Hosts = []string{"proxy.golang.org"}
		w := newWorld(t, c)
		w.enter(t, "agent:coder:a")
		l, err := w.connect(t.Context(), "proxy.golang.org")
		if err != nil || l.Spend(little+1) != nil {
			t.Errorf("a host of a pack that is listed, too: %v", err)
		}
		l.End(netguard.Connection{})
	})
}
