package gateway

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// shortHome is a home of a person whose socket has a path that every system can bind, and whose commands run on this
// machine unless the configuration says otherwise.
func shortHome(t testing.TB) string {
	t.Helper()
	home, err := os.MkdirTemp("", "tw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HOME", home)
	live.Unsandboxed(t, filepath.Join(home, ".toolward"))
	return home
}

func optionsFor(home, listen string) Options {
	return Options{Home: filepath.Join(home, ".toolward"), Doors: true, Listen: listen}
}

func TestADaemonLeavesItsHomeToTheNext(t *testing.T) {
	home := shortHome(t)
	for range 2 {
		d, err := Open(context.Background(), optionsFor(home, "127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		d.Close() // without ever having served
	}
}

func TestAStartThatFailsLeavesNothingOpen(t *testing.T) {
	home := shortHome(t)
	if _, err := Open(context.Background(), optionsFor(home, "no such address")); err == nil {
		t.Fatal("it listens nowhere, and says nothing")
	}
	d, err := Open(context.Background(), optionsFor(home, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
}

// Whoever mistypes the first configuration, mends it and starts again has started for the first time.
func TestAFirstStartThatFailsDoesNotMakeAnOlderHome(t *testing.T) {
	home := shortHome(t)
	options := optionsFor(home, "127.0.0.1:0")
	if err := os.RemoveAll(filepath.Join(options.Home, "sandbox")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(options.Home, "toolward.jsonc")
	if err := os.WriteFile(file, []byte(`{ "teg": { "wrong": true } }`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), options); err == nil {
		t.Fatal("it starts with a wrong configuration")
	}
	// No engine is asked: what this machine can do is not what is tested.
	if err := os.WriteFile(file, []byte(`{ "agents": { "defaults": { "sandbox": { "mode": "non-main" } } } }`), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !d.machine.Due {
		t.Errorf("%+v", d.machine)
	}
}
