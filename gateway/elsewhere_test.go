package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/store"
)

// verifyHome checks the record of a home that nobody uses, against a file of checkpoints if one is named.
func verifyHome(t *testing.T, home, against string) (audit.Report, error) {
	t.Helper()
	key, err := audit.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	var elsewhere []audit.Seal
	if against != "" {
		text, err := os.ReadFile(against)
		if err != nil {
			t.Fatal(err)
		}
		if elsewhere, err = audit.ReadStatements(bytes.NewReader(text), key); err != nil {
			t.Fatal(err)
		}
	}
	db, err := store.OpenReader(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	return audit.Verify(t.Context(), store.NewAuditReader(db), key, elsewhere)
}

// TestAWipedRecord deletes the whole record between two runs: the next one says so, keeps it, and the checkpoints that have left
// show it for ever.
func TestAWipedRecord(t *testing.T) {
	options, kept := optionsFor(shortHome(t), "127.0.0.1:0"), filepath.Join(t.TempDir(), "checkpoints")
	var log bytes.Buffer
	options.Log = slog.New(slog.NewTextHandler(&log, nil))
	settings := fmt.Appendf(nil, `{"teg": {"audit": {"checkpoints": {"file": %q}}}}`, kept)
	if err := os.MkdirAll(options.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(options.Home, "toolward.jsonc"), settings, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() *Gateway {
		t.Helper()
		g, err := Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	first := run()
	for range 5 {
		if _, err := first.audit.Append(t.Context(), audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "work"}}); err != nil {
			t.Fatal(err)
		}
	}
	if words := first.notices(); len(words) != 0 {
		t.Errorf("the first start says %q", words)
	}
	first.Close()
	if report, err := verifyHome(t, options.Home, kept); err != nil || report.Compared == 0 {
		t.Fatalf("before: %+v, %v", report, err)
	}

	db, err := store.Open(t.Context(), options.Home, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), true, func(tx *store.Tx) error {
		_, err := tx.Exec(`DELETE FROM audit; DELETE FROM audit_seals; DELETE FROM audit_times`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyHome(t, options.Home, ""); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("the wiped record: %v", err)
	}

	log.Reset()
	second := run()
	defer second.Close()
	anomalies, err := second.audit.Query(t.Context(), audit.Filter{Type: audit.TypeAnomaly})
	if err != nil || len(anomalies) != 1 || !strings.Contains(anomalies[0].JSON, "everything was deleted") {
		t.Errorf("in the record: %+v, %v", anomalies, err)
	}
	if words := second.notices(); len(words) != 1 || !strings.Contains(words[0], "everything was deleted") || !strings.Contains(log.String(), "teg.audit_gap") {
		t.Errorf("notices %q, log:\n%s", words, log.String())
	}
	if _, err := verifyHome(t, options.Home, kept); err == nil || !strings.Contains(err.Error(), "kept elsewhere") {
		t.Errorf("against the checkpoints: %v", err)
	}
}
