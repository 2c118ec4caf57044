package trial

import (
	"context"
	"errors"

	"github.com/toolward/toolward"
)

// levelOf is the level of every session of a case.
type levelOf toolward.Level

// Level is the level of the case.
func (l levelOf) Level(context.Context, *toolward.Call) (toolward.Level, toolward.LevelInputs, error) {
	return toolward.Level(l), toolward.LevelInputs{Floor: toolward.Level(l)}, nil
}

// Expose fails: a case runs nothing.
func (levelOf) Expose(context.Context, toolward.SessionKey, toolward.Exposure) error {
	return errOnlyExplained
}

// nobody answers no question and keeps no record: the calls of cases are explained, never made.
type nobody struct{}

var errOnlyExplained = errors.New("the calls of cases are only explained")

// Granted says no.
func (nobody) Granted(context.Context, *toolward.Question) (string, bool, error) {
	return "", false, nil
}

// Covered says no: a case has no remembered answers.
func (nobody) Covered(context.Context, *toolward.Question) (string, bool, error) {
	return "", false, nil
}

// Ask fails.
func (nobody) Ask(context.Context, *toolward.Question) (toolward.Answer, error) {
	return toolward.Answer{}, errOnlyExplained
}

// Consume fails.
func (nobody) Consume(context.Context, string, string) error { return errOnlyExplained }

// Decide fails.
func (nobody) Decide(context.Context, *toolward.DecisionRecord) (toolward.RecordID, error) {
	return 0, errOnlyExplained
}

// Conclude fails.
func (nobody) Conclude(context.Context, toolward.RecordID, *toolward.OutcomeRecord) error {
	return errOnlyExplained
}
