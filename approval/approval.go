// Package approval asks people whether a call may run, waits for the answer and remembers grants. [Manager]
// implements [toolward.Approver].
//
// docs/develop/approvals.md is the life of an approval: its states, who may answer, what a restart does. In short:
//
//	register → pending → resolved(decision or nothing) → consumed, at most once
//
// An approval is a row in the store before anybody sees it, an answer is a row before anybody acts on it, and a
// consumption is a row before the call runs. The first answer wins; no answer is a refusal. Whoever asked cannot answer,
// and only a signed-in person can ([Authority]). An entry costs memory only: one goroutine and one timer serve all.
package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// Kind tells approvals of commands from those of other tools.
type Kind string

// The two kinds.
const (
	KindExec Kind = "exec"
	KindTool Kind = "tool"
)

// State is where an approval is in its life. The zero value is no state at all.
type State string

// The states. A void answer was given before a restart and not used in time: it lets nothing run.
const (
	StatePending  State = "pending"
	StateResolved State = "resolved"
	StateConsumed State = "consumed"
	StateVoid     State = "void"
)

// Why an approval ended without an answer of a person ([Record.ResolvedBy]); at the deadline it is empty.
const (
	ByNoApprover    = "auto-expire:no-approver-clients"
	ByRequesterGone = "requester-gone"
	ByCanceled      = "cancelled"
)

// Errors that callers branch on.
var (
	ErrUnknown      = errors.New("unknown approval id")
	ErrIDPending    = errors.New("approval id already pending")
	ErrResolved     = errors.New("approval is already resolved")
	ErrTooMany      = errors.New("too many pending approvals")
	ErrNotOffered   = errors.New("decision not available for this approval")
	ErrNotAllowed   = errors.New("only a signed-in person may answer approvals")
	ErrSelfApproval = errors.New("whoever asked cannot answer: use another connection or device")
	// ErrOnlyOnce means that nothing can be kept of an "always" now. The answer counts once.
	ErrOnlyOnce  = errors.New("\"always\" counted once")
	ErrTooSoon   = errors.New("answered within half a second of being shown: read it first, then answer again")
	ErrChanged   = errors.New("the approval that waits under this id is not the one that was shown: load it again, then answer")
	ErrRestored  = errors.New("the question is from before a restart: put the same one again under its id, then wait")
	ErrNotShown  = errors.New("the answer does not say when the approval was shown: load it again, then answer")
	ErrNotUsable = errors.New("approval cannot be used")
	ErrClosed    = errors.New("the approval manager is shutting down")
)

// ErrCanceled is the cause to cancel an Ask's context with when the requester took the call back itself. The
// approval then ends as "canceled"; with any other cause it ends as "requester-gone".
var ErrCanceled = errors.New("the requester cancelled the call")

// Authority is the proof that an answer comes from a person. Package identity implements it. It is asked at the
// moment of use, never remembered: a sign-in may have ended since.
type Authority interface {
	MayAnswer() error // nil: may see and answer approvals now
	MayGrant() error  // nil: may keep an answer for later calls
	Name() string     // for records and prompts
	SignIn() string   // public id of the sign-in
	Means() string    // what let the person in, if that can be taken away: see [Grant.GivenBy]
}

