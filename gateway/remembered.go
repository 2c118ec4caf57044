package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/store"
)

// remembered is the configuration last in force: the one that is signed with the key of the home. The database has it, too, but
// whoever can write there while no gateway runs would otherwise choose what the next start takes for a person's word.
type remembered struct {
	rows    *store.Configuration
	keys    *authority.Keys
	warning string // what was found at the start
}

// LastApplied is what a person confirmed last. If what was signed cannot be trusted that is nothing, so that the defaults are in
// force and the file waits: what it would change is shown, whoever wrote it.
func (r *remembered) LastApplied(ctx context.Context) (source []byte, known bool, err error) {
	if r.keys.Trouble() != nil {
		return []byte("{}"), true, nil
	}
	row, known, err := r.rows.LastApplied(ctx)
	if err != nil {
		return nil, false, err
	}
	signed := r.keys.About(config.FileName).Accepted()
	switch {
	case signed == nil:
		return row, known, nil // nobody has signed in since the home has a key
	case !known:
		r.warning = "the configuration last in force was removed from the state while no gateway ran; the one that is signed counts"
	case !bytes.Equal(row, signed):
		r.warning = "the configuration last in force was changed in the state while no gateway ran; the one that is signed counts"
	}
	return signed, true, nil
}

// RememberApplied signs a configuration and keeps it. While the key is locked it is kept only if it is the signed one, or if
// nothing was ever signed.
func (r *remembered) RememberApplied(ctx context.Context, source []byte) error {
	if err := r.keys.Trouble(); err != nil {
		return fmt.Errorf("%w: %w", config.ErrNotKept, err)
	}
	about := r.keys.About(config.FileName)
	signed := about.Accepted()
	locked := about.May() != nil
	switch {
	case signed != nil && bytes.Equal(signed, source), signed == nil && locked:
	case locked:
		return fmt.Errorf("%w: %w", config.ErrNotKept, authority.ErrLocked)
	default:
		if err := about.Accept(ctx, append([]byte{}, source...)); err != nil {
			return err
		}
	}
	return r.rows.RememberApplied(ctx, source)
}

// rememberedAtStart has the record tell what was found.
func (g *Gateway) rememberedAtStart() {
	if g.memory.warning == "" {
		return
	}
	g.log.Error(g.memory.warning)
	g.events.put(audit.Event{Type: audit.TypeConfig, Data: map[string]any{"event": "remembered configuration altered", "error": g.memory.warning}})
}

// homeKey signs, as soon as the passphrase has opened the key, the configuration in force: one from before there was a key, and one
// that a person put in force while nobody could sign.
type homeKey struct{ g *Gateway }

// Unlock opens the key.
func (k homeKey) Unlock(passphrase string) error {
	if err := k.g.authority.Unlock(passphrase); err != nil {
		return err
	}
	if err := k.g.config.Remember(); err != nil && !errors.Is(err, config.ErrNotKept) {
		k.g.log.Error("the configuration in force is not signed: it waits again after a restart", "err", err)
	}
	return nil
}

// Reseal gives the key another passphrase.
func (k homeKey) Reseal(old, fresh string) (commit func() error, err error) {
	return k.g.authority.Reseal(old, fresh)
}
