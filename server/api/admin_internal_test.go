package api

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/store"
)

// TestNoteWhoeverGoesAway records what somebody did also if they hang up before it is written: nobody adds a passkey or
// a token without a trace by closing the connection in time.
func TestNoteWhoeverGoesAway(t *testing.T) {
	home := t.TempDir()
	db, err := store.Open(t.Context(), home, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	records, err := db.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := audit.LoadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	same := func(text string) string { return text }
	log, err := audit.Open(t.Context(), records, audit.Options{Key: key, Redact: same, Escape: same})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s := &Server{audit: log, log: slog.New(slog.DiscardHandler)}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	s.Note(httptest.NewRequest("POST", "/", nil).WithContext(gone), audit.TypeConfig, map[string]any{"event": "passkey-added"})
	if kept, err := log.Query(t.Context(), audit.Filter{Type: audit.TypeConfig}); err != nil || len(kept) != 1 {
		t.Errorf("%d records, %v", len(kept), err)
	}
}
