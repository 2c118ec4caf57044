package signed

import (
	"context"
	"slices"

	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/identity"
)

// Passkeys keeps passkeys.
type Passkeys struct {
	identity.PasskeyStore
	keys *authority.Keys
	roll *authority.Roll
	rows map[string]authority.Row // by id; changes come one at a time
}

// NewPasskeys signs what rows keeps.
func NewPasskeys(rows identity.PasskeyStore, keys *authority.Keys) *Passkeys {
	return &Passkeys{PasskeyStore: rows, keys: keys, roll: keys.Roll("passkeys", "passkeys"), rows: map[string]authority.Row{}}
}

// passkeyRow leaves out what changes at each sign-in.
func passkeyRow(r *identity.PasskeyRecord) authority.Row {
	return authority.RowOf(struct {
		ID, Site                string
		Credential, Handle, Key []byte
		Synced                  bool
		Created                 int64
		By                      string
	}{r.ID, r.Site, r.Credential, r.Handle, r.Key, r.Synced, ms(r.Created), r.CreatedBy})
}

func passkeyEntry(r *identity.PasskeyRecord) authority.Entry {
	return authority.Entry{Row: passkeyRow(r), Name: r.ID + " (" + r.Name + ")"}
}

// Passkeys returns the passkeys that a person added.
func (p *Passkeys) Passkeys(ctx context.Context) ([]identity.PasskeyRecord, error) {
	all, err := p.PasskeyStore.Passkeys(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]authority.Entry, len(all))
	for i := range all {
		entries[i] = passkeyEntry(&all[i])
		p.rows[all[i].ID] = entries[i].Row
	}
	counts := p.roll.Load(entries)
	return slices.DeleteFunc(all, func(r identity.PasskeyRecord) bool {
		if counts(passkeyRow(&r)) {
			return false
		}
		tidy(p.keys, func(ctx context.Context) error { return p.PasskeyStore.RemovePasskey(ctx, r.ID) })
		return true
	}), nil
}

// SavePasskey signs a passkey that is new, and keeps it.
func (p *Passkeys) SavePasskey(ctx context.Context, r identity.PasskeyRecord) error {
	entry := passkeyEntry(&r)
	fresh := !p.roll.Has(entry.Row)
	if fresh {
		if err := p.roll.Add(ctx, entry); err != nil {
			return err
		}
	}
	p.rows[r.ID] = entry.Row
	err := p.PasskeyStore.SavePasskey(ctx, r)
	if err != nil && fresh {
		p.roll.Remove(entry.Row)
	}
	return err
}

// RemovePasskey forgets a passkey.
func (p *Passkeys) RemovePasskey(ctx context.Context, id string) error {
	if row, known := p.rows[id]; known {
		p.roll.Remove(row)
	}
	return p.PasskeyStore.RemovePasskey(ctx, id)
}
