package approval

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// Scope says for which sessions of its agent a grant counts. The zero value is none.
type Scope string

// The two scopes.
const (
	ScopeSession Scope = "session" // one session, until it is reset
	ScopeAgent   Scope = "agent"   // all sessions of the agent in the grant's contexts
)

// Grant is a remembered answer: people said "always" to a call, and later calls that it matches run without a
// question.
type Grant struct {
	ID         string              `json:"id"`
	Tool       string              `json:"tool"`
	Actions    []string            `json:"actions,omitempty"` // without actions: only calls that have none
	Agent      string              `json:"agentId"`
	Scope      Scope               `json:"scope"`
	Session    toolward.SessionKey `json:"sessionKey,omitempty"` // where it was made
	Contexts   []string            `json:"contexts"`
	OwnerOnly  bool                `json:"ownerOnly"` // counts only for calls with a proven owner
	Host       toolward.Host       `json:"host"`
	MaxLevel   toolward.Level      `json:"maxLevel"` // counts up to this level, and never in lockdown
	Match      Match               `json:"match"`
	Workspace  string              `json:"workspace,omitempty"` // the agent's workspace when it was made
	Text       string              `json:"text"`                // what people were told it would allow
	CreatedMs  int64               `json:"createdAtMs"`
	CreatedBy  string              `json:"createdBy"`
	GivenBy    string              `json:"givenBy,omitempty"` // "device:" or "passkey:" and its id: what let the person in; "" for a passphrase
	ExpiresMs  int64               `json:"expiresAtMs"`       // at this moment it is expired
	LastUsedMs int64               `json:"lastUsedAtMs,omitempty"`
	Uses       int64               `json:"uses"`
	MaxUses    int64               `json:"maxUses,omitempty"` // after so many uses it has ended; 0 is any number
	RevokedMs  int64               `json:"revokedAtMs,omitempty"`
	RevokedBy  string              `json:"revokedBy,omitempty"`
}

// Match is how a grant recognizes a later call. Which fields count depends on the kind.
type Match struct {
	Kind toolward.GrantKind `json:"kind"`

	Digest string `json:"digest,omitempty"` // exact: of tool, parameters and agent
	Bound  string `json:"bound,omitempty"`  // exact: digest over directory, targets, environment

	Prefix string        `json:"prefix,omitempty"` // path: a file, or a directory and everything below it
	Ops    []toolward.Op `json:"ops,omitempty"`    // path: default write; delete and move must be named

	Scheme string `json:"scheme,omitempty"` // host
	Host   string `json:"host,omitempty"`
	Port   int    `json:"port,omitempty"`

	Channel     string `json:"channel,omitempty"` // recipient
	Account     string `json:"accountId,omitempty"`
	To          string `json:"to,omitempty"`
	Thread      string `json:"threadId,omitempty"`
	Attachments bool   `json:"attachments,omitempty"`

	ID string `json:"id,omitempty"` // session, agent, node, process

	// Entries are added to the allowlist of the agent instead of a grant: exec, of commands that were analyzed.
	Entries []toolward.CommandEntry `json:"entries,omitempty"`
}

// Attempt is a call as grants look at it.
type Attempt struct {
	Tool      string
	Action    string
	Agent     string
	Session   toolward.SessionKey
	Context   string
	Owner     bool
	Host      toolward.Host
	Level     toolward.Level
	Workspace string
	NowMs     int64

	Digest     string // of tool, parameters and agent, without the session
	Bound      string // digest over directory, targets, environment
	Targets    []toolward.Target
	Addresses  []Address
	Recipients []Recipient
	TargetID   string
}

// Address is where a call connects to.
type Address struct {
	Scheme string `json:"scheme"`
	Host   string `json:"host"`
	Port   int    `json:"port"`
}

// Recipient is whom a call writes to.
type Recipient struct {
	Channel     string `json:"channel"`
	Account     string `json:"accountId"`
	To          string `json:"to"`
	Thread      string `json:"threadId"`
	Attachments bool   `json:"attachments"`
}

// Refuses returns "" if the grant covers the attempt, else the first reason why it does not: revoked, expired,
// tool, action, agent, session, context, owner, host, level or target.
func (g *Grant) Refuses(a *Attempt) string {
	switch {
	case g.RevokedMs != 0:
		return "revoked"
	case a.NowMs >= g.ExpiresMs || g.MaxUses > 0 && g.Uses >= g.MaxUses:
		return "expired"
	case g.Tool == "" || g.Tool != a.Tool:
		return "tool"
	case !g.coversAction(a.Action):
		return "action"
	case g.Agent == "" || g.Agent != a.Agent:
		return "agent"
	case g.Scope != ScopeAgent && (g.Scope != ScopeSession || g.Session == "" || g.Session != a.Session):
		return "session"
	case !slices.Contains(g.Contexts, a.Context):
		return "context"
	case g.OwnerOnly && !a.Owner:
		return "owner"
	case g.Host != a.Host:
		return "host"
	// A poisoned session must not spend what was granted in a calm one.
	case a.Level == toolward.Lockdown || g.MaxLevel == toolward.Lockdown || a.Level < g.MaxLevel:
		return "level"
	// Another workspace is another project: what was granted there says nothing here.
	case g.Workspace != "" && g.Workspace != a.Workspace:
		return "target"
	case !g.Match.covers(a):
		return "target"
	}
	return ""
}

func (g *Grant) coversAction(action string) bool {
	if len(g.Actions) == 0 {
		return action == ""
	}
	return slices.Contains(g.Actions, action)
}

