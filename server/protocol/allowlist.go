package protocol

import (
	"context"
	"encoding/json"

	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/desk"
)

// allowlistParams are the parameters of exec.approvals.set.
type allowlistParams struct {
	File     json.RawMessage `json:"file"`
	BaseHash string          `json:"baseHash"`
}

func (r *call) getAllowlist(ctx context.Context, _ *struct{}) (any, *Error) {
	return r.allowlistAnswer(r.server.desk.Allowlist(ctx, r.visitor()))
}

func (r *call) setAllowlist(ctx context.Context, p *allowlistParams) (any, *Error) {
	return r.allowlistAnswer(r.server.desk.ReplaceAllowlist(ctx, r.visitor(), p.File, p.BaseHash))
}

// allowlistAnswer is the file as clients see it: of the socket only where it is, never its token.
func (r *call) allowlistAnswer(s *allowlist.Snapshot, err error) (any, *Error) {
	if err != nil {
		return nil, r.allowlistError(err)
	}
	raw, err := json.Marshal(s.File)
	if err != nil {
		return nil, unavailable("the file cannot be shown")
	}
	return map[string]any{"path": s.Path, "exists": s.Exists, "hash": s.Hash, "file": json.RawMessage(raw)}, nil
}

func (r *call) allowlistError(err error) *Error {
	switch desk.CodeOf(err) {
	case desk.NotAllowed:
		return r.personNeeded(r.method.does.Right())
	case desk.NotKept, desk.Corrupt:
		return unavailable("%s", err)
	case desk.BaseRequired:
		return invalid("exec approvals base hash required; re-run exec.approvals.get and retry")
	case desk.BaseChanged:
		return invalid("exec approvals changed since last load; re-run exec.approvals.get and retry")
	case desk.Invalid:
		return invalid("invalid exec.approvals.set params: %s", err)
	}
	r.server.log.Error("the allowed commands could not be changed", "err", err)
	return unavailable("the file cannot be read or written now")
}
