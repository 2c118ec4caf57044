package desk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/forward"
)

// forwards note what is open.
type forwards struct {
	open []forward.Forward
	why  string
	err  error
}

func (f *forwards) Start(_ context.Context, name string, port, to uint16, record func(forward.Forward) error) (forward.Forward, error) {
	started := forward.Forward{Sandbox: name, Scope: "agent:coder", Port: port, Local: to}
	if f.err != nil {
		return started, f.err
	}
	err := record(started)
	if err == nil {
		f.open = append(f.open, started)
	}
	return started, err
}

func (f *forwards) Stop(_ string, _ uint16, why string) error {
	f.open, f.why = nil, why
	return f.err
}

func (f *forwards) List() []forward.Forward { return f.open }

func TestForwards(t *testing.T) {
	start := func(ctx context.Context, w *world, v desk.Visitor) error {
		_, err := w.desk.ForwardPort(ctx, v, "b1", 3000, 3001)
		return err
	}
	o := operation{"start", "forwarded", nil, start, func(w *world) bool { return len(w.forwards.open) == 1 }}
	o.loosens(t)
	stop := operation{"stop", "forward-stopped", func(t *testing.T, w *world) { must(t, start(t.Context(), w, w.person())) }, func(ctx context.Context, w *world, v desk.Visitor) error {
		return w.desk.StopForward(ctx, v, "b1", 3000)
	}, func(w *world) bool { return len(w.forwards.open) == 0 && w.forwards.why == "by "+w.person().By.Name() }}
	stop.takesAway(t)
}

func TestWhatAForwardIsRecordedAs(t *testing.T) {
	w := newWorld(t)
	_, err := w.desk.ForwardPort(t.Context(), w.person(), "b1", 3000, 3001)
	must(t, err)
	if e := w.events[0]; e.Agent != "coder" || e.Data["sandbox"] != "b1" || fmt.Sprint(e.Data["port"], e.Data["localPort"]) != "3000 3001" {
		t.Errorf("%+v", e)
	}
	ports, err := w.desk.SandboxPorts(t.Context(), w.person(), "b1")
	if err != nil || len(ports.Ports) != 1 || len(ports.Forwards) != 1 {
		t.Errorf("%+v, %v", ports, err)
	}
	if list, err := w.desk.PortForwards(w.person(), "b2"); err != nil || len(list) != 0 {
		t.Errorf("of another sandbox: %v, %v", list, err)
	}
	for who, visitor := range strangers() {
		if _, err := w.desk.SandboxPorts(t.Context(), visitor, "b1"); desk.CodeOf(err) != desk.NotAllowed {
			t.Errorf("%s: %v", who, err)
		}
	}
}

func TestForwardCodes(t *testing.T) {
	w := newWorld(t)
	for want, err := range map[desk.Code]error{
		desk.Unknown: sandbox.Errorf(sandbox.CodeNotFound, "nothing listens"), desk.Invalid: sandbox.Errorf(sandbox.CodeConfig, "no port"),
		desk.Failed: errors.New("stuck"),
	} {
		w.forwards.err = err
		if _, err := w.desk.ForwardPort(t.Context(), w.person(), "b1", 3000, 0); desk.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if len(w.events) > 0 {
		t.Errorf("recorded %v", w.events)
	}
	e := desk.SandboxEvent{Port: 3000, LocalPort: 3001, By: "ada", Why: "its sandbox ended"}
	if e.About() != "port 3000, at 127.0.0.1:3001 by ada its sandbox ended" {
		t.Error(e.About())
	}
}
