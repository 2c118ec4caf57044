package api

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

// Commands is the answer of GET /v1/exec-approvals: the file, without its token.
type Commands struct {
	Path     string          `json:"path"`
	Exists   bool            `json:"exists"`
	Hash     string          `json:"hash"` // of the exact bytes: what a change must bring back
	File     *allowlist.File `json:"file"`
	Corrupt  string          `json:"corrupt,omitempty"` // why the file cannot be used: all commands are refused
	Problems []string        `json:"problems,omitempty"`
}

// ReadCommands reads the answer as its receiver gets it. The file is read as the gateway reads its own, leaving out what is
// none of it.
func ReadCommands(raw []byte) (*Commands, error) {
	var answer struct {
		Commands
		File json.RawMessage `json:"file"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("the allowlist: %w", err)
	}
	if answer.Corrupt != "" {
		return &answer.Commands, nil
	}
	file, _, err := allowlist.Parse(answer.File)
	if err != nil {
		return nil, fmt.Errorf("the allowlist: %w", err)
	}
	answer.Commands.File = file
	return &answer.Commands, nil
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
	Host    string   `json:"host,omitempty"` // gateway: on the machine also where other commands run in a sandbox
}

// OnMachine is the host of a [CommandEntry] for the machine itself.
const OnMachine = allowlist.OnMachine

// AllowlistChanged is the answer to a change of the allowlist.
type AllowlistChanged struct {
	Changed bool     `json:"changed"` // false: it was so already
	Changes []string `json:"changes,omitempty"`
}

func (s *Server) apiCommands(w http.ResponseWriter, r *http.Request, c Caller) error {
	return sendCommands(w)(s.desk.Allowlist(r.Context(), c.visitor()))
}

func (s *Server) apiSetCommands(w http.ResponseWriter, r *http.Request, c Caller) error {
	var body CommandsChange
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	return sendCommands(w)(s.desk.ReplaceAllowlist(r.Context(), c.visitor(), body.File, body.BaseHash))
}

// sendCommands sends the file, or says why not.
func sendCommands(w http.ResponseWriter) func(*allowlist.Snapshot, error) error {
	return func(snapshot *allowlist.Snapshot, err error) error {
		if err != nil {
			return allowlistProblem(err)
		}
		answer := Commands{
			Path: snapshot.Path, Exists: snapshot.Exists, Hash: snapshot.Hash, File: snapshot.File, Problems: snapshot.Problems,
		}
		if snapshot.Corrupt != nil {
			answer.Corrupt = snapshot.Corrupt.Error()
		}
		door.WriteJSON(w, http.StatusOK, answer)
		return nil
	}
}

func (s *Server) apiAllowCommand(w http.ResponseWriter, r *http.Request, c Caller) error {
	var body CommandEntry
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	entry := allowlist.Entry{Pattern: body.Pattern, Effects: body.Effects, Argv: body.Argv, Host: body.Host}
	return sendChange(w)(s.desk.AllowProgram(r.Context(), c.visitor(), body.Agent, entry))
}

func (s *Server) apiDisallowCommand(w http.ResponseWriter, r *http.Request, c Caller) error {
	query := r.URL.Query()
	return sendChange(w)(s.desk.DisallowProgram(r.Context(), c.visitor(), query.Get("agent"), query.Get("pattern")))
}

// sendChange sends what became of one entry, or says why not.
func sendChange(w http.ResponseWriter) func(desk.AllowlistChange, error) error {
	return func(change desk.AllowlistChange, err error) error {
		if err != nil {
			return allowlistProblem(err)
		}
		door.WriteJSON(w, http.StatusOK, AllowlistChanged{change.Changed, change.Changes})
		return nil
	}
}

func allowlistProblem(err error) error {
	status, hint := http.StatusInternalServerError, "check the file and its directory"
	switch desk.CodeOf(err) {
	case desk.NotAllowed:
		return Problem(err)
	case desk.NotKept:
		status, hint = http.StatusNotFound, ""
	case desk.Unrecorded:
		return door.NewProblem(http.StatusServiceUnavailable, "see the daemon's log", "the change could not be recorded, so it was not made")
	case desk.BaseRequired, desk.BaseChanged:
		status, hint = http.StatusConflict, "load it again, look at what changed, and send the new hash"
	case desk.Invalid:
		status, hint = http.StatusBadRequest, "docs/exec-approvals.md describes the file"
	case desk.Corrupt:
		status, hint = http.StatusConflict, "mend the file, or replace it with: toolward approvals set"
	case desk.TimedOut:
		status, hint = http.StatusServiceUnavailable, "try again"
	}
	return door.NewProblem(status, hint, "%s", err.Error())
}
