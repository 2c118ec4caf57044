package display

import (
	"math"
	"testing"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1 kB", 1999: "1.9 kB", 104_857_601: "104 MB", 6_100_000_000: "6.1 GB", 10_900_000_000: "10 GB",
		math.MaxInt64: "9.2 EB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}
