package toolward

import (
	"context"
	"encoding/json"
	"time"
)

// Policy gives the snapshot in force. Package policy implements it.
type Policy interface {
	Snapshot() Snapshot // never nil
}

// Snapshot is an immutable, compiled policy. A call is decided by one snapshot from beginning to end and checked
// against the newest one before it runs.
type Snapshot interface {
	// Revision changes whenever the configuration changes.
	Revision() string
	// Tools lists what the caller sees, by name.
	Tools(Caller) []*Tool
	// Find returns the tool of that name if the caller sees it, else nil and the reason. Invisible and absent tools
	// look alike to the model.
	Find(Caller, string) (*Tool, Reason)
	// Decode turns raw arguments into parameters: decoded once, canonical names, validated by the tool's original
	// schema. Errors are *InvalidArgs.
	Decode(*Tool, json.RawMessage) (Params, error)
	// Judge classifies and validates. It is quick, touches neither disk nor network and never asks.
	Judge(*Request) Judgment
}

// Approver asks people and remembers grants. Package approval implements it.
type Approver interface {
	// Granted returns the id of a grant that covers the request, and counts its use.
	Granted(context.Context, *Question) (grant string, ok bool, err error)
	// Covered is Granted without counting a use, for explanations and for the re-check of a call that has taken a use of
	// Question.Grant already: such a grant covers it to the end, although that use may have been its last one.
	Covered(context.Context, *Question) (grant string, ok bool, err error)
	// Ask puts the question to people and waits for the answer, the deadline or the context. A refusal with its own
	// code (no approver, denied before) comes as a *Refusal, an unanswered detached question as a *Pending.
	Ask(context.Context, *Question) (Answer, error)
	// Consume marks an allowing answer as used. It succeeds at most once for every approval, and only for the
	// binding that was approved.
	Consume(ctx context.Context, id, binding string) error
}

// Question is what people are asked.
type Question struct {
	Request  *Request
	Judgment Judgment
	Binding  string // digest over everything the approval is bound to
	Diff     string // what the call would change, if the tool can show it
	Grant    string // id of the grant that a use was taken of for this call, "" if none was

	// OnPending, if not nil, must be called with the approval's id before Ask waits for its answer (Call.OnPending).
	OnPending func(Pending)
}

// Answer is what people said. The zero value allows nothing.
type Answer struct {
	ApprovalID string
	Decision   Decision
	By         string // who answered
	Reason     string // a person's words, for the model when it is a denial
	Grant      string // id of the grant that answered in the place of a person; "" if a person did
	Path       string // push, socket or chat
	// JudgeAgain means that this call shared the prompt of an identical one, that the answer was "always" and went to the
	// other, and that it may have been saved where policy looks: the call is judged again before people are asked again.
	JudgeAgain bool
	// Unanswered means that people had the question until its deadline and nobody answered, or that nobody was there. An
	// answer without a decision is not enough to say so: the question may have been taken back, or never put.
	Unanswered bool
	Waited     time.Duration // how long the call waited
}

// Auditor keeps the record. Package audit implements it.
type Auditor interface {
	// Decide makes the decision durable and returns when it is: nothing runs before.
	Decide(context.Context, *DecisionRecord) (RecordID, error)
	// Conclude records what became of a decided call.
	Conclude(context.Context, RecordID, *OutcomeRecord) error
}

// Sessions knows what conversations have been exposed to. Package session implements it.
type Sessions interface {
	// Level computes the level of a session from live signals. Within one run it never falls.
	Level(context.Context, *Call) (Level, LevelInputs, error)
	// Expose records what a session has just seen.
	Expose(context.Context, SessionKey, Exposure) error
}

// Hooks are the plug-ins around a call. They can refuse or rewrite; they can never grant.
type Hooks interface {
	// Before asks the plug-ins about a call that was judged.
	Before(context.Context, *Request) HookAnswer
	// Result lets the plug-ins redact a result before the agent gets it. After an error the agent gets none of it.
	Result(context.Context, *Request, Result) (Result, error)
	// After tells the plug-ins what became of a call, once, and does not wait for them. The result is the one that the
	// tool gave; nil if the gateway did not see it.
	After(context.Context, *Request, *OutcomeRecord, *Result)
}

// HookAnswer is the merged answer of all plug-ins.
type HookAnswer struct {
	Block  bool
	Reason string          // with Block: the plug-in's own text
	Ask    bool            // a plug-in wants people to decide
	Params json.RawMessage // rewritten arguments; nil if unchanged
	Code   Code            // CodeHookError or CodeHookTimeout: refuse for that reason
	Runs   []HookRun       // one for every plug-in that was asked: without any, no time has passed
}

// HookRun is what one plug-in did.
type HookRun struct {
	Plugin string `json:"plugin"`
	Hook   string `json:"hook"`
	Effect string `json:"effect"`           // pass, rewrite, ask, block, error, timeout or ignored
	Detail string `json:"detail,omitempty"` // its words, or what went wrong
	Before string `json:"digestBefore,omitempty"`
	After  string `json:"digestAfter,omitempty"` // with Before: digests of the call around a rewrite
	Ms     int64  `json:"ms"`
}