// UsesText is how often the grant was used, and how often it may be.
func (g *Grant) UsesText() string {
	if g.MaxUses > 0 {
		return fmt.Sprintf("%d of %d", g.Uses, g.MaxUses)
	}
	return strconv.FormatInt(g.Uses, 10)
}

// covers compares the targets. A call without what the kind is about is never covered.
func (m *Match) covers(a *Attempt) bool {
	switch m.Kind {
	case toolward.GrantExact, toolward.GrantExec:
		return m.Digest != "" && m.Digest == a.Digest && m.Bound == a.Bound
	case toolward.GrantPath:
		return m.coversPaths(a.Targets)
	case toolward.GrantHost:
		return m.coversAddresses(a.Addresses)
	case toolward.GrantRecipient:
		return m.coversRecipients(a.Recipients)
	case toolward.GrantSession, toolward.GrantAgent, toolward.GrantNode, toolward.GrantProcess:
		return m.ID != "" && m.ID == a.TargetID
	}
	return false
}

func (m *Match) coversPaths(targets []toolward.Target) bool {
	if len(targets) == 0 || !isGrantablePrefix(m.Prefix) {
		return false
	}
	ops := m.Ops
	if len(ops) == 0 {
		ops = []toolward.Op{toolward.OpWrite}
	}
	for _, t := range targets {
		// Only ordinary files of the workspace: instructions, protected and secret files below the prefix, and
		// links that lead out of it, ask again.
		if t.Zone != toolward.ZoneWorkspace || t.Left || !slices.Contains(ops, t.Op) || !isBelow(t.Real, m.Prefix) {
			return false
		}
	}
	return true
}

// isGrantablePrefix reports whether p may be the prefix of a path grant as far as the path alone tells.
func isGrantablePrefix(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }

// isBelow reports whether file is prefix or below it, by whole segments. A path that is not clean is below nothing:
// ".." would lead out again.
func isBelow(file, prefix string) bool {
	return path.Clean(file) == file && place.Within(file, prefix)
}

func (m *Match) coversAddresses(addresses []Address) bool {
	if len(addresses) == 0 || m.Scheme == "" || m.Host == "" || m.Port == 0 {
		return false
	}
	for _, a := range addresses {
		if a != (Address{m.Scheme, m.Host, m.Port}) {
			return false
		}
	}
	return true
}

func (m *Match) coversRecipients(recipients []Recipient) bool {
	if len(recipients) == 0 || m.Channel == "" || m.To == "" {
		return false
	}
	for _, r := range recipients {
		if r.Channel != m.Channel || r.Account != m.Account || r.To != m.To ||
			m.Thread != "" && r.Thread != m.Thread || r.Attachments && !m.Attachments {
			return false
		}
	}
	return true
}

// check refuses a grant that must not exist, whoever made it.
func (g *Grant) check(nowMs int64) error {
	switch {
	case g.ID == "" || g.Tool == "" || g.Agent == "" || g.CreatedBy == "":
		return errors.New("grant: id, tool, agent and maker must be named")
	case g.Scope != ScopeSession && g.Scope != ScopeAgent:
		return fmt.Errorf("grant: scope %q: expected %q or %q", g.Scope, ScopeSession, ScopeAgent)
	case g.Scope == ScopeSession && g.Session == "":
		return errors.New("grant: scope session without a session")
	case len(g.Contexts) == 0:
		return errors.New("grant: no context")
	case g.MaxUses < 0:
		return errors.New("grant: a negative number of uses")
	case g.MaxLevel == toolward.Lockdown:
		return errors.New("grant: nothing is granted in lockdown")
	case g.ExpiresMs <= nowMs || g.ExpiresMs-nowMs > maxGrantLife.Milliseconds():
		return fmt.Errorf("grant: must expire within %d days", maxGrantLife/(24*time.Hour))
	}
	return g.Match.check()
}

func (m *Match) check() error {
	missing := false
	switch m.Kind {
	case toolward.GrantExact, toolward.GrantExec: // entries are no grant
		missing = m.Digest == "" || m.Bound == ""
	case toolward.GrantPath:
		missing = !isGrantablePrefix(m.Prefix) || len(m.Ops) == 0
	case toolward.GrantHost:
		missing = m.Scheme == "" || m.Host == "" || m.Port == 0
	case toolward.GrantRecipient:
		missing = m.Channel == "" || m.To == ""
	case toolward.GrantSession, toolward.GrantAgent, toolward.GrantNode, toolward.GrantProcess:
		missing = m.ID == ""
	default:
		return fmt.Errorf("grant: kind %q cannot be granted", m.Kind)
	}
	if missing {
		return fmt.Errorf("grant: kind %s is not bound to anything", m.Kind)
	}
	return nil
}

// clone returns a copy that shares nothing.
func (g *Grant) clone() *Grant {
	c := *g
	c.Actions, c.Contexts, c.Match.Ops = slices.Clone(g.Actions), slices.Clone(g.Contexts), slices.Clone(g.Match.Ops)
	return &c
}

// Proposal is one grant that an "always" can save, with the sentence that people are shown. What is saved is made
// from the proposal that was shown and from nothing else, so it is never wider.
type Proposal struct {
	Scope  Scope  `json:"scope"`
	Match  Match  `json:"match"`
	LifeMs int64  `json:"lifeMs"`
	Text   string `json:"text"`

	// MaxUses is how many later calls it allows; 0 is any number.
	MaxUses int64 `json:"maxUses,omitempty"`
}
