package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
)

// The record says which configuration counted when, who put it in force, and what was tried in vain.
func TestTheRecordFollowsTheConfiguration(t *testing.T) {
	home, err := os.MkdirTemp("", "tw") // short: the paths of sockets hold about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("HOME", home)
	d, err := newDaemon(t.Context(), daemonOptions{
		home: filepath.Join(home, ".toolward"), listen: "127.0.0.1:0", log: slog.New(slog.DiscardHandler), stop: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	change := func(text string) (revision string) {
		if err := os.WriteFile(d.configPath(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d.config.Reload()
		if pending := d.config.Pending(); pending != nil {
			return pending.Hash
		}
		return ""
	}
	if err := d.ApplyChange(t.Context(), change(`{"tools": {"deny": ["exec"]}, "config": {"autoApply": true}}`), "alice"); err != nil {
		t.Fatal(err)
	}
	if waiting := change(`{"tools": {"deny": ["exec"]}}`); waiting != "" {
		t.Fatal("autoApply does not apply")
	}
	behind := change(strings.Repeat("// nothing to see here\n", 5000) + `{"tools": {"deny": []}}`)
	if err := d.ApplyChange(t.Context(), behind, "alice"); !errors.Is(err, config.ErrTooLong) {
		t.Errorf("a change that could not be shown: %v", err)
	}
	d.events.close()
	defer func() { d.events = nil; d.close() }()

	records, err := d.audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, r := range slices.Backward(records) {
		var record struct {
			Data struct{ Event, By string }
		}
		if err := json.Unmarshal([]byte(r.JSON), &record); err != nil {
			t.Fatal(err)
		}
		said = append(said, strings.TrimSpace(record.Data.Event+" "+record.Data.By))
	}
	// What people do is written at once, the rest behind it: the order between the two is not fixed.
	slices.Sort(said)
	want := []string{"approved alice", "approved alice", "in force", "in force", "in force at start", "proposed", "proposed", "refused"}
	if !slices.Equal(said, want) {
		t.Errorf("the record says %q, want %q", said, want)
	}
}
