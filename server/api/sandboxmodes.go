package api

import (
	"maps"
	"slices"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox/fleet"
)

// SandboxMode is which sessions of an agent are sandboxed, and why.
type SandboxMode struct {
	Agent  string          `json:"agentId,omitempty"` // "" is everybody whom the configuration does not name
	Mode   settings.Mode   `json:"mode"`
	From   settings.Source `json:"from"`
	Why    string          `json:"why"`
	Engine string          `json:"engine"`
	Scope  settings.Scope  `json:"scope"`
	Access settings.Access `json:"workspaceAccess"`
}

// SandboxEngine is what an engine was found to enforce on this machine.
type SandboxEngine struct {
	Engine  string         `json:"engine"`
	Works   bool           `json:"works"`
	Level   string         `json:"level"`
	Version string         `json:"version,omitempty"`
	Trying  bool           `json:"trying,omitempty"` // it is being tried now
	At      time.Time      `json:"at,omitzero"`
	Checks  []SandboxCheck `json:"checks"`
}

// SandboxCheck is one capability that was tried.
type SandboxCheck struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	Fix   string `json:"fix,omitempty"`
}

// sandboxModes says for everybody, and for each agent that the configuration names, which sessions are sandboxed.
func (s *Server) SandboxModes() []SandboxMode {
	compiled := s.sandboxes.Settings()
	if compiled == nil {
		return []SandboxMode{}
	}
	modes := []SandboxMode{s.modeOf("", compiled.Anyone())}
	agents := compiled.Agents()
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		modes = append(modes, s.modeOf(id, agents[id]))
	}
	return modes
}

func (s *Server) modeOf(agent string, r *settings.Resolved) SandboxMode {
	m := SandboxMode{Agent: agent, Mode: r.Mode, From: r.Sources["mode"], Engine: r.Engine, Scope: r.Scope, Access: r.Access}
	switch m.From.Level {
	case settings.FromAgent:
		m.Why = "the configuration says so for this agent"
	case settings.FromGlobal:
		m.Why = "the configuration says so for all agents"
	case settings.FromProbe:
		m.Why = s.decidedWhy()
	default:
		m.Why = "the configuration names no mode"
	}
	return m
}

// decidedWhy is what the first start of this gateway has found out about the machine.
func (s *Server) decidedWhy() string {
	machine, _, err := fleet.ReadMachine(s.home)
	switch {
	case err != nil:
		return err.Error()
	case machine.Due:
		return "no engine has said yet whether it works: calls that need a sandbox are refused until one does; the next start asks again"
	case machine.Why == "":
		return "the configuration names no mode"
	case machine.Decided.IsZero():
		return machine.Why
	}
	return machine.Why + ", found out on " + machine.Decided.Format(time.DateOnly)
}

// sandboxEngines says what the engines can enforce here, as far as that is known.
func (s *Server) SandboxEngines() []SandboxEngine {
	engines := []SandboxEngine{}
	for _, f := range s.sandboxes.Found() {
		e := SandboxEngine{
			Engine: f.Engine, Works: f.Works(), Level: f.Level.Words(), Version: f.Version, Trying: f.Trying, At: f.At, Checks: []SandboxCheck{},
		}
		for _, c := range f.Checks {
			e.Checks = append(e.Checks, SandboxCheck(c))
		}
		engines = append(engines, e)
	}
	return engines
}
