package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// shortHome is a home of a person whose socket has a path that every system can bind.
func shortHome(t testing.TB) string {
	t.Helper()
	home, err := os.MkdirTemp("", "tw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HOME", home)
	return home
}

func optionsFor(home, listen string) daemonOptions {
	return daemonOptions{home: filepath.Join(home, ".toolward"), listen: listen, log: slog.New(slog.DiscardHandler), stop: func() {}}
}

func TestADaemonLeavesItsHomeToTheNext(t *testing.T) {
	home := shortHome(t)
	for range 2 {
		d, err := newDaemon(context.Background(), optionsFor(home, "127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		d.close() // without ever having served
	}
}

func TestAStartThatFailsLeavesNothingOpen(t *testing.T) {
	home := shortHome(t)
	if _, err := newDaemon(context.Background(), optionsFor(home, "no such address")); err == nil {
		t.Fatal("it listens nowhere, and says nothing")
	}
	d, err := newDaemon(context.Background(), optionsFor(home, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	d.close()
}
