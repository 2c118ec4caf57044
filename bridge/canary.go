package bridge

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"time"
)

// canaryTime bounds the proof; a sandbox may have to be made for it.
const canaryTime = 30 * time.Second

// said is what a hook has answered.
type said struct {
	ended          *os.ProcessState // nil: it could not be started
	err            error
	stdout, stderr []byte
}

// canary runs the installed command as the client would, with a call that is always refused.
func (d *doctor) canary(ctx context.Context, one installed) (blocks bool) {
	before, guarded := one.events["PreToolUse"]
	if !guarded {
		return false
	}
	event, environ, err := d.setup.client.canary(d.workDir())
	if err != nil {
		d.add("canary", Failed, "", "%v", err)
		return false
	}
	answer := d.ask(ctx, before.Hooks[0], event, environ)
	return d.judgeCanary(one.path, answer.ended, answer.err, answer.stdout, strings.TrimSpace(string(answer.stderr)))
}

func (d *doctor) workDir() string {
	if d.setup.Project != "" {
		return d.setup.Project
	}
	return d.setup.Home
}

// ask runs an installed hook with an event.
func (d *doctor) ask(ctx context.Context, h handler, event []byte, environ []string) (answer said) {
	ctx, cancel := context.WithTimeout(ctx, canaryTime)
	defer cancel()
	command := exec.CommandContext(ctx, h.Command, h.Args...)
	command.Dir = d.workDir()
	command.Env = append(os.Environ(), environ...)
	command.Stdin = bytes.NewReader(event)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	answer.err = command.Run()
	answer.ended, answer.stdout, answer.stderr = command.ProcessState, stdout.Bytes(), stderr.Bytes()
	return answer
}

// canaryWords are what a confined canary sings.
const canaryWords = "toolward canary"

// confinedCanary has a command allowed as the client would, and runs what the client is told to run in its place. It proves that
// hook, ticket and sandbox work together; that the client keeps to what it is told is seen with each of its commands.
func (d *doctor) confinedCanary(ctx context.Context, one installed) {
	if d.setup.client.command == nil {
		return
	}
	dir, err := os.MkdirTemp("", "toolward-canary-")
	if err != nil {
		d.add("confined", Failed, "", "%v", err)
		return
	}
	defer os.RemoveAll(dir)
	event, environ, err := d.setup.client.command(dir, "echo "+canaryWords)
	if err != nil {
		d.add("confined", Failed, "", "%v", err)
		return
	}
	answer := d.ask(ctx, one.events["PreToolUse"].Hooks[0], event, environ)
	instead, allowed := d.setup.client.instead(answer.stdout)
	if !allowed || instead == "" || !strings.Contains(instead, "toolward-run") && !strings.Contains(instead, "'run' --home") {
		d.add("confined", Warned, "see: toolward sandbox probe", "%s: commands of %s are not confined: they run on the machine, when people or rules allow them", one.path, d.setup.client.title)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, canaryTime)
	defer cancel()
	run := exec.CommandContext(ctx, "/bin/sh", "-c", instead)
	run.Dir = dir
	if out, err := run.CombinedOutput(); strings.TrimSpace(string(out)) != canaryWords {
		d.add("confined", Failed, "see: toolward sandbox probe", "%s: a confined command did not run: %v: %s", one.path, err, clipped(strings.TrimSpace(string(out))))
		return
	}
	d.add("confined", Passed, "", "%s: commands that nobody sees run confined, through toolward-run", one.path)
}

func (d *doctor) judgeCanary(path string, ended *os.ProcessState, err error, stdout []byte, stderr string) (blocks bool) {
	switch {
	case ended == nil:
		d.add("canary", Failed, d.hint, "%s: the hook cannot be started: %v", path, err)
	case ended.ExitCode() == 2 && stderr != "":
		d.add("canary", Warned, "run: toolward up", "%s: the hook blocks every call, because the daemon did not answer: %s", path, stderr)
	case ended.ExitCode() == 0 && d.setup.client.blocks(stdout):
		d.add("canary", Passed, "", "%s: the hook blocks", path)
		return true
	default:
		d.add("canary", Failed, d.hint, "%s: the hook did not block the canary: exit status %d, output %q, error %q",
			path, ended.ExitCode(), clipped(string(stdout)), clipped(stderr))
	}
	return false
}

func clipped(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
