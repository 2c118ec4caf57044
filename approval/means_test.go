package approval

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward"
)

// TestAlwaysSaysWhatLetThePersonIn: what lasts can be taken back together with the device or passkey that it was given with.
func TestAlwaysSaysWhatLetThePersonIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		carol := &person{name: "carol", means: "device:phone"}
		m := open(t, newMemory(), nil)
		attach(t, m, carol)
		attach(t, m, alice)
		for who, want := range map[*person]string{carol: "device:phone", alice: ""} {
			q := question(nil)
			q.Binding += who.name
			id := detached(t, m, q)
			if _, err := answer(m, who, id, "allow-always"); err != nil {
				t.Fatal(err)
			}
			grants := m.Grants()
			if len(grants) != 1 || grants[0].GivenBy != want {
				t.Errorf("%s: %+v", who.name, grants)
			}
			if _, err := m.DropGrants(t.Context(), "test", func(*Grant) bool { return true }); err != nil {
				t.Fatal(err)
			}
		}
		var kept []toolward.CommandEntry
		m = open(t, newMemory(), func(o *Options) {
			o.Remember = func(_ context.Context, _ string, entries []toolward.CommandEntry) error { kept = entries; return nil }
		})
		d := &Details{Agent: "coder", Level: toolward.Normal}
		given := []toolward.CommandEntry{{Pattern: "/usr/bin/jq", GivenBy: "device:forged"}}
		if _, err := m.extend(t.Context(), d, given, "passkey:p1"); err != nil || kept[0].GivenBy != "passkey:p1" || given[0].GivenBy != "device:forged" {
			t.Errorf("%v, %+v", err, kept)
		}
	})
}
