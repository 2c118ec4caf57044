package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/toolward/toolward/client/local"
)

// Exit codes; docs/cli.md explains them to people.
const (
	exitOK        = 0
	exitError     = 1 // the command failed
	exitRefused   = 2 // refused by policy or a person; for a hook: the call must not run
	exitUsage     = 64
	exitNotPerson = 77 // needs a signed-in person
	exitNoDaemon  = 69 // the daemon does not answer
	exitUnsound   = 65 // something was checked and found wrong
)

// invocation is what every command gets: the streams, the home and the way to the daemon.
type invocation struct {
	context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	home           string
	homeGiven      bool // by an option or a variable
	json           bool
}

// exitErr carries an exit code with an error.
type exitErr struct {
	code int
	err  error
	hint string // what to do about it
}

func (e *exitErr) Error() string { return e.err.Error() }

func (e *exitErr) Unwrap() error { return e.err }

// report prints an error with its hint and returns its exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	code, hint := exitError, ""
	var coded *exitErr
	var asked *local.Error
	switch {
	case errors.As(err, &coded):
		code, hint = coded.code, coded.hint
	case errors.As(err, &asked):
		code, hint = codeOf(asked), asked.Hint
	}
	if text := strings.TrimSpace(err.Error()); text != "" {
		fmt.Fprintln(stderr, "toolward:", text)
	}
	if hint != "" {
		fmt.Fprintln(stderr, "hint:", hint)
	}
	return code
}

// codeOf is the exit code of a request that the gateway did not answer well.
func codeOf(err *local.Error) int {
	switch {
	case errors.Is(err, local.ErrAbsent):
		return exitNoDaemon
	case errors.Is(err, local.ErrNotPerson):
		return exitNotPerson
	}
	return exitError
}

// daemon is the running gateway, if one runs.
func (inv *invocation) daemon() *local.Gateway { return local.At(inv.home) }

// printJSON prints one JSON value for programs.
func (inv *invocation) printJSON(v any) error {
	enc := json.NewEncoder(inv.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// words is where sentences for people go. Under --json standard output is for programs only.
func (inv *invocation) words() io.Writer {
	if inv.json {
		return inv.stderr
	}
	return inv.stdout
}

// done tells that a command did what it is for, in a word for programs or a sentence for people.
func (inv *invocation) done(word, sentence string) error {
	if inv.json {
		return inv.printJSON(map[string]string{"done": word})
	}
	_, err := fmt.Fprintln(inv.stdout, sentence)
	return err
}
