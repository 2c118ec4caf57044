package signed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/identity"
)

// People keeps tokens.
type People struct {
	identity.Store
	keys *authority.Keys
	roll *authority.Roll
	rows sync.Map // by id of the token
}

// NewPeople signs what rows keeps.
func NewPeople(rows identity.Store, keys *authority.Keys) *People {
	return &People{Store: rows, keys: keys, roll: keys.Roll("tokens", "tokens")}
}

func tokenRow(t *identity.TokenRecord) authority.Row {
	return authority.RowOf(struct {
		ID, Name, Agent, Workspace string
		Owner, Gateway             bool
		Hash                       [32]byte
		Created, Expires           int64
		By                         string
	}{t.ID, t.Name, t.Agent, t.Workspace, t.Owner, t.Gateway, t.Hash, ms(t.Created), ms(t.Expires), t.CreatedBy})
}

func tokenEntry(t *identity.TokenRecord) authority.Entry {
	return authority.Entry{Row: tokenRow(t), Ends: t.Expires, Name: t.ID + " (" + t.Prefix + ")"}
}

// AgentTokens returns the tokens that a person made.
func (p *People) AgentTokens(ctx context.Context) ([]identity.TokenRecord, error) {
	all, err := p.Store.AgentTokens(ctx)
	if err != nil {
		return nil, err
	}
	inForce := func(t *identity.TokenRecord) bool {
		return t.Revoked.IsZero() && (t.Expires.IsZero() || time.Now().Before(t.Expires))
	}
	entries := make([]authority.Entry, 0, len(all))
	for i := range all {
		p.rows.Store(all[i].ID, tokenRow(&all[i]))
		if inForce(&all[i]) {
			entries = append(entries, tokenEntry(&all[i]))
		}
	}
	counts := p.roll.Load(entries, ended(all, inForce, tokenRow)...)
	return slices.DeleteFunc(all, func(t identity.TokenRecord) bool {
		if !inForce(&t) || counts(tokenRow(&t)) {
			return false
		}
		tidy(p.keys, func(ctx context.Context) error {
			_, err := p.Store.RevokeAgentToken(ctx, t.ID, time.Now())
			return err
		})
		return true
	}), nil
}

// AddAgentToken signs and inserts a token.
func (p *People) AddAgentToken(ctx context.Context, t identity.TokenRecord) error {
	entry := tokenEntry(&t)
	if err := p.roll.Add(ctx, entry); err != nil {
		return err
	}
	p.rows.Store(t.ID, entry.Row)
	err := p.Store.AddAgentToken(ctx, t)
	if err != nil {
		p.roll.Remove(entry.Row)
	}
	return err
}

// RevokeAgentToken ends a token.
func (p *People) RevokeAgentToken(ctx context.Context, id string, at time.Time) (bool, error) {
	if row, known := p.rows.Load(id); known {
		p.roll.Remove(row.(authority.Row))
	}
	return p.Store.RevokeAgentToken(ctx, id, at)
}

// ended are the rows that are there and do not count any more.
func ended[T any](all []T, inForce func(*T) bool, row func(*T) authority.Row) (out []authority.Row) {
	for i := range all {
		if !inForce(&all[i]) {
			out = append(out, row(&all[i]))
		}
	}
	return out
}
