package desk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/forward"
	"github.com/toolward/toolward/sandbox/settings"
)

// Forwards has the ports of sandboxes that are forwarded to this machine.
type Forwards interface {
	// Start forwards a port. record is called before anybody can connect; what it refuses is not forwarded.
	Start(ctx context.Context, name string, port, to uint16, record func(forward.Forward) error) (forward.Forward, error)
	Stop(name string, port uint16, why string) error
	List() []forward.Forward
}

// What the record calls the beginning and the end of a forward.
const (
	EventForwarded    fleet.EventKind = "forwarded"
	EventForwardEnded fleet.EventKind = "forward-ended"
)

// SandboxPorts is what listens in a sandbox, and what of it is forwarded to this machine.
type SandboxPorts struct {
	Ports    []fleet.Listening `json:"ports"`
	More     bool              `json:"more,omitempty"` // there are more
	Forwards []forward.Forward `json:"forwards"`
}

// SandboxPorts looks at what listens in a sandbox now.
func (d *Desk) SandboxPorts(ctx context.Context, v Visitor, name string) (p SandboxPorts, err error) {
	if err := d.may(v, SeeSandboxes, d.sandboxes != nil); err != nil {
		return p, err
	}
	if p.Forwards, err = d.PortForwards(v, name); err != nil {
		return p, err
	}
	p.Ports, p.More, err = d.sandboxes.Ports(ctx, name)
	return p, forwardError(err)
}

// PortForwards are the forwards of a sandbox, or of all if there is no name.
func (d *Desk) PortForwards(v Visitor, name string) ([]forward.Forward, error) {
	if err := v.May(SeeSandboxes); err != nil {
		return nil, err
	}
	list := []forward.Forward{}
	if d.forwards == nil {
		return list, nil
	}
	for _, f := range d.forwards.List() {
		if name == "" || f.Sandbox == name {
			list = append(list, f)
		}
	}
	return list, nil
}

// ForwardPort lets the programs and browsers of this machine reach what listens in a sandbox. It is a person's alone: an agent that could
// have it would put its own server where people and programs look for theirs.
func (d *Desk) ForwardPort(ctx context.Context, v Visitor, name string, port, to uint16) (forward.Forward, error) {
	if err := d.may(v, ForwardPorts, d.forwards != nil); err != nil {
		return forward.Forward{}, err
	}
	f, err := d.forwards.Start(ctx, name, port, to, func(f forward.Forward) error {
		data := v.signed(ForwardData(EventForwarded, &f))
		return d.record(ctx, audit.Event{Type: audit.TypeSandbox, Agent: settings.ScopeAgentID(f.Scope), Data: data})
	})
	return f, forwardError(err)
}

// StopForward ends a forward.
func (d *Desk) StopForward(ctx context.Context, v Visitor, name string, port uint16) error {
	if err := d.may(v, ForwardPorts, d.forwards != nil); err != nil {
		return err
	}
	if err := d.forwards.Stop(name, port, "by "+v.By.Name()); err != nil {
		return forwardError(err)
	}
	d.note(ctx, audit.Event{Type: audit.TypeConfig, Data: v.signed(map[string]any{"event": "forward-stopped", "sandbox": name, "port": int(port)})})
	return nil
}

// ForwardData is what a record says of a forward.
func ForwardData(event fleet.EventKind, f *forward.Forward) map[string]any {
	return map[string]any{"event": string(event), "sandbox": f.Sandbox, "port": int(f.Port), "localPort": int(f.Local)}
}

func forwardError(err error) error {
	var own *Error
	switch {
	case err == nil, errors.As(err, &own):
		return err
	case sandbox.CodeOf(err) == sandbox.CodeNotFound:
		return &Error{Unknown, err}
	case sandbox.CodeOf(err) == sandbox.CodeConfig:
		return &Error{Invalid, err}
	}
	return &Error{Failed, err}
}

// About is what is to be said of an event besides its name.
func (e *SandboxEvent) About() string {
	var words []string
	if len(e.Paths) > 0 {
		words = append(words, strings.Join(e.Paths, ", "))
	}
	switch {
	case e.LocalPort != 0:
		words = append(words, fmt.Sprintf("port %d, at 127.0.0.1:%d", e.Port, e.LocalPort))
	case e.Port != 0:
		words = append(words, strings.TrimSpace(fmt.Sprintf("port %d %s", e.Port, e.Program)))
	}
	if e.By != "" {
		words = append(words, "by "+e.By)
	}
	if e.Why != "" {
		words = append(words, e.Why)
	}
	return strings.Join(words, " ")
}
