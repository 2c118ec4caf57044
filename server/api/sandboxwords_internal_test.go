package api

import (
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox/fleet"
)

func TestWordsOfSandboxes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 312 << 20: "312 MiB", 1023 << 20: "1.0 GiB", 4 << 30: "4 GiB", 1340 << 20: "1.3 GiB", 10 << 40: "10 TiB",
	} {
		if got := sizeWords(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", 90 * time.Second: "1 min", 24 * time.Hour: "24 h", 25*time.Hour + 3*time.Minute: "25 h 3 min", 50 * time.Hour: "2 days",
	} {
		if got := AgoWords(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	half, over := 0.5, 2.2
	for _, c := range []struct {
		usage fleet.Usage
		want  figure
	}{
		{fleet.Usage{}, figure{Text: "–"}},
		{fleet.Usage{Busy: &half, Processors: 2}, figure{"25 % of 2 processors", "0.250", "1"}},
		{fleet.Usage{Busy: &half, Processors: 0.5}, figure{"100 % of 0.5 processors", "1.000", "1"}},
		{fleet.Usage{Busy: &over, Processors: 2}, figure{"100 % of 2 processors", "1.000", "1"}},
		{fleet.Usage{Busy: &half}, figure{Text: "50 % of one processor"}},
	} {
		if got := busyFigure(&c.usage); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

// What is not known is never shown as zero.
func TestFiguresThatAreNotKnown(t *testing.T) {
	one := Sandbox{Info: fleet.Info{Running: true, Limits: fleet.ShownLimits{Memory: 1 << 30}}}
	for note, usage := range map[string]*fleet.Usage{"no answer": nil, "gone away": {Problem: "gone away"}} {
		one.Usage = usage
		f := FiguresOf(&one, time.Now())
		if f.CPU.Text != "–" || f.Memory.Text != "–" || f.Pids.Text != "–" || f.Note != note || f.Memory.Max != "" {
			t.Errorf("%+v", f)
		}
	}
	one.Usage = &fleet.Usage{At: time.Now(), Memory: 2 << 30, Pids: 3, OOMKills: 2, Cache: 5 << 20}
	f := FiguresOf(&one, time.Now())
	if f.Memory != (figure{"2 GiB of 1 GiB", "1073741824", "1073741824"}) || f.Pids.Text != "3" || !strings.Contains(f.Note, "memory ran out 2 ×") || !strings.Contains(f.Note, "5 MiB") {
		t.Errorf("%+v", f)
	}
}
