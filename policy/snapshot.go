package policy

import (
	"sync/atomic"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/schema"
)

// Live holds the snapshot in force. The zero value refuses everything.
type Live struct {
	current atomic.Pointer[Snapshot]
}

var _ toolward.Policy = (*Live)(nil)

// NewLive starts with a compiled snapshot.
func NewLive(s *Snapshot) *Live {
	l := &Live{}
	l.Swap(s)
	return l
}

// Swap puts another snapshot in force. Calls that are under way are checked against it before they run.
func (l *Live) Swap(s *Snapshot) { l.current.Store(s) }

// Snapshot returns the snapshot in force.
func (l *Live) Snapshot() toolward.Snapshot {
	if s := l.current.Load(); s != nil {
		return s
	}
	return &Snapshot{}
}

// Snapshot is a compiled policy. It is immutable. The zero value shows no tool and denies every call.
type Snapshot struct {
	visible.Book
	revision string
	schemas  map[*toolward.Tool]*schema.Schema
	agents   visible.ByAgent[agent]

	table      table
	overrides  overrides
	waits      overrides // teg.approval.waitMs
	rulesOf    ruleSet
	enabled    map[string]bool // blocked rows that may be asked for, as "tool.action"
	allowHosts map[string]bool
	trusted    map[string]bool // MCP servers whose read-only hints count
	around     Surroundings
}

var (
	_ toolward.Snapshot = (*Snapshot)(nil)
	_ toolward.Adopter  = (*Snapshot)(nil)
)

// agent is how the policy judges the calls of one agent.
type agent struct {
	modes            modes.Modes
	workspaceOnly    bool
	patchInWorkspace bool
	overrides        overrides // those of the agent alone
}

// keepsInWorkspace reports whether files outside the workspace are refused to a tool. A patch names its files inside
// its text, where people who are asked overlook them; it stays in the workspace unless the operator says otherwise.
func (a *agent) keepsInWorkspace(tool string) bool {
	return a.workspaceOnly || tool == "apply_patch" && a.patchInWorkspace
}

// agentOf finds what holds for the calls of a caller.
func (s *Snapshot) agentOf(c *toolward.Caller) *agent { return s.agents.Of(c.Agent, c.Session) }

// Revision changes with the configuration and with the registered tools.
func (s *Snapshot) Revision() string { return s.revision }
