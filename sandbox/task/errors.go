package task

import (
	"errors"
	"fmt"
)

// Code says what kind of failure an [*Error] is.
type Code string

// The codes.
const (
	CodeUnavailable Code = "unavailable" // no engine, or the sandbox is gone
	CodeNotFound    Code = "not_found"
	CodeReadOnly    Code = "read_only"
	CodeEscape      Code = "escape" // the path leads out of everything that is mounted
	CodeHardlink    Code = "hardlink"
	CodeNotRegular  Code = "not_regular"
	CodeTooLarge    Code = "too_large"
	CodeTimeout     Code = "timeout"
	CodeOOM         Code = "oom"
	CodeConflict    Code = "conflict"
	CodeConfig      Code = "config"
	CodeChanged     Code = "changed"   // the file is not the one it was
	CodeExists      Code = "exists"    // there is such a file already
	CodeDenied      Code = "denied"    // no permission
	CodeFull        Code = "full"      // no space left
	CodeDirectory   Code = "directory" // is a directory, or is none
	CodeFailed      Code = "failed"    // anything else
)

// Error is every failure of a sandbox and of its engines.
type Error struct {
	Code Code
	Text string // what happened, for people
	Fix  string // what mends it; may be empty

	Cause error // part of Text; may be nil
}

func (e *Error) Error() string {
	if e.Fix != "" {
		return e.Text + " (" + e.Fix + ")"
	}
	return e.Text
}

func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an [*Error] with a code. The last argument is its cause if it is an error.
func Errorf(code Code, format string, args ...any) *Error {
	e := &Error{Code: code, Text: fmt.Sprintf(format, args...)}
	if n := len(args); n > 0 {
		e.Cause, _ = args[n-1].(error)
	}
	return e
}

// CodeOf returns the code of an error: CodeFailed if it has none, "" without an error.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeFailed
}
