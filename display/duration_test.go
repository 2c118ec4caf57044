package display

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", -time.Hour: "0 s", 999 * time.Microsecond: "0 s", 250 * time.Millisecond: "250 ms", time.Second: "1 s",
		59*time.Second + 999*time.Millisecond: "59 s", 2 * time.Minute: "2 min", 125 * time.Second: "2 min 5 s",
		3*time.Hour + 10*time.Minute + 59*time.Second: "3 h 10 min", 3*time.Hour + 5*time.Second: "3 h",
		24 * time.Hour: "1 day", 51 * time.Hour: "2 days 3 h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}
