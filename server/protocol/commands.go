package protocol

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/toolward/toolward/command"
)

// commandsParams are the parameters of exec.approvals.set.
type commandsParams struct {
	File     json.RawMessage `json:"file"`
	BaseHash string          `json:"baseHash"`
}

func (r *call) getCommands(ctx context.Context, _ *struct{}) (any, *Error) {
	if r.server.commands == nil {
		return nil, unavailable("this gateway keeps no %s", command.ApprovalsFileName)
	}
	snapshot, err := r.server.commands.Ensure(ctx)
	if err != nil {
		return nil, r.commandsError(err)
	}
	return commandsWire(snapshot)
}

func (r *call) setCommands(ctx context.Context, p *commandsParams) (any, *Error) {
	if r.server.commands == nil {
		return nil, unavailable("this gateway keeps no %s", command.ApprovalsFileName)
	}
	snapshot, err := r.server.commands.Set(ctx, p.File, p.BaseHash, func(changes []string) error {
		// Recorded before it is made: nothing gets looser without a trace.
		return r.note(ctx, map[string]any{"event": "exec-approvals changed", "changes": changes})
	})
	if err != nil {
		return nil, r.commandsError(err)
	}
	return commandsWire(snapshot)
}

// commandsWire is the file as clients see it: of the socket only where it is, never its token.
func commandsWire(s *command.Snapshot) (any, *Error) {
	raw, err := json.Marshal(s.File)
	if err != nil {
		return nil, unavailable("the file cannot be shown")
	}
	return map[string]any{"path": s.Path, "exists": s.Exists, "hash": s.Hash, "file": json.RawMessage(raw)}, nil
}

func (r *call) commandsError(err error) *Error {
	var corrupt *command.CorruptError
	var wrong *command.InvalidContent
	switch {
	case errors.Is(err, command.ErrBaseRequired):
		return invalid("exec approvals base hash required; re-run exec.approvals.get and retry")
	case errors.Is(err, command.ErrBaseChanged):
		return invalid("exec approvals changed since last load; re-run exec.approvals.get and retry")
	case errors.As(err, &wrong):
		return invalid("invalid exec.approvals.set params: %s", err)
	case errors.As(err, &corrupt):
		return unavailable("%s", err)
	}
	r.server.log.Error("the allowed commands could not be changed", "err", err)
	return unavailable("the file cannot be read or written now")
}