// Details is what people are shown. It never changes after an approval was registered.
type Details struct {
	Tool      string              `json:"tool"`
	Action    string              `json:"action,omitempty"`
	CallID    string              `json:"toolCallId,omitempty"`
	Title     string              `json:"title"` // 1 to 80 characters
	Severity  toolward.Severity   `json:"severity"`
	Class     toolward.Class      `json:"riskClass"`
	Level     toolward.Level      `json:"runtimeLevel"`
	Reasons   []string            `json:"reasons,omitempty"` // at most 16 of 200 characters
	Findings  []toolward.Finding  `json:"findings,omitempty"`
	Preview   json.RawMessage     `json:"preview,omitempty"` // redacted final parameters, at most 16 KiB
	Cut       bool                `json:"cut,omitempty"`     // the preview does not show everything
	Command   string              `json:"command,omitempty"`
	Outline   *display.Outline    `json:"outline,omitempty"`   // what the command would do, redacted
	Variables []string            `json:"variables,omitempty"` // names of environment variables that the call sets
	WorkDir   string              `json:"cwd,omitempty"`
	Host      toolward.Host       `json:"host,omitempty"`
	Digest    string              `json:"paramsDigest"`
	Diff      string              `json:"diff,omitempty"`    // at most 64 KiB
	Targets   []string            `json:"targets,omitempty"` // paths, hosts, recipients
	Agent     string              `json:"agentId,omitempty"`
	Depth     int                 `json:"depth,omitempty"`
	Owner     bool                `json:"senderIsOwner,omitempty"`
	Context   string              `json:"context,omitempty"`
	Session   toolward.SessionKey `json:"sessionKey,omitempty"`
	Run       string              `json:"runId,omitempty"`
	Surface   toolward.Surface    `json:"surface,omitempty"`
	Channel   string              `json:"turnSourceChannel,omitempty"`
	Sender    string              `json:"turnSourceTo,omitempty"`
	Account   string              `json:"turnSourceAccountId,omitempty"`
	Workspace string              `json:"workspace,omitempty"`
	ByClient  bool                `json:"byClient,omitempty"`  // the client runs the tool itself
	Lasting   bool                `json:"lasting,omitempty"`   // it waits for longer than a call does, and its caller comes back for the answer
	Exec      *ExecRequest        `json:"exec,omitempty"`      // of a command that another program asks about
	ByProgram bool                `json:"byProgram,omitempty"` // a program asks by itself: who is meant to call is its word, too
	Claims    []Claim             `json:"claims,omitempty"`    // what that program says of its call
	Proposals []Proposal          `json:"proposals,omitempty"` // what "always" can save; the first is the default
}

