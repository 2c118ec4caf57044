package builtin

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/binding"
)

// ClientCommand finds out what a command would touch that the client's own shell will run, in dir; "" is the working
// directory of the call. It is judged as exec judges its own, and stricter where only that shell knows what a word means:
// its variables, aliases and search path are the client's.
func (b *Toolbox) ClientCommand(ctx context.Context, r *toolward.Request, line, dir string) (toolward.Facts, error) {
	facts := toolward.Facts{Command: line, Mutates: true}
	if strings.ContainsRune(line, 0) {
		return facts, &toolward.InvalidArgs{Field: "command", Text: "contains a NUL character"}
	}
	at, err := b.locate(ctx, r)
	if err != nil {
		return facts, err
	}
	plan := &execPlan{command: line}
	if plan.dir, err = at.commandDir(dir); err != nil {
		return facts, err
	}
	facts.Bound = []string{"workdir " + plan.dir.Real}
	if plan.env, err = b.rules.Build(b.environ, nil, command.RejectOverrides); err != nil {
		return facts, fmt.Errorf("environment: %w", err)
	}
	plan.env["PWD"] = plan.dir.Real
	if err := b.judge(plan, r, at, command.HostParams{}, true, &facts); err != nil {
		return facts, err
	}
	plan.bindable = binding.Bindable{Host: string(toolward.HostGateway), Dir: plan.dir.Real}
	if plan.ruling != nil {
		plan.bindable = plan.ruling.Bindable(plan.bindable)
	}
	plan.bindable.Text = line
	if plan.binding, err = b.binder.Bind(plan.bindable); err != nil {
		return facts, fmt.Errorf("bind the command: %w", err)
	}
	facts.Bound = append(facts.Bound, "command "+plan.binding.Digest())
	facts.Prepared = plan
	return facts, nil
}

// Assessment is what is known of the command of a call, as it was judged; nil if nobody judged it.
func Assessment(r *toolward.Request) *command.Assessment {
	if plan, ok := r.Facts.Prepared.(*execPlan); ok && plan.ruling != nil {
		return plan.ruling.Assessment
	}
	return nil
}

// RecordUse notes the entries that let a command of a client run, once it has started.
func (b *Toolbox) RecordUse(r *toolward.Request) {
	if plan, ok := r.Facts.Prepared.(*execPlan); ok && plan.listed() && b.deps.Commands != nil {
		b.deps.Commands.RecordUse(plan.ruling.Assessment)
	}
}
