package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

	"github.com/toolward/toolward/hostdaemon"
	"github.com/toolward/toolward/server/door"
)

// Errors that callers branch on; every other refusal is the gateway's own words alone.
var (
	// ErrAbsent says that no gateway answers.
	ErrAbsent = errors.New("no gateway answers")
	// ErrNotPerson says that a signed-in person must ask.
	ErrNotPerson = errors.New("only a signed-in person may do that")
)

// Error is why a request came to nothing, in words for people.
type Error struct {
	Kind error  // ErrAbsent, ErrNotPerson, or nil
	Err  error  // what happened
	Hint string // what to do about it
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap leads to what happened, and to its kind.
func (e *Error) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Kind}
}

// absent says why nobody could be asked.
func (g *Gateway) absent(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if untrusted, ok := errors.AsType[*hostdaemon.UntrustedError](err); ok {
		return &Error{ErrAbsent, untrusted, ""} // it says itself what to do
	}
	daemon, lost := hostdaemon.Of(g.home)
	if lost != nil {
		return &Error{ErrAbsent, lost, ""}
	}
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR) {
		err = fmt.Errorf("no gateway answers at %s", daemon.Socket)
	}
	return &Error{ErrAbsent, err, daemon.Start()}
}

// errStreamEnded is the error of a stream that should have gone on.
func errStreamEnded() error {
	return &Error{ErrAbsent, errors.New("the gateway ended the stream"), "is it still running? toolward doctor"}
}

// refused reads the gateway's own words.
func refused(response *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20)) // what could be read of it is said
	var p door.Problem
	if json.Unmarshal(raw, &p) != nil || p.Message == "" {
		p.Message = strings.TrimSpace(string(raw))
	}
	var kind error
	if response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized {
		kind = ErrNotPerson
		if p.Hint == "" {
			p.Hint = "sign this terminal in with: toolward login"
		}
	}
	return &Error{kind, errors.New(p.Message), p.Hint}
}
