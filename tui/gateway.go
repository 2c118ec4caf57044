package tui

import (
	"context"
	"errors"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// Gateway is the way to the running gateway, as a terminal has it. The texts of every answer may be hostile: the
// console makes them safe before it shows them.
type Gateway interface {
	// SignIn signs this terminal in and returns what records will call the person.
	SignIn(ctx context.Context, passphrase string) (name string, err error)
	// Follow tells of waiting calls until ctx or the connection ends. The first event is a sync. While it runs, its
	// person counts as somebody who can answer. It never returns nil before ctx ends.
	Follow(ctx context.Context, tell func(Event)) error
	// Show returns a call with a new stamp: it is to be shown now.
	Show(ctx context.Context, id string) (Call, error)
	// Answer answers a call and returns what became of it.
	Answer(ctx context.Context, id string, answer Answer) (Call, error)
	// Decisions lists decided calls, the latest first.
	Decisions(ctx context.Context) ([]Decision, error)
	// Sessions lists conversations, the latest first.
	Sessions(ctx context.Context) ([]Session, error)
	// Level says what a conversation's level comes from.
	Level(ctx context.Context, session toolward.SessionKey) (SessionLevel, error)
	// SetLevel keeps a conversation at least that tense until somebody clears it.
	SetLevel(ctx context.Context, session toolward.SessionKey, level toolward.Level) error
	// ClearLevel takes floor and suspicion away; with the stamp of the sources that were read also the mark of content
	// from outside.
	ClearLevel(ctx context.Context, session toolward.SessionKey, read string) error
	Grants(ctx context.Context) ([]*approval.Grant, error)
	Revoke(ctx context.Context, grant string) error
	// Sandboxes lists the sandboxes with what they use now.
	Sandboxes(ctx context.Context) ([]Sandbox, error)
	// EndSandbox stops a sandbox, or removes it so that the next call makes it anew.
	EndSandbox(ctx context.Context, name string, remove bool) error
	// UndoCalls lists the calls that can be taken back, the latest first, with what each changed.
	UndoCalls(ctx context.Context) ([]UndoCall, error)
	// UndoCall is one of them, with the differences.
	UndoCall(ctx context.Context, id string) (UndoCall, error)
	// TakeBack takes calls back, or says what that would do.
	TakeBack(ctx context.Context, request TakeBack) (TakenBack, error)
}

// ErrNotSignedIn means that the gateway knows nobody in this terminal.
var ErrNotSignedIn = errors.New("this terminal is not signed in")

// Event is news about waiting calls.
type Event struct {
	Sync  bool   // Calls is all that waits now
	Calls []Call // else one call: a new one if it is pending, or what became of it
}

// Call is a call that waits, or waited.
type Call struct {
	*approval.Record
	Stamp string // signed moment of this showing, which an answer brings back
	Said  string // what became of it, in words
}

// valid reports whether there is anything to show.
func (c Call) valid() bool { return c.Record != nil && c.Request != nil && c.ID != "" }

// Answer is what a person says to a call.
type Answer struct {
	Decision toolward.Decision
	Reason   string        // with a denial: for the agent
	Proposal int           // with "always": which of the proposals is saved
	Life     time.Duration // with "always": kept for a shorter time than proposed; 0 is as proposed
	Uses     int64         // with "always": kept for so many more calls; 0 is any number
	Stamp    string        // of the showing that the person read
}

// Decision is one decided call.
type Decision struct {
	Seq     int64 // of its record
	At      time.Time
	Allowed bool
	Agent   string
	Tool    string
	About   string // what it was aimed at
	How     string // who or what decided
	Session string
	Level   string
	Undo    string // the call on the page of what calls changed; "" if nothing was kept for it
}

// SessionLevel is what a conversation's level comes from, for whoever is about to clear it.
type SessionLevel struct {
	Level      toolward.Level
	Reasons    []string
	Floor      string   // until when, set by whom; "" if there is none
	Suspicious bool     // content from outside looked like instructions
	Sources    []string // of content that strangers wrote
	SourcesCut bool     // there were more
	Stamp      string   // of the sources
}

// Session is one conversation.
type Session struct {
	Key       toolward.SessionKey
	Level     toolward.Level
	Signals   []string // those that are not at rest
	Reasons   []string // why the level is what it is
	Floor     string   // until when, set by whom; "" if there is none
	LastCall  string   // tool and verdict; "" if none is known
	LastAt    time.Time
	Anomalies int // within a day
}

// Sandbox is one sandbox, in words.
type Sandbox struct {
	Name     string
	Of       string // whose: the scope key
	State    string
	Running  bool
	Odd      bool     // it is not what the configuration says, or not known
	Sessions []string // whose calls use it now
	CPU      string
	Memory   string
	Pids     string
	Note     string // what more is to be said of these three
	Facts    []string
}

// The states of an UndoCall.
const (
	UndoDone    = "done"
	UndoRunning = "running"
	UndoUnknown = "unknown" // it was cut off
)

// UndoCall is a call that can be taken back.
type UndoCall struct {
	ID        string
	At        time.Time
	Agent     string
	Session   string
	Tool      string
	Text      string // what it does
	Workspace string
	State     string
	Undoes    string // the call that this one took back
	Changes   []Change
	Total     int // how many there are, if not all of them stand there
}

// Change is what a call changed in its workspace.
type Change struct {
	Path string
	What string
	Diff string
}

// TakeBack says what to take back: one call, or all that a session did.
type TakeBack struct {
	Call       string
	Session    string
	Everything bool   // all that happened to the workspace since the call began, whoever did it
	Changed    string // what becomes of what somebody has changed since: "keep", "replace", "beside"; "": if there is any, nothing is done
	Preview    bool   // only say what would be done
	Seen       string // the stamp of what a person has read
}

// TakenBack is what was taken back, or would be.
type TakenBack struct {
	Done       bool
	Workspaces []TakenWorkspace
	Stamp      string
	Unknown    []string // calls of the session that are left out, because they run or were cut off
}

// TakenWorkspace is what becomes of one workspace.
type TakenWorkspace struct {
	Workspace string
	ID        string // by which this is taken back itself
	Restored  []Change
	Conflicts []Change // changed since by somebody else
	Lost      []Change // not kept
}
