package policy

import (
	"time"

	"github.com/toolward/toolward"
)

// classified is a call with its row of the class table and all that changed it.
type classified struct {
	toolward.Classification
	row     *row
	enabled bool // blocked, and the operator enabled it by name
	named   bool // an override concerns it
	// agentInsists says that the section of the agent itself does not leave it to run without a question.
	agentInsists bool
	wait         time.Duration // how long the rule that asks lets the question wait; 0 if it does not say
	overrides    []string
	findings     []toolward.Finding
	reasons      []toolward.Reason
}

func (c *classified) explain(r toolward.Reason) { c.reasons = append(c.reasons, r) }
