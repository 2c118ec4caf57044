package config

import (
	"time"

	"github.com/toolward/toolward/undo"
)

// Undo is the section "undo".
type Undo struct {
	Enabled   *bool `json:"enabled,omitempty" jsonschema:"keep the workspace before each call that may write to it, so that people can take the call back; default true"`
	MaxBytes  int64 `json:"maxBytes,omitempty" jsonschema:"bytes of all that is kept; beyond it the oldest calls of the workspace that needs the most go"`
	KeepDays  int   `json:"keepDays,omitempty" jsonschema:"days after which a call cannot be taken back any more"`
	FileBytes int64 `json:"fileBytes,omitempty" jsonschema:"bytes of one file; a larger one is not kept"`
	Files     int   `json:"files,omitempty" jsonschema:"files and directories of one workspace; calls that write to a larger one ask"`
}

// Keeps reports whether anything is kept.
func (u Undo) Keeps() bool { return u.Enabled == nil || *u.Enabled }

// Limits are the section's bounds.
func (u Undo) Limits() undo.Limits {
	return undo.Limits{File: u.FileBytes, Total: u.MaxBytes, Age: time.Duration(u.KeepDays) * 24 * time.Hour, Entries: u.Files}
}

// undoBound is one bounded setting of the section.
type undoBound struct {
	key   string
	bound bound
	value func(*Undo) int64
	set   func(*Undo, int64)
}

func undoBounds() []undoBound {
	return []undoBound{
		{"undo.maxBytes", bound{5_000_000_000, 1_000_000, 1 << 50}, func(u *Undo) int64 { return u.MaxBytes }, func(u *Undo, n int64) { u.MaxBytes = n }},
		{"undo.keepDays", bound{7, 1, 365}, func(u *Undo) int64 { return int64(u.KeepDays) }, func(u *Undo, n int64) { u.KeepDays = int(n) }},
		{"undo.fileBytes", bound{100 << 20, 1, 1 << 40}, func(u *Undo) int64 { return u.FileBytes }, func(u *Undo, n int64) { u.FileBytes = n }},
		{"undo.files", bound{300_000, 100, 10_000_000}, func(u *Undo) int64 { return int64(u.Files) }, func(u *Undo, n int64) { u.Files = int(n) }},
	}
}

// withDefaults fills in what the file leaves out.
func (u Undo) withDefaults() Undo {
	keeps := u.Keeps()
	u.Enabled = &keeps
	for _, b := range undoBounds() {
		if b.value(&u) == 0 {
			b.set(&u, b.bound.fallback)
		}
	}
	return u
}

func checkUndo(u Undo, wrong func(key, format string, args ...any)) {
	for _, b := range undoBounds() {
		if v := b.value(&u); v != 0 && (v < b.bound.least || v > b.bound.most) {
			wrong(b.key, "%d is out of range: %s", v, rangeText(b.bound))
		}
	}
}
