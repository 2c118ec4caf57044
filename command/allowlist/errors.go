package allowlist

import (
	"errors"
	"fmt"
	"strings"
)

// The errors of a change that was made from another state of the file.
var (
	ErrBaseRequired = errors.New("base hash required; re-run get and retry")
	ErrBaseChanged  = errors.New("changed since last load; re-run get and retry")
)

// CheckBase compares the state that a change was made from with the one that there is.
func CheckBase(exists bool, current, base string) error {
	base = strings.TrimSpace(base)
	switch {
	case !exists:
		return nil
	case base == "":
		return ErrBaseRequired
	case base != current:
		return ErrBaseChanged
	}
	return nil
}

// CorruptError is the error of a change to a file that cannot be read.
type CorruptError struct {
	Path string
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt (%v): all commands are refused until you mend or replace it", e.Path, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// InvalidContent is the error of content that cannot be put into force.
type InvalidContent struct{ Err error }

func (e *InvalidContent) Error() string { return FileName + ": " + e.Err.Error() }
func (e *InvalidContent) Unwrap() error { return e.Err }
