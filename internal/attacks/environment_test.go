package attacks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

// judgeEnvironment: a command is called with variables that it should get, or the gateway itself has bad ones.
func judgeEnvironment(t *testing.T, c *attack) (outcome, error) {
	err := errors.Join(setupOnly(c, "profile", "gateEnv", "approved"), c.Attempt.only("attempt", "command", "env"), c.Check.only("check", "child_env_absent"))
	if err != nil {
		return outcome{}, err
	}
	w := newWorld(t, func(w *world) {
		for name, value := range c.Setup.object("gateEnv") {
			w.environ = append(w.environ, fmt.Sprintf("%s=%v", name, value))
		}
	})
	p := &approvalPlay{world: w, asked: map[string]admission{}, agents: map[string]toolward.Caller{}}
	for _, command := range c.Setup.list("approved") {
		if o, err := p.allow(w.newCommand(command, nil)); err != nil || o.answer != allowed {
			return outcome{}, errors.Join(err, fmt.Errorf("the command could not be approved before: %s", o.why))
		}
	}
	if c.Check.has("child_env_absent") {
		return p.judgeInherited(c)
	}
	a := w.admit(w.newCommand(c.Attempt.text("command"), c.Attempt.object("env")))
	if a.answer == asked && len(c.Setup.list("approved")) == 0 {
		// The environment is not refused. The programs of the corpus are not on this machine: its own says what they get.
		return judgeCommand(t, c, c.Attempt.object("env"))
	}
	return w.outcome(a), nil
}

func (w *world) newCommand(command string, env fields) toolward.Call {
	caller, _ := w.main("s1")
	args := map[string]any{"command": command}
	if env != nil {
		args["env"] = env
	}
	return w.newCall(caller, "exec", args)
}

// allow has op1 answer the question about a call.
func (p *approvalPlay) allow(call toolward.Call) (outcome, error) {
	a := p.admit(call)
	if a.answer != asked {
		return p.outcome(a), nil
	}
	return p.answer(a.approval, "allow-once", "op1")
}

// judgeInherited has a command show its environment.
func (p *approvalPlay) judgeInherited(c *attack) (outcome, error) {
	a := p.admit(p.newCommand("/usr/bin/env", nil))
	if a.answer == asked {
		if o, err := p.answer(a.approval, "allow-once", "op1"); err != nil || o.answer != allowed {
			return outcome{}, errors.Join(err, errors.New(o.why))
		}
		call := p.newCommand("/usr/bin/env", nil)
		call.Approval = a.approval
		a = p.admit(call)
	}
	if a.answer != allowed {
		return p.outcome(a), nil
	}
	result, err := a.pass.Run(context.Background())
	if err != nil {
		return outcome{}, err
	}
	shown := fmt.Sprint(result.Content)
	if !strings.Contains(shown, "PATH=") {
		return outcome{}, fmt.Errorf("the command did not show its environment: %s", shown)
	}
	if i := slices.IndexFunc(c.Check.list("child_env_absent"), func(name string) bool { return strings.Contains(shown, name+"=") }); i >= 0 {
		return outcome{answer: harmful, why: "the command got " + c.Check.list("child_env_absent")[i]}, nil
	}
	return outcome{answer: contained, took: p.watch.longest}, nil
}
