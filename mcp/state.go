package mcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/toolward/toolward"
)

// waiting is what a client carries back and forth while its call waits for people (protocol 2026-07-28). It is
// attacker-controlled input, so it is signed, and it names everything that the repeated call must still be.
type waiting struct {
	Approval  string              `json:"a"`
	Tool      string              `json:"t"`
	Digest    string              `json:"d"` // of tool, canonical arguments, agent and session
	Principal string              `json:"p"`
	Session   toolward.SessionKey `json:"s"` // so that a call may come back after midnight
	Revision  string              `json:"r"` // of the policy
	Call      string              `json:"c"` // id of the call in the record
	AskedAt   int64               `json:"q"` // Unix milliseconds
	ExpiresAt int64               `json:"x"` // Unix milliseconds
}

// maxState is the length of the longest requestState that is looked at.
const maxState = 4096

// minStateKey is the shortest key that signs, in bytes.
const minStateKey = 32

// stateDomain keeps signatures of other parts of Toolward, should they ever share the key, from passing here.
const stateDomain = "toolward mcp requestState v1\x00"

// The reasons a requestState is refused for.
var (
	errStateForged  = errors.New("it was not made here")
	errStateStale   = errors.New("it has expired")
	errStateForeign = errors.New("it belongs to another client")
	errStateChanged = errors.New("the call is not the one that was asked about")
	errStatePolicy  = errors.New("the policy has changed since")
)

// sealer signs and checks requestState.
type sealer struct{ key []byte }

func (s sealer) seal(w waiting) (string, error) {
	payload, err := json.Marshal(w)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.mac(text)), nil
}

func (s sealer) mac(text string) []byte {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(stateDomain))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// open checks the signature before it looks at anything else, in constant time.
func (s sealer) open(state string) (waiting, error) {
	var w waiting
	if len(state) > maxState {
		return w, errStateForged
	}
	text, signature, ok := strings.Cut(state, ".")
	if !ok {
		return w, errStateForged
	}
	given, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !hmac.Equal(given, s.mac(text)) {
		return w, errStateForged
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || json.Unmarshal(payload, &w) != nil || w.Approval == "" {
		return waiting{}, errStateForged
	}
	return w, nil
}

// covers checks that a repeated call is the one that was asked about. A client that changes its call between the
// question and the answer, or finds another's state, must ask anew.
func (w waiting) covers(id Identity, tool, digest, revision string, now time.Time) error {
	switch {
	case w.Principal != id.principal() || !id.owns(w.Session):
		return errStateForeign
	case !now.Before(time.UnixMilli(w.ExpiresAt)):
		return errStateStale
	case w.Tool != tool || w.Digest != digest || digest == "":
		return errStateChanged
	case w.Revision != revision:
		return errStatePolicy
	}
	return nil
}
