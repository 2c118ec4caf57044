package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Version is the format of records, their field "v".
const Version = 1

// Type says what a record is about.
type Type string

// The types of records.
const (
	TypeDecision   Type = "decision"   // a call was decided; written before it runs
	TypeOutcome    Type = "outcome"    // what became of a decided call
	TypeLevel      Type = "level"      // a session's level changed
	TypeAnomaly    Type = "anomaly"    // a detector fired, or the log itself is not as it was left
	TypeGrant      Type = "grant"      // a grant was made, revoked or expired
	TypeApproval   Type = "approval"   // people were asked, and answered
	TypeConfig     Type = "config"     // configuration was proposed, applied or refused
	TypeSandbox    Type = "sandbox"    // a sandbox was made, made anew, or ended
	TypeUndo       Type = "undo"       // a person takes calls back, and what became of it
	TypeExternal   Type = "external"   // a session saw content that strangers wrote
	TypeCheckpoint Type = "checkpoint" // a signed statement about the chain up to the record before
	TypeRetention  Type = "retention"  // old records are about to be deleted
)

// Record is one entry of the log as it is stored. The fields before JSON
// repeat what queries filter on; JSON alone is what the chain protects, and
// [Verify] compares the two.
type Record struct {
	Seq     int64     // position in the chain, from 1, without gaps
	Time    time.Time // when it happened, to the millisecond
	Type    Type
	Ref     int64 // outcomes: Seq of their decision; else 0
	Session string
	Agent   string
	Tool    string
	Verdict string // decisions: allow or deny
	Status  string // outcomes

	// JSON is the canonical record without its hash: RFC 8785, which sorts
	// keys and escapes only what must be.
	JSON string
	// Hash is SHA-256 over the previous record's hash in lower hex (64 zeros
	// before the first), followed by JSON.
	Hash Hash
}

// Hash is a SHA-256 digest.
type Hash [sha256.Size]byte

// String is the digest in lower hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// chain computes the hash of a record that follows prev.
func chain(prev Hash, record string) Hash {
	b := make([]byte, 0, 2*sha256.Size+len(record))
	b = hex.AppendEncode(b, prev[:])
	return sha256.Sum256(append(b, record...))
}

// AppendNDJSON appends the record in the export format: JSON with the hash as
// its last field, and a newline. Whoever cuts the hash out again has the exact
// bytes that it is computed over.
func (r *Record) AppendNDJSON(b []byte) []byte {
	if r.JSON == "" {
		return b
	}
	b = append(b, r.JSON[:len(r.JSON)-1]...)
	b = append(b, `,"hash":"`...)
	b = hex.AppendEncode(b, r.Hash[:])
	return append(b, "\"}\n"...)
}

// MarshalJSON writes the record with its hash.
func (r *Record) MarshalJSON() ([]byte, error) {
	b := r.AppendNDJSON(make([]byte, 0, len(r.JSON)+80))
	return b[:max(len(b)-1, 0)], nil
}
