package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/server/door"
)

// Commands is the answer of GET /v1/exec-approvals: the file, without its token.
type Commands struct {
	Path     string        `json:"path"`
	Exists   bool          `json:"exists"`
	Hash     string        `json:"hash"` // of the exact bytes: what a change must bring back
	File     *command.File `json:"file"`
	Corrupt  string        `json:"corrupt,omitempty"` // why the file cannot be used: all commands are refused
	Problems []string      `json:"problems,omitempty"`
}

// CommandsChange is the body of PUT /v1/exec-approvals.
type CommandsChange struct {
	File     json.RawMessage `json:"file"`
	BaseHash string          `json:"baseHash,omitempty"`
}

// CommandEntry is the body of POST /v1/exec-approvals/allowlist.
type CommandEntry struct {
	Agent   string   `json:"agent"` // "" is every agent
	Pattern string   `json:"pattern"`
	Effects []string `json:"effects,omitempty"`
	Argv    []string `json:"argv,omitempty"`
}

// AllowlistChanged is the answer to a change of the allowlist.
type AllowlistChanged struct {
	Changed bool     `json:"changed"` // false: it was so already
	Changes []string `json:"changes,omitempty"`
}

func (s *Server) apiCommands(w http.ResponseWriter, r *http.Request, _ Caller) error {
	if s.commands == nil {
		return noCommands()
	}
	snapshot, err := s.commands.Ensure(r.Context())
	if err != nil {
		return answerCommands(err)
	}
	return sendCommands(w, snapshot)
}

func noCommands() error {
	return door.NewProblem(http.StatusNotFound, "", "this gateway keeps no %s", command.ApprovalsFileName)
}

func sendCommands(w http.ResponseWriter, snapshot *command.Snapshot) error {
	answer := Commands{
		Path: snapshot.Path, Exists: snapshot.Exists, Hash: snapshot.Hash, File: snapshot.File, Problems: snapshot.Problems,
	}
	if snapshot.Corrupt != nil {
		answer.Corrupt = snapshot.Corrupt.Error()
	}
	door.WriteJSON(w, http.StatusOK, answer)
	return nil
}

func (s *Server) apiSetCommands(w http.ResponseWriter, r *http.Request, c Caller) error {
	if s.commands == nil {
		return noCommands()
	}
	var body CommandsChange
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	snapshot, err := s.commands.Set(r.Context(), body.File, body.BaseHash, func(changes []string) error {
		return s.recordCommands(r, c, changes)
	})
	if err != nil {
		return answerCommands(err)
	}
	return sendCommands(w, snapshot)
}

func (s *Server) apiAllowCommand(w http.ResponseWriter, r *http.Request, c Caller) error {
	var body CommandEntry
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	entry := command.Entry{Pattern: body.Pattern, Effects: body.Effects, Argv: body.Argv}
	if err := entry.Check(); err != nil {
		return answerCommands(err)
	}
	return s.changeAllowlist(w, r, c, func(f *command.File) bool {
		return f.Allow(agentOrAny(body.Agent), entry, time.Now().UnixMilli())
	})
}

func (s *Server) apiDisallowCommand(w http.ResponseWriter, r *http.Request, c Caller) error {
	query := r.URL.Query()
	return s.changeAllowlist(w, r, c, func(f *command.File) bool {
		return f.Remove(agentOrAny(query.Get("agent")), query.Get("pattern"))
	})
}

func agentOrAny(agent string) string {
	if agent = strings.TrimSpace(agent); agent != "" {
		return agent
	}
	return command.AnyAgent
}

func (s *Server) changeAllowlist(w http.ResponseWriter, r *http.Request, c Caller, change func(*command.File) bool) error {
	if s.commands == nil {
		return noCommands()
	}
	answer := AllowlistChanged{}
	before := s.commands.Current().File
	_, err := s.commands.Update(r.Context(), func(f *command.File) (bool, error) {
		if answer.Changed = change(f); !answer.Changed {
			return false, nil
		}
		answer.Changes = command.Changes(before, f)
		return true, s.recordCommands(r, c, answer.Changes)
	})
	if err != nil {
		return answerCommands(err)
	}
	door.WriteJSON(w, http.StatusOK, answer)
	return nil
}

// recordCommands records a change before it is made: nothing gets looser without a trace.
func (s *Server) recordCommands(r *http.Request, c Caller, changes []string) error {
	event := audit.Event{Type: audit.TypeConfig, Durable: true, Data: map[string]any{
		"event": "exec-approvals changed", "by": c.By.Name(), "changes": changes,
	}}
	if _, err := s.audit.Append(r.Context(), event); err != nil {
		s.log.Error("a change of the allowed commands could not be recorded, so it is not made", "err", err)
		return door.NewProblem(http.StatusServiceUnavailable, "see the daemon's log", "the change could not be recorded, so it was not made")
	}
	return nil
}

func answerCommands(err error) error {
	var corrupt *command.CorruptError
	var invalid *command.InvalidContent
	var told *door.Problem
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, command.ErrBaseRequired), errors.Is(err, command.ErrBaseChanged):
		return door.NewProblem(http.StatusConflict, "load it again, look at what changed, and send the new hash", "%s", err.Error())
	case errors.As(err, &invalid):
		return door.NewProblem(http.StatusBadRequest, "docs/exec-approvals.md describes the file", "%s", err.Error())
	case errors.As(err, &corrupt):
		return door.NewProblem(http.StatusConflict, "mend the file, or replace it with: toolward approvals set", "%s", err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return door.NewProblem(http.StatusServiceUnavailable, "try again", "%s", err.Error())
	}
	return door.NewProblem(http.StatusInternalServerError, "check the file and its directory", "%s", err.Error())
}
