package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/store"
)

// What is read after a restart is what was saved.
func TestPairedDevices(t *testing.T) {
	home, ctx := t.TempDir(), t.Context()
	db, err := store.Open(ctx, home, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1795235236132)
	want := identity.PairedDevice{
		ID: "d1", Key: []byte{1, 2, 3}, Name: "phone", Roles: []identity.Role{identity.RoleOperator}, Scopes: []string{"operator.read"},
		Vouched: []string{"operator.read"}, Person: "owner (console)", Platform: "ios", Family: "iphone", ClientID: "openclaw-ios",
		Mode: "ui", IP: "10.0.0.5", Created: at, Approved: at, Seen: at,
		Tokens: map[identity.Role]identity.DeviceToken{identity.RoleOperator: {Salt: []byte{4}, Scopes: []string{"operator.read"}, Created: at.UTC()}},
	}
	s := store.NewPaired(db)
	other := want
	other.ID = "d2"
	for _, d := range []identity.PairedDevice{{ID: "d1", Key: []byte{9}}, want, other} {
		if err := s.SavePairedDevice(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RemovePairedDevice(ctx, "d2"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = store.Open(ctx, home, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	got, err := store.NewPaired(db).PairedDevices(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]identity.PairedDevice{want}, got); diff != "" {
		t.Error(diff)
	}
}
