package gateway

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// benchDaemon is every part of a gateway, wired by the program itself, in this process and with a home of its own.
func benchDaemon(b *testing.B) *Gateway {
	b.Helper()
	d := openDaemon(b)
	b.Cleanup(d.Close)
	return d
}

func openDaemon(b *testing.B) *Gateway {
	b.Helper()
	d, err := Open(context.Background(), optionsFor(benchHome(b), "127.0.0.1:0"))
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// benchHome is a person's home with a project in it.
func benchHome(b *testing.B) string {
	b.Helper()
	home := shortHome(b)
	sources := filepath.Join(home, "project", "src", "server", "handlers")
	if err := os.MkdirAll(sources, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sources, "list.go"), []byte("package handlers\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	return home
}

// benchWorkspace is the project in the home of a benchDaemon.
func (g *Gateway) benchWorkspace() string { return filepath.Join(filepath.Dir(g.home), "project") }

// quantile sorts the durations and returns the one at q.
func quantile(took []time.Duration, q float64) time.Duration {
	slices.Sort(took)
	return took[int(q*float64(len(took)-1))]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
