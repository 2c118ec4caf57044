package desk

import "errors"

// Code says why an operation was not done. It is the same at every adapter, which maps it to the form of its own wire.
type Code string

// The codes.
const (
	Failed       Code = "failed"        // something broke; also the code of an error that has none
	NotAllowed   Code = "not-allowed"   // the visitor lacks the right
	NotKept      Code = "not-kept"      // this gateway has nothing of the kind
	Unrecorded   Code = "unrecorded"    // it could not be recorded, so it was not done
	Unknown      Code = "unknown"       // there is nothing of that name
	Changed      Code = "changed"       // it is not what the visitor saw any more
	Locked       Code = "locked"        // it would be signed, and nobody has typed the passphrase that opens the key
	Exists       Code = "exists"        // it is there already
	NotProven    Code = "not-proven"    // what was shown as a proof is none
	WrongPhrase  Code = "wrong-phrase"  // the passphrase is wrong
	TooOften     Code = "too-often"     // too many wrong proofs: later
	ScopeHeld    Code = "scope-held"    // whoever gives a scope must hold it
	NotShown     Code = "not-shown"     // the visitor did not see what they answer
	TooSoon      Code = "too-soon"      // they saw it less than half a second ago
	Resolved     Code = "resolved"      // somebody was first, or time ran out
	NotOffered   Code = "not-offered"   // the call cannot be answered so
	OwnQuestion  Code = "own-question"  // whoever asked does not answer
	Different    Code = "different"     // what was said to be identical is not
	Invalid      Code = "invalid"       // what was sent cannot be put in force
	BaseRequired Code = "base-required" // the change does not say which state it was made from
	BaseChanged  Code = "base-changed"  // the change was made from another state than the one that there is
	Corrupt      Code = "corrupt"       // what is to be changed cannot be read
	TimedOut     Code = "timed-out"     // it took too long; it can be tried again
)

// Error is why an operation was not done. Its text is for the person who asked.
type Error struct {
	Code Code
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// CodeOf is the code of an error of this package, [Failed] for every other error, and "" for none.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return Failed
}
