package identity

import (
	"os"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	rest := " S 41 42 43 34816 42 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1"
	for name, tt := range map[string]struct {
		stat string
		ok   bool
	}{
		"plain":              {"42 (bash)" + rest, true},
		"brackets in a name": {"42 (a) Z 1 (b)" + rest, true},
		"new line in a name": {"42 (a\nb)" + rest, true},
		"zombie":             {"42 (bash)" + strings.Replace(rest, "S", "Z", 1), false},
		"cut short":          {"42 (bash) S 41 42", false},
		"no name":            {"42 bash" + rest, false},
		"not a number":       {"42 (bash)" + strings.Replace(rest, "777", "x", 1), false},
		"empty":              {"", false},
	} {
		p, err := parseStat(42, []byte(tt.stat))
		if (err == nil) != tt.ok || tt.ok && (p.Parent != 41 || p.Session != 43 || p.TTY != 34816 || p.Start != 777) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func BenchmarkRegisterAgent(b *testing.B) {
	me, err := System().Process(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	k := &Keeper{processes: System()}
	for b.Loop() {
		if err := k.RegisterAgent(me); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInspectProcess(b *testing.B) {
	for b.Loop() {
		if _, err := System().Process(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}
