package main

import (
	"errors"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/gateway/trial"
)

// pastCandidate is candidate for calls of the past.
func (inv *invocation) pastCandidate(file string) (*trial.Candidate, error) {
	c, err := trial.OpenPast(inv.home, file)
	return c, unsound(err)
}

// candidate compiles a configuration file; "" is the one in the home.
func (inv *invocation) candidate(file string) (*trial.Candidate, error) {
	c, err := trial.Open(inv.home, file)
	return c, unsound(err)
}

// unsound adds what a wrong configuration means where one is only looked at.
func unsound(err error) error {
	var wrong config.Problems
	if errors.As(err, &wrong) {
		return &exitErr{exitUnsound, err, "nothing was changed; the running gateway keeps its configuration"}
	}
	return err
}
