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
	SeeApprovals    Operation = "see what waits for an answer"
	AnswerApprovals Operation = "answer what waits"
	SeeRecords      Operation = "see records"
	ReadAllowlist   Operation = "read the allowlist"
	ChangeAllowlist Operation = "change the allowlist"
	SeeDevices      Operation = "see devices"
	PairDevices     Operation = "pair devices"

	SeeTokens        Operation = "see tokens"
	ManageTokens     Operation = "make and revoke tokens"
	SeeSignIns       Operation = "see sign-ins"
	EndSignIns       Operation = "end sign-ins"
	ChangePassphrase Operation = "change the passphrase"
	ManagePasskeys   Operation = "add, rename and remove passkeys"

	ChangeLevel  Operation = "change a session's level"
	SeeGrants    Operation = "see grants"
	RevokeGrants Operation = "revoke grants"
	EndSandboxes Operation = "end sandboxes"

	SeeConfiguration   Operation = "see a changed configuration"
	ApplyConfiguration Operation = "apply a changed configuration"
)

// rights is what each operation needs. An operation that is not listed may be done by nobody.
var rights = map[Operation]identity.Right{
	SeeApprovals:    identity.RightAnswer, // whoever sees what waits counts as somebody who is there to answer
	AnswerApprovals: identity.RightAnswer,
	SeeRecords:      identity.RightWatch,
	ReadAllowlist:   identity.RightAdmin,
	ChangeAllowlist: identity.RightConfigure,
	SeeDevices:      identity.RightAdmin,
	PairDevices:     identity.RightPair,

	SeeTokens:        identity.RightAdmin,
	ManageTokens:     identity.RightAdmin,
	SeeSignIns:       identity.RightAdmin,
	EndSignIns:       identity.RightAdmin,
	ChangePassphrase: identity.RightAdmin,
	ManagePasskeys:   identity.RightAdmin,

	ChangeLevel:  identity.RightClearLevel,
	SeeGrants:    identity.RightWatch,
	RevokeGrants: identity.RightAdmin,
	EndSandboxes: identity.RightAdmin,

	SeeConfiguration:   identity.RightWatch,
	ApplyConfiguration: identity.RightConfigure,
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
