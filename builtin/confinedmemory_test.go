package builtin

import (
	"context"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/sandbox"
)

// endedBox is a sandbox in which every command has ended already.
type endedBox struct {
	sandbox.Handle
	sandbox.Process
	status sandbox.ExitStatus
}

func (e *endedBox) Start(context.Context, sandbox.Command) (sandbox.Process, error) { return e, nil }
func (e *endedBox) PID() int                                                        { return 7 }
func (e *endedBox) Stdin() io.WriteCloser                                           { return nil }
func (e *endedBox) Stdout() io.Reader                                               { return strings.NewReader("half\n") }
func (e *endedBox) Signal(syscall.Signal) error                                     { return nil }
func (e *endedBox) Wait(context.Context) (sandbox.ExitStatus, error)                { return e.status, nil }

// endedBoxes confines every call to it.
type endedBoxes struct {
	box       *endedBox
	workspace string
}

func (e endedBoxes) Confinement(context.Context, *toolward.Call) (*Confinement, error) {
	return &Confinement{
		Workdir: "/workspace", Mounts: []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: e.workspace, Target: "/workspace", Writable: true}},
		Acquire: func(context.Context, string) (sandbox.Handle, func(), error) { return e.box, func() {}, nil },
	}, nil
}

// A command whose memory ran out was started, and says so: whoever reads that a part was not would try it again.
func TestConfinedCommandThatRanOutOfMemory(t *testing.T) {
	for _, test := range []struct {
		status sandbox.ExitStatus
		code   any
		signal string
	}{
		{sandbox.ExitStatus{Code: -1, Signal: syscall.SIGKILL, OOM: true}, nil, "SIGKILL"},
		{sandbox.ExitStatus{Code: 2, OOM: true}, 2.0, ""},
	} {
		w := newWorld(t)
		w.box.deps.Sandboxes = endedBoxes{&endedBox{status: test.status}, w.workspace}
		result := w.run("exec", args{"command": "true"})
		got := details[map[string]any](t, result)
		if !result.IsError || got["oom"] != true || got["exitCode"] != test.code || test.signal != "" && got["signal"] != test.signal {
			t.Errorf("%+v: %v", test.status, got)
		}
		if words := text(result); !strings.Contains(words, "half") || !strings.Contains(words, "ran out of memory") || strings.Contains(words, "not started") {
			t.Errorf("%+v: %q", test.status, words)
		}
	}
}
