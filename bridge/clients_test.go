package bridge

import "testing"

// A row with a gap would be a client that is half guarded: events without a hook, or a hook that nobody has seen blocking.
func TestEveryClientIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range clients {
		if c.name == "" || c.title == "" || c.directory == "" || len(c.tools) == 0 || len(c.events) == 0 ||
			c.answer == nil || c.managed == nil || c.canary == nil || c.blocks == nil {
			t.Errorf("%s: something is missing in %+v", c.name, *c)
		}
		if seen[c.name] || clientNamed(c.name) != c {
			t.Errorf("%s is there twice", c.name)
		}
		seen[c.name] = true
		for old, name := range c.aliases {
			if _, known := c.tools[name]; !known {
				t.Errorf("%s: %s stands for %s, which is no tool", c.name, old, name)
			}
		}
		if c.blocks(nil) || c.blocks([]byte("{}")) {
			t.Errorf("%s: silence counts as blocking", c.name)
		}
	}
	if clientNamed("nobody") != nil || len(NativeTools("nobody")) > 0 {
		t.Error("an unknown client has a row")
	}
}
