package signed

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/store"
)

// Look says which rows of a database that was opened for reading only are not as people left them.
func Look(ctx context.Context, keys *authority.Keys, db *sql.DB) ([]string, error) {
	_, tokens := NewPeople(tokenReader{db: db}, keys).AgentTokens(ctx)
	_, passkeys := NewPasskeys(passkeyReader{db: db}, keys).Passkeys(ctx)
	_, devices := NewDevices(deviceReader{db: db}, keys).PairedDevices(ctx)
	_, answers := NewAnswers(answerReader{db: db}, keys).Grants(ctx, time.Now().UnixMilli())
	return keys.Findings(), errors.Join(tokens, passkeys, devices, answers)
}

// The readers take nothing away.

type tokenReader struct {
	identity.Store
	db *sql.DB
}

func (r tokenReader) AgentTokens(ctx context.Context) ([]identity.TokenRecord, error) {
	return store.AgentTokensIn(ctx, r.db)
}

func (tokenReader) RevokeAgentToken(context.Context, string, time.Time) (bool, error) {
	return false, nil
}

type passkeyReader struct {
	identity.PasskeyStore
	db *sql.DB
}

func (r passkeyReader) Passkeys(ctx context.Context) ([]identity.PasskeyRecord, error) {
	return store.PasskeysIn(ctx, r.db)
}

func (passkeyReader) RemovePasskey(context.Context, string) error { return nil }

type deviceReader struct {
	identity.PairStore
	db *sql.DB
}

func (r deviceReader) PairedDevices(ctx context.Context) ([]identity.PairedDevice, error) {
	return store.PairedDevicesIn(ctx, r.db)
}

func (deviceReader) SavePairedDevice(context.Context, identity.PairedDevice) error { return nil }

type answerReader struct {
	AnswerRows
	db *sql.DB
}

func (r answerReader) UnexpiredGrants(ctx context.Context, nowMs int64) ([]*approval.Grant, error) {
	return store.UnexpiredGrantsIn(ctx, r.db, nowMs)
}

func (answerReader) RevokeGrants(context.Context, []string, string, int64) error { return nil }
