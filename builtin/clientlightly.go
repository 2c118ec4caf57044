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
	"syscall"

	"github.com/creack/pty"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/ticket"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/envname"
	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/sandbox"
)

// startLightly starts a command of a client on this machine that no person saw, as exec starts its own: what was judged, in the
// environment it was judged in, kept from what it has no business with.
func (b *Toolbox) startLightly(r *toolward.Request, plan *execPlan, terms *ticket.Terms) (ticket.Command, error) {
	if err := b.unchanged(plan); err != nil {
		return nil, err
	}
	if err := b.confineLightly(r, plan); err != nil {
		return nil, err
	}
	env, left := hereFor(terms.Environ, plan.env)
	plan.job.Env = command.EnvironmentList(env)
	streams, ours, err := connectClient(terms, plan.job.Alone())
	if err != nil {
		return nil, err
	}
	started, err := job.Start(plan.job, streams)
	if err != nil {
		ours.close()
		return nil, startError(err)
	}
	return &lightRun{Job: started, ours: ours, toolbox: b, plan: plan, session: r.Call.Session, left: left, reports: terms.Reports}, nil
}

// ofTerminal are the variables of a client's shell that go along on the machine: what programs write and how, and which agents hold
// their keys. Nothing in them chooses what runs. A command that is not about keys does not find the agents all the same.
var ofTerminal = envname.NewSet("TERM COLORTERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR LANG LANGUAGE TZ SSH_AUTH_SOCK SSH_AGENT_PID GPG_TTY", "LC_", "")

// ofShell are variables that each shell has for itself.
var ofShell = envname.NewSet("_ PWD OLDPWD SHLVL SHELL", "", "")

// hereFor is the environment of a client's command on this machine: the one that it was judged in, and what tells of the client's
// terminal. left are the names of what the client has besides.
func hereFor(environ []string, judged map[string]string) (env map[string]string, left []string) {
	env = maps.Clone(judged)
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		was, known := judged[name]
		switch {
		case known && was == value, ofShell.Has(name), !envname.Portable(name):
		case ofTerminal.Has(name):
			env[name] = value
		default:
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return env, left
}

// clientEnds are our ends of what a command on this machine reads and writes.
type clientEnds struct {
	in       *os.File // nil: nothing
	out, err *os.File // err is nil where there is one output
	terminal bool
}

func (e *clientEnds) close() {
	for _, f := range []*os.File{e.in, e.out, e.err} {
		if f != nil {
			_ = f.Close() // the same file may stand twice
		}
	}
}

// connectClient makes the streams of a command. They are pipes of ours: what the client's shell has for streams is nothing that a
// command of ours holds.
func connectClient(terms *ticket.Terms, alone bool) (theirs job.Streams, ours *clientEnds, err error) {
	ours = &clientEnds{}
	if terms.Terminal != nil && alone {
		terminal, theirEnd, err := openTerminal()
		if err != nil {
			return theirs, nil, err
		}
		ours.in, ours.out, ours.terminal = terminal, terminal, true
		_ = ours.resize(*terms.Terminal) // a size is not worth an error
		return job.Streams{In: theirEnd, Out: theirEnd, Err: theirEnd, Terminal: true}, ours, nil
	}
	fail := func(err error) (job.Streams, *clientEnds, error) {
		closeStreams(theirs)
		ours.close()
		return job.Streams{}, nil, fmt.Errorf("open a pipe: %w", err)
	}
	if ours.out, theirs.Out, err = os.Pipe(); err != nil {
		return fail(err)
	}
	theirs.Err = theirs.Out
	if !terms.Merged {
		if ours.err, theirs.Err, err = os.Pipe(); err != nil {
			return fail(err)
		}
	}
	if terms.Stdin {
		if theirs.In, ours.in, err = os.Pipe(); err != nil {
			return fail(err)
		}
	}
	return theirs, ours, nil
}

func (e *clientEnds) resize(size sandbox.Size) error {
	return pty.Setsize(e.out, &pty.Winsize{Rows: size.Rows, Cols: size.Cols})
}

// lightRun is a command of a client's shell that runs on this machine, confined lightly.
type lightRun struct {
	*job.Job
	ours    *clientEnds
	toolbox *Toolbox
	plan    *execPlan
	session toolward.SessionKey
	left    []string
	reports bool
}

// PID is the process id on this machine.
func (l *lightRun) PID() int { return l.Process() }

// Stdin is where the command reads.
func (l *lightRun) Stdin() io.WriteCloser {
	switch {
	case l.ours.in == nil:
		return nil
	case l.ours.terminal:
		return typed{l.ours.in}
	}
	return l.ours.in
}

// typed is what is typed at a terminal, which also shows what the command writes.
type typed struct{ io.Writer }

// Close tells the command that nothing more is typed.
func (t typed) Close() error {
	_, err := t.Write([]byte{endOfInput})
	return err
}

// Stdout is what the command writes.
func (l *lightRun) Stdout() io.Reader { return l.ours.out }

// Stderr is empty where the command has one output.
func (l *lightRun) Stderr() io.Reader {
	if l.ours.err == nil {
		return strings.NewReader("")
	}
	return l.ours.err
}

// Signal goes to all processes of the command; [os.ErrProcessDone] if there is none any more.
func (l *lightRun) Signal(signal syscall.Signal) error {
	select {
	case <-l.Done():
		return os.ErrProcessDone
	default:
	}
	l.Job.Signal(signal)
	return nil
}

// Resize tells the size of the client's terminal.
func (l *lightRun) Resize(size sandbox.Size) error {
	if !l.ours.terminal {
		return nil
	}
	return l.ours.resize(size)
}

// Wait waits for the end, and ends what the command has left behind: that would run on where nobody looks after it.
func (l *lightRun) Wait(ctx context.Context) (sandbox.ExitStatus, error) {
	select {
	case <-l.Done():
	case <-ctx.Done():
		l.Stop(syscall.SIGKILL)
		l.Release()
		return sandbox.ExitStatus{}, context.Cause(ctx)
	}
	l.Release()
	result := l.Result()
	if errors.Is(result.Err, job.ErrStopped) && result.Signal == 0 && result.Code == 0 {
		return sandbox.ExitStatus{Code: 128 + int(syscall.SIGTERM)}, nil
	}
	return sandbox.ExitStatus{Code: result.Code, Signal: result.Signal}, nil
}

// Ended says what a person or a model cannot see from the output alone.
func (l *lightRun) Ended(status sandbox.ExitStatus, err error, tail []byte) (note, dir string) {
	l.ours.close()
	if err != nil {
		return "toolward: the command was ended: " + err.Error(), ""
	}
	var notes []string
	if status.Code != 0 || status.Signal != 0 {
		if hint := lightHint(string(tail)); hint != "" {
			notes = append(notes, "toolward: "+hint)
		}
		if left := l.toolbox.leftOut(l.session, l.left); len(left) > 0 {
			notes = append(notes, "toolward: it ran with the gateway's environment. These variables of yours differ there: "+strings.Join(left, ", "))
		}
	}
	switch at := l.Result().Dir; {
	case !l.reports:
	case l.plan.ruling == nil || l.plan.ruling.ByShell != "":
		notes = append(notes, "toolward: the shell stays in "+l.plan.clientDir)
	case at != l.plan.dir.Real:
		dir = at
	}
	return strings.Join(notes, "\n"), dir
}
