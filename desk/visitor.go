package desk

import (
	"fmt"
	"slices"

	"github.com/toolward/toolward/identity"
)

// Visitor is who stands at the desk, as the adapter knows them that let them in. The zero value may do nothing.
type Visitor struct {
	By     identity.Authority
	Client string // the program that the visitor uses, as records name it; "" for Toolward's own

	// Connection is what the visitor came through: whoever asked through it does not answer through it.
	Connection string

	// Of a connection of the gateway protocol.
	Device string   // proven; "" if it has none
	Scopes []string // that the connection has

	// Holds is what the adapter lets the visitor do besides, person or not.
	Holds []Operation
}

// Operation is something that people do here, for the rows of an adapter's table.
type Operation string

// The operations.
const (
	OpenApprovals   Operation = "open approvals"
	SeeApprovals    Operation = "see what waits for an answer"
	AnswerApprovals Operation = "answer what waits"
	SeeRecords      Operation = "see records"
	SeeAnomalies    Operation = "see what detectors noticed"
	ReadAllowlist   Operation = "read the allowlist"
	ChangeAllowlist Operation = "change the allowlist"
	SeeDevices      Operation = "see devices"
	PairDevices     Operation = "pair devices"
	ManageDevices   Operation = "manage devices"

	SeeTokens        Operation = "see tokens"
	ManageTokens     Operation = "make and revoke tokens"
	SeeSignIns       Operation = "see sign-ins"
	EndSignIns       Operation = "end sign-ins"
	SignOut          Operation = "sign out"
	ChangePassphrase Operation = "change the passphrase"
	ManagePasskeys   Operation = "add, rename and remove passkeys"

	SeeSessions  Operation = "see sessions"
	ChangeLevel  Operation = "change a session's level"
	SeeGrants    Operation = "see grants"
	RevokeGrants Operation = "revoke grants"
	SeeSandboxes Operation = "see sandboxes"
	EndSandboxes Operation = "end sandboxes"
	ForwardPorts Operation = "forward ports of sandboxes"

	SeeUndo       Operation = "see what calls changed"
	TakeCallsBack Operation = "take calls back"

	SeePolicy          Operation = "see which tools agents have"
	ExplainCalls       Operation = "see what would happen to a call"
	SeeConfiguration   Operation = "see a changed configuration"
	ApplyConfiguration Operation = "apply a changed configuration"

	SeeStatus  Operation = "see the status"
	SeeMetrics Operation = "see metrics"
	ShutDown   Operation = "shut the gateway down"
)

// rights is what each operation needs. An operation that is not listed may be done by nobody.
var rights = map[Operation]identity.Right{
	OpenApprovals:   identity.RightWatch,  // of a page or an address; what is on it is seen with SeeApprovals
	SeeApprovals:    identity.RightAnswer, // whoever sees what waits counts as somebody who is there to answer
	AnswerApprovals: identity.RightAnswer,
	SeeRecords:      identity.RightWatch,
	SeeAnomalies:    identity.RightWatch,
	ReadAllowlist:   identity.RightAdmin,
	ChangeAllowlist: identity.RightConfigure,
	SeeDevices:      identity.RightAdmin,
	PairDevices:     identity.RightPair,
	ManageDevices:   identity.RightAdmin, // of a page or an address; what is done there needs PairDevices as well

	SeeTokens:        identity.RightAdmin,
	ManageTokens:     identity.RightAdmin,
	SeeSignIns:       identity.RightAdmin,
	EndSignIns:       identity.RightAdmin,
	SignOut:          identity.RightWatch,
	ChangePassphrase: identity.RightAdmin,
	ManagePasskeys:   identity.RightAdmin,

	SeeSessions:  identity.RightWatch,
	ChangeLevel:  identity.RightClearLevel,
	SeeGrants:    identity.RightWatch,
	RevokeGrants: identity.RightAdmin,
	SeeSandboxes: identity.RightWatch,
	EndSandboxes: identity.RightAdmin,
	ForwardPorts: identity.RightAdmin, // it opens a sandbox to every program of the machine

	SeeUndo:       identity.RightAnswer, // shows what is in files, as questions do
	TakeCallsBack: identity.RightAdmin,  // it writes files, and no policy looks at that

	SeePolicy:          identity.RightWatch,
	ExplainCalls:       identity.RightWatch,
	SeeConfiguration:   identity.RightWatch,
	ApplyConfiguration: identity.RightConfigure,

	SeeStatus:  identity.RightRequest, // agents as well: it holds nothing that they must not know
	SeeMetrics: identity.RightWatch,
	ShutDown:   identity.RightAdmin,
}

// Right is the right that the operation needs, for an adapter that refuses before it reads what was sent; "" is a right that
// nobody has.
func (o Operation) Right() identity.Right { return rights[o] }

// May returns nil if the visitor may do the operation now. Every operation asks this first, whatever the adapter has checked: a row
// that was forgotten in an adapter's table must not open a door.
func (v Visitor) May(o Operation) error {
	if slices.Contains(v.Holds, o) {
		return nil
	}
	right, known := rights[o]
	if !known {
		return &Error{NotAllowed, fmt.Errorf("nobody may %s", o)}
	}
	if err := v.By.May(right); err != nil {
		return &Error{NotAllowed, err}
	}
	return nil
}

// signed adds to a record who did it.
func (v Visitor) signed(data map[string]any) map[string]any {
	data["by"] = v.By.Name()
	if v.Client != "" {
		data["client"] = v.Client
	}
	return data
}
