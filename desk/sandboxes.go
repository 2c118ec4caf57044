package desk

import (
	"context"
	"errors"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
)

// Sandboxes has the sandboxes of the gateway, as far as people end them and look into them.
type Sandboxes interface {
	Stop(ctx context.Context, name, why string) error
	Remove(ctx context.Context, name, why string) error
	Prune(ctx context.Context) (fleet.Pruned, error)
	// Ports are those on which programs in one listen, and whether there are more.
	Ports(ctx context.Context, name string) ([]fleet.Listening, bool, error)
}

// endPatience is how long a person who ends a sandbox waits until it has ended.
const endPatience = 30 * time.Second

// Ending is a way to end a sandbox.
type Ending struct {
	Done string // what records and answers call it
	do   func(Sandboxes, context.Context, string, string) error
}

// The endings: a stopped sandbox goes on with the next call, a removed one is made anew.
var (
	StopSandbox   = Ending{"stopped", Sandboxes.Stop}
	RemoveSandbox = Ending{"removed", Sandboxes.Remove}
)

// EndSandbox ends a sandbox. Whoever hangs up meanwhile has still done it.
func (d *Desk) EndSandbox(ctx context.Context, v Visitor, name string, how Ending) error {
	if err := d.maySandboxes(v); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	err := how.do(d.sandboxes, ctx, name, "by "+v.By.Name())
	if sandbox.CodeOf(err) == sandbox.CodeNotFound {
		return &Error{Unknown, err}
	}
	data := v.signed(map[string]any{"event": "sandbox-" + how.Done, "sandbox": name})
	if err != nil {
		data["event"], data["why"] = "sandbox-not-"+how.Done, err.Error()
	}
	d.note(ctx, audit.Event{Type: audit.TypeConfig, Data: data})
	if err != nil {
		return &Error{Failed, err}
	}
	return nil
}

// PruneSandboxes ends what is old or unused.
func (d *Desk) PruneSandboxes(ctx context.Context, v Visitor) (fleet.Pruned, error) {
	if err := d.maySandboxes(v); err != nil {
		return fleet.Pruned{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	pruned, err := d.sandboxes.Prune(ctx)
	data := v.signed(map[string]any{
		"event": "sandboxes-pruned", "stopped": pruned.Stopped, "removed": pruned.Removed, "failed": pruned.Failed,
	})
	if err != nil {
		data["why"] = err.Error()
	}
	d.note(ctx, audit.Event{Type: audit.TypeConfig, Data: data})
	if err != nil {
		return pruned, &Error{Failed, err}
	}
	return pruned, nil
}

func (d *Desk) maySandboxes(v Visitor) error {
	if err := v.May(EndSandboxes); err != nil {
		return err
	}
	if d.sandboxes == nil {
		return &Error{NotKept, errors.New("this gateway has no sandboxes")}
	}
	return nil
}
