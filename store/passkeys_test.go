package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/store"
)

// What is read after a restart is what was saved; what a passkey was made with does not change by saving it again.
func TestPasskeys(t *testing.T) {
	home, ctx := t.TempDir(), t.Context()
	db, err := store.Open(ctx, home, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1795235236132)
	want := identity.PasskeyRecord{
		Passkey: identity.Passkey{
			ID: "p-1", Name: "phone", Site: "localhost", Synced: true, Created: at, CreatedBy: "owner (console)", Used: at.Add(time.Hour), Suspect: at.Add(2 * time.Hour),
		},
		Credential: []byte{1}, Handle: []byte{2}, Key: []byte{3}, Transports: []string{"internal", "hybrid"}, Count: 1<<32 - 1, Backup: true,
	}
	first := want
	first.Name, first.Count, first.Used, first.Suspect, first.Backup = "new", 1, time.Time{}, time.Time{}, false
	other := first
	other.ID, other.Credential, other.Transports = "p-2", []byte{9}, nil
	s := store.NewPasskeys(db)
	changed := want
	changed.Key, changed.Credential, changed.Site = []byte{66}, []byte{66}, "evil.example"
	for _, r := range []identity.PasskeyRecord{first, other, changed} {
		if err := s.SavePasskey(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	same := other
	same.ID, same.Credential = "p-3", []byte{1}
	if err := s.SavePasskey(ctx, same); err == nil {
		t.Error("one credential was kept twice")
	}
	if err := s.RemovePasskey(ctx, "p-2"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = store.Open(ctx, home, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got, err := store.NewPasskeys(db).Passkeys(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]identity.PasskeyRecord{want}, got); diff != "" {
		t.Error(diff)
	}
}
