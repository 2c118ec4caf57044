package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/envname"
	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/sandbox"
)

// errMemory says that the kernel has ended something of a command because the sandbox had no memory left.
var errMemory = errors.New("the sandbox ran out of memory: sandbox.limits.memory")

// running is a command that was started, here or in a sandbox. *job.Job is one.
type running interface {
	Process() int
	Done() <-chan struct{}
	Result() job.Result
	Stop(syscall.Signal)
	Release()
}

// confinedEnv is what a call sets for a confined command. A variable that may not go into a sandbox refuses the call: a
// command that runs without what it was given does something else.
func confinedEnv(overrides map[string]string, rules settings.EnvRules) (env []string, err error) {
	var given []settings.Variable
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		given = append(given, settings.Variable{Name: name, Value: overrides[name]})
	}
	filtered := rules.Filter(given)
	if len(filtered.Blocked) > 0 {
		return nil, &toolward.InvalidArgs{Field: "env", Text: "sets variables that do not go into a sandbox: " + strings.Join(filtered.Blocked, ", ")}
	}
	for _, v := range filtered.Allowed {
		env = append(env, v.Name+"="+v.Value)
	}
	return env, nil
}

// environment is that of a command inside. The call sets what it may, and of what is dangerous here PATH and its like, which
// choose among the programs of the sandbox; what else may not go in is refused later, by name.
func (c *Confinement) environment(rules *command.Environment, overrides map[string]string) (map[string]string, error) {
	env := map[string]string{}
	for _, variable := range c.Environ {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		one := []settings.Variable{{Name: name, Value: overrides[name]}}
		if !rules.Settable(name, overrides[name]) && (!envname.Portable(name) || len(c.Env.Filter(one).Allowed) == 0) {
			return nil, &command.ForbiddenVariable{Name: name}
		}
		env[name] = overrides[name]
	}
	return env, nil
}

// confine prepares a command for the sandbox. What analysis understood word for word is started without a shell.
func (p *execPlan) confine(box *Confinement) error {
	env, err := confinedEnv(p.overrides, box.Env)
	if err != nil {
		return err
	}
	p.box = box
	p.inside = sandbox.Command{Dir: p.dir.Real, Env: env, Stdin: p.timing.yield == 0, Merged: true}
	if p.ruling != nil {
		p.inside.Segments = p.ruling.Literal()
	}
	if len(p.inside.Segments) == 0 {
		p.inside.Shell = p.command
	}
	return nil
}

// startConfined starts a command in its sandbox. The streams are ours to close.
func (p *execPlan) startConfined(ctx context.Context, streams job.Streams) (running, error) {
	handle, release, err := p.box.Acquire(ctx, p.command)
	if err != nil {
		closeStreams(streams)
		return nil, err
	}
	// The command may outlive the call that started it.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	process, err := handle.Start(life, p.inside)
	if err != nil {
		closeStreams(streams)
		cancel()
		release()
		return nil, err
	}
	c := &confinedCommand{process: process, cancel: cancel, release: release, done: make(chan struct{})}
	go c.follow(life, streams)
	return c, nil
}

func closeStreams(s job.Streams) {
	for _, f := range []*os.File{s.In, s.Out, s.Err} {
		if f != nil {
			_ = f.Close() // the same file may stand twice
		}
	}
}

// confinedCommand is a command in a sandbox.
type confinedCommand struct {
	process sandbox.Process
	cancel  context.CancelFunc
	release func()
	done    chan struct{}
	result  job.Result // valid once done is closed
}

func (c *confinedCommand) follow(life context.Context, streams job.Streams) {
	var copies sync.WaitGroup
	copies.Go(func() { _, _ = io.Copy(streams.Out, c.process.Stdout()) }) // it ends with the command
	if in := c.process.Stdin(); in != nil && streams.In != nil {
		go func() {
			_, _ = io.Copy(in, streams.In) // it ends when our side is closed, or the command
			_ = in.Close()                 // there is nothing to lose
		}()
	}
	status, err := c.process.Wait(life)
	copies.Wait()
	if status.Warning != "" {
		_, _ = fmt.Fprintf(streams.Out, "\ntoolward: %s\n", status.Warning) // nobody may read any more
	}
	c.result = job.Result{Code: status.Code, Signal: status.Signal}
	switch {
	case err != nil && life.Err() != nil:
		c.result = job.Result{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}
	case err != nil:
		c.result = job.Result{Code: -1, Err: err}
	case status.OOM:
		c.result.Err = errMemory
	}
	if err == nil && status.Signal != 0 {
		c.result.Code = 128 + int(status.Signal)
	}
	closeStreams(streams)
	close(c.done)
	c.release()
}

func (c *confinedCommand) Process() int          { return c.process.PID() }
func (c *confinedCommand) Done() <-chan struct{} { return c.done }
func (c *confinedCommand) Result() job.Result    { return c.result }

func (c *confinedCommand) Stop(signal syscall.Signal) {
	if signal == syscall.SIGKILL {
		c.cancel() // ends it with all that it started
		return
	}
	_ = c.process.Signal(signal) // the stronger one follows
}

func (c *confinedCommand) Release() { c.cancel() }
