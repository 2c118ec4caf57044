package signed

import (
	"context"
	"slices"

	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/identity"
)

// Devices keeps paired devices. What a device has without a person's word, any program of this machine gets that knows the gateway's
// shared secret; only what somebody vouched for is signed.
type Devices struct {
	identity.PairStore
	keys *authority.Keys
	roll *authority.Roll
	rows map[string]authority.Row // of those that somebody vouched for, by id; changes come one at a time
}

// NewDevices signs what rows keeps.
func NewDevices(rows identity.PairStore, keys *authority.Keys) *Devices {
	return &Devices{PairStore: rows, keys: keys, roll: keys.Roll("devices", "paired devices"), rows: map[string]authority.Row{}}
}

func deviceEntry(d *identity.PairedDevice) authority.Entry {
	return authority.Entry{Name: d.ID[:min(len(d.ID), 12)] + " (" + d.Name + ")", Row: authority.RowOf(struct {
		ID      string
		Key     []byte
		Vouched []string
		Person  string
	}{d.ID, d.Key, slices.Sorted(slices.Values(d.Vouched)), d.Person})}
}

func vouched(d *identity.PairedDevice) bool { return len(d.Vouched) > 0 || d.Person != "" }

// PairedDevices returns the devices, each with what a person vouched for.
func (s *Devices) PairedDevices(ctx context.Context) ([]identity.PairedDevice, error) {
	all, err := s.PairStore.PairedDevices(ctx)
	if err != nil {
		return nil, err
	}
	var entries []authority.Entry
	for i := range all {
		if vouched(&all[i]) {
			entries = append(entries, deviceEntry(&all[i]))
		}
	}
	counts := s.roll.Load(entries)
	for i := range all {
		d := &all[i]
		if !vouched(d) {
			continue
		}
		if row := deviceEntry(d).Row; counts(row) {
			s.rows[d.ID] = row
			continue
		}
		d.Vouched, d.Person = nil, ""
		tidy(s.keys, func(ctx context.Context) error { return s.PairStore.SavePairedDevice(ctx, *d) })
	}
	return all, nil
}

// SavePairedDevice signs what a person vouches for now and did not before, and keeps the device.
func (s *Devices) SavePairedDevice(ctx context.Context, d identity.PairedDevice) error {
	old, had := s.rows[d.ID]
	if !vouched(&d) {
		if had {
			s.forget(d.ID)
		}
		return s.PairStore.SavePairedDevice(ctx, d)
	}
	entry := deviceEntry(&d)
	if had && old == entry.Row {
		return s.PairStore.SavePairedDevice(ctx, d)
	}
	if err := s.roll.Add(ctx, entry, old); err != nil {
		return err
	}
	s.rows[d.ID] = entry.Row
	err := s.PairStore.SavePairedDevice(ctx, d)
	if err != nil {
		s.forget(d.ID)
	}
	return err
}

// RemovePairedDevice forgets a device.
func (s *Devices) RemovePairedDevice(ctx context.Context, id string) error {
	s.forget(id)
	return s.PairStore.RemovePairedDevice(ctx, id)
}

func (s *Devices) forget(id string) {
	if row, had := s.rows[id]; had {
		delete(s.rows, id)
		s.roll.Remove(row)
	}
}
