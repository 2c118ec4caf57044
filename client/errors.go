package client

import (
	"errors"
	"strings"
	"time"
)

// Errors that programs branch on. Those that the gateway answers with are an [*Error], too.
var (
	ErrClosed     = errors.New("the client is closed")
	ErrLost       = errors.New("the connection broke before the answer came: what became of the request is not known")
	ErrCredential = errors.New("the gateway does not accept the credential")
	ErrPairing    = errors.New("the device must be paired first: toolward devices approve")
	ErrPerson     = errors.New("only a person may do that: the device must be approved by a signed-in person, then connect again")
	ErrScope      = errors.New("the connection lacks a scope")
	ErrUnknown    = errors.New("no such approval waits, or it is not this program's")
	ErrChanged    = errors.New("another approval waits under this id than the one that was shown")
	ErrTooSoon    = errors.New("answered before anybody can have read it")
	ErrNotOffered = errors.New("this decision is not offered for this approval")
	ErrOwn        = errors.New("whoever asked cannot answer")
)

// errTaken means that a question has the id already.
var errTaken = errors.New("a question with this id exists already")

// errRestored means that the gateway was started again since the question was put, and wants to see it once more.
var errRestored = errors.New("the question is to be put again")

// Error is a refusal of the gateway.
type Error struct {
	Method     string        // of the request; "connect" for a connection
	Code       string        // such as INVALID_REQUEST
	Detail     string        // finer, such as AUTH_TOKEN_MISMATCH; often ""
	Message    string        // for people
	Pairing    string        // with ErrPairing: the request that a person approves
	Retryable  bool          // the same request may work later
	RetryAfter time.Duration // not before; 0 if the gateway does not say
}

func (e *Error) Error() string { return e.Method + ": " + e.Message + " (" + e.Code + ")" }

var sentinels = map[string]error{
	"PAIRING_REQUIRED": ErrPairing, "DEVICE_IDENTITY_REQUIRED": ErrPairing, "PERSON_REQUIRED": ErrPerson, "MISSING_SCOPE": ErrScope,
	"UNKNOWN_APPROVAL": ErrUnknown, "DIGEST_MISMATCH": ErrChanged, "TOO_SOON": ErrTooSoon, "NOT_OFFERED": ErrNotOffered,
	"SELF_APPROVAL": ErrOwn, "APPROVAL_PENDING": errTaken, "RESTORED_APPROVAL": errRestored,
}

// Is reports whether the refusal is of the kind of one of the errors above.
func (e *Error) Is(target error) bool {
	if target == ErrCredential {
		return strings.HasPrefix(e.Detail, "AUTH_") && e.Detail != "AUTH_RATE_LIMITED" || strings.HasPrefix(e.Detail, "DEVICE_AUTH_")
	}
	return target != nil && sentinels[e.Detail] == target
}

// passes reports whether it may be different next time.
func passes(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Retryable || refused.Code == "UNAVAILABLE"
	}
	return true // the network
}
