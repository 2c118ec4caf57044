package builtin

import (
	"errors"
	"fmt"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
)

// Commands judges commands. *command.Commands does.
type Commands interface {
	Judge(toolward.Caller, command.HostParams, *command.Request) (*command.Ruling, error)
	RecordUse(*command.Assessment)
}

// judge has the command analyzed and judged, and puts what is found into the facts.
func (b *Toolbox) judge(plan *execPlan, r *toolward.Request, at located, params command.HostParams, byClient bool, facts *toolward.Facts) error {
	if b.deps.Commands == nil {
		return nil
	}
	ruling, err := b.deps.Commands.Judge(r.Call.Caller, params, &command.Request{
		Command: plan.command, Dir: plan.dir.Real, Level: r.Level, Places: at.Classifier, ByShell: byClient, Enforced: byClient && b.cfg.EnforceText, Sandboxed: at.box != nil,
		Kept:     b.deps.Kept,
		Rejudged: byClient && b.deps.Light != nil && b.startsByTicket(),
		Getenv:   func(name string) (string, bool) { value, ok := plan.env[name]; return value, ok },
	})
	var nowhere *command.HostError
	switch {
	case errors.As(err, &nowhere) && nowhere.Code == command.CodeElevatedUnavailable:
		// The model learns nothing of the settings; the class of the call refuses it.
		facts.Elevated = true
		facts.Analysis = &toolward.CommandAnalysis{Forbidden: nowhere.Text}
		return nil
	case errors.As(err, &nowhere):
		return &toolward.InvalidArgs{Field: hostField(nowhere.Code), Text: nowhere.Text}
	case err != nil:
		return fmt.Errorf("judge the command: %w", err)
	}
	plan.ruling = ruling
	facts.Elevated = facts.Elevated || ruling.Place.Elevated != command.ElevatedOff
	facts.Analysis = ruling.Analysis()
	facts.Mutates = !ruling.OnlyReads()
	facts.Analysis.Contained = at.box != nil
	facts.Findings = append(facts.Findings, ruling.CallFindings()...)
	facts.External = ruling.External()
	if facts.Mutates {
		facts.Takes = at.takes(ruling.Takes(at.Classifier))
	}
	return nil
}

// hostField is the parameter that an error about the place of a command is about.
func hostField(code string) string {
	switch code {
	case command.CodeInvalidSecurity:
		return "security"
	case command.CodeInvalidAsk:
		return "ask"
	case command.CodeDeniedByApprovalFile:
		return "elevated"
	}
	return "host"
}