// Record is one approval. Times are wall-clock milliseconds, for showing; deadlines are kept on the monotonic
// clock, so that setting the clock neither opens nor shuts anything.
type Record struct {
	ID         string              `json:"id"`
	Kind       Kind                `json:"kind"`
	Request    *Details            `json:"request"`
	CreatedMs  int64               `json:"createdAtMs"`
	ExpiresMs  int64               `json:"expiresAtMs"`
	Allowed    []toolward.Decision `json:"allowedDecisions"`
	Binding    string              `json:"bindingDigest"` // digest over everything the approval is bound to
	Connection string              `json:"requestedByConnId,omitempty"`
	Device     string              `json:"requestedByDeviceId,omitempty"`
	Client     string              `json:"requestedByClientId,omitempty"`
	Detached   bool                `json:"detached,omitempty"` // the caller comes back by id

	State      State             `json:"state"`
	Decision   toolward.Decision `json:"decision"`
	ResolvedBy string            `json:"resolvedBy,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	ResolvedMs int64             `json:"resolvedAtMs,omitempty"`
	ConsumedMs int64             `json:"consumedAtMs,omitempty"`
	Grant      string            `json:"grant,omitempty"` // id of the grant that "always" saved

	// Saved is what "always" added to the allowlist of the agent, where it saved no grant.
	Saved []toolward.CommandEntry `json:"saved,omitempty"`
}

// Key names a record in the store: ids become free again after an approval is gone.
func (r *Record) Key() Key { return Key{r.ID, r.CreatedMs} }

// Key names one record for ever.
type Key struct {
	ID        string
	CreatedMs int64
}

// Offers reports whether people may answer with d.
func (r *Record) Offers(d toolward.Decision) bool { return slices.Contains(r.Allowed, d) }

// Slug is the short form of the id that people type: unambiguous in practice, refused when it is not.
func (r *Record) Slug() string { return r.ID[:min(len(r.ID), shortestPrefix)] }

// Settings are the limits of a manager. Zero fields mean the default.
type Settings struct {
	Timeout      time.Duration // how long an approval lives: default 120 s
	MaxTimeout   time.Duration // longest life, larger is cut: default 10 min, at most 7 days
	PerSession   int           // pending approvals of one session: default 20
	PerConn      int           // of one connection: default 50
	Total        int           // altogether: default 500
	Absent       Absent        // what to do when nobody is there to answer
	SessionGrant time.Duration // life of a grant for one session: default 24 h
	AgentGrant   time.Duration // life of a grant for all sessions of an agent: default 30 days
	MaxGrants    int           // remembered grants: default 10,000
	// Socket lets the program at the approval socket answer, where no person is connected: see [Prompter]. By default
	// only a signed-in person can.
	Socket bool
}

// Absent says what happens to a question when no approver is connected.
type Absent string

// The two values of Absent. The zero value refuses.
const (
	AbsentRefuse Absent = "refuse" // at once, with no_approval_channel
	AbsentWait   Absent = "wait"   // until the deadline, for people who answer with one-shot commands
)

// Times of the state machine that are not settings.
const (
	grace         = 15 * time.Second // a resolved approval is still found by its waiters
	reattach      = 30 * time.Second // after a restart, for its caller to come back
	shownAtLeast  = 500 * time.Millisecond
	maxLife       = 7 * 24 * time.Hour
	maxGrantLife  = 365 * 24 * time.Hour
	storePatience = 10 * time.Second
	keepRecords   = 90 * 24 * time.Hour
)

func (s Settings) withDefaults() (Settings, error) {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	count := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	set(&s.Timeout, 2*time.Minute)
	set(&s.MaxTimeout, 10*time.Minute)
	set(&s.SessionGrant, 24*time.Hour)
	set(&s.AgentGrant, 30*24*time.Hour)
	count(&s.PerSession, 20)
	count(&s.PerConn, 50)
	count(&s.Total, 500)
	count(&s.MaxGrants, 10_000)
	if s.Absent == "" {
		s.Absent = AbsentRefuse
	}
	s.MaxTimeout = min(s.MaxTimeout, maxLife)
	s.Timeout = min(s.Timeout, s.MaxTimeout)
	s.SessionGrant = min(s.SessionGrant, maxGrantLife)
	s.AgentGrant = min(s.AgentGrant, maxGrantLife)
	switch {
	case s.Timeout < time.Millisecond || s.MaxTimeout < time.Millisecond:
		return s, fmt.Errorf("approval time-out %s is too short: use at least 1ms", s.Timeout)
	case s.SessionGrant < 0 || s.AgentGrant < 0:
		return s, errors.New("a grant cannot live for a negative time")
	case s.PerSession < 0 || s.PerConn < 0 || s.Total < 0 || s.MaxGrants < 0:
		return s, errors.New("limits of pending approvals and grants cannot be negative")
	case s.Absent != AbsentRefuse && s.Absent != AbsentWait:
		return s, fmt.Errorf("approval absent %q: expected %q or %q", s.Absent, AbsentRefuse, AbsentWait)
	}
	return s, nil
}

// ExecRequest is what a program that runs a command itself tells of it besides what Details has: where it would run, in
// its own words. Values of the environment are not kept, only their names and a hash of all.
type ExecRequest struct {
	Argv         []string        `json:"commandArgv,omitempty"`
	EnvKeys      []string        `json:"envKeys,omitempty"`
	EnvHash      string          `json:"envHash,omitempty"`
	Node         string          `json:"nodeId,omitempty"`
	Security     string          `json:"security,omitempty"`
	Ask          string          `json:"ask,omitempty"`
	ResolvedPath string          `json:"resolvedPath,omitempty"`
	Thread       string          `json:"turnSourceThreadId,omitempty"`
	Plan         json.RawMessage `json:"systemRunPlanV2,omitempty"`
}
