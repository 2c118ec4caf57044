package undo

import (
	"fmt"
	"time"
)

// Call is a call that may change a workspace, with what the workspace was before and after it.
type Call struct {
	ID        string    `json:"id"` // of the call in the record; no other call has it
	Number    int64     `json:"number"`
	Workspace []byte    `json:"workspace"` // absolute path; bytes, because names of files need not be UTF-8
	Agent     string    `json:"agent"`
	Session   string    `json:"session"`
	Tool      string    `json:"tool"`
	Text      string    `json:"text"` // what it does, for people
	At        time.Time `json:"at"`
	Before    Hash      `json:"before"`
	After     Hash      `json:"after"`            // zero while it runs, and if it never ended
	Undoes    string    `json:"undoes,omitempty"` // of one that took another back: that one's ID
}

// Ended reports whether it is known what the workspace was after the call.
func (c *Call) Ended() bool { return c.After != Hash{} }

// MarshalText writes the hash as people see it.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(text []byte) error {
	parsed, ok := parseHash(string(text))
	if !ok {
		return fmt.Errorf("%q names nothing that is kept: %w", text, ErrDamaged)
	}
	*h = parsed
	return nil
}
