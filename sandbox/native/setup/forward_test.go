package setup

import (
	"slices"
	"testing"
)

func TestForwardArgument(t *testing.T) {
	for _, targets := range [][]string{nil, {"host.toolward.internal:5432"}, {"host.toolward.internal:5432", "host.toolward.internal:6379"}} {
		if got, ok := ForwardsOf(ForwardTo(targets)); !ok || !slices.Equal(got, targets) {
			t.Errorf("%v: %v", targets, got)
		}
	}
	for _, other := range []string{"", "serve", "forwards", ":forward", "native"} {
		if _, ok := ForwardsOf(other); ok {
			t.Errorf("%q has the forwarder run", other)
		}
	}
}
