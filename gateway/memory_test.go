package gateway

import "testing"

func TestGarbageIsBounded(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name string
		live uint64
		want int
	}{
		{"nothing collected yet", 0, 400},
		{"a small daemon", 3 * mib, 400},
		{"a few hundred approvals", 8 * mib, 200},
		{"between two steps", 9 * mib, 150},
		{"as much as is in use", 16 * mib, 100},
		{"never less than is usual", 500 * mib, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := collectAt(test.live); got != test.want {
				t.Errorf("%d bytes in use: %d %%, want %d %%", test.live, got, test.want)
			}
		})
	}
}
