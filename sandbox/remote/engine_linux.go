package remote

import (
	"context"

	"github.com/toolward/toolward/sandbox"
)

var _ sandbox.Engine = (*engine)(nil)

// engine is one of the server's.
type engine struct {
	client *Client
	name   string
}

// Engine is the server's engine of this name.
func (c *Client) Engine(name string) sandbox.Engine { return &engine{c, name} }

func (e *engine) Name() string { return e.name }

func (e *engine) Probe(ctx context.Context) (sandbox.Capabilities, error) {
	found, _, err := askEngine[sandbox.Capabilities](ctx, e.client, callProbe, ofEngine{Engine: e.name})
	return found, err
}

func (e *engine) Sweep(ctx context.Context) error {
	_, _, err := askEngine[nothing](ctx, e.client, callSweep, ofEngine{Engine: e.name})
	return err
}

func (e *engine) Ensure(ctx context.Context, spec *sandbox.Spec) (sandbox.Handle, error) {
	p, files := planOf(e.name, spec)
	m, s, err := askEngine[made](ctx, e.client, callEnsure, p, files...)
	if err != nil {
		return nil, err
	}
	return newHandle(s, m), nil
}

func (e *engine) Lookup(ctx context.Context, name string) (sandbox.State, error) {
	state, _, err := askEngine[sandbox.State](ctx, e.client, callLookup, ofEngine{e.name, name})
	return state, err
}

func (e *engine) List(ctx context.Context) ([]sandbox.State, error) {
	states, _, err := askEngine[[]sandbox.State](ctx, e.client, callList, ofEngine{Engine: e.name})
	return states, err
}

func (e *engine) Stop(ctx context.Context, name string) error {
	_, _, err := askEngine[nothing](ctx, e.client, callStop, ofEngine{e.name, name})
	return err
}

func (e *engine) Remove(ctx context.Context, name string) error {
	_, _, err := askEngine[nothing](ctx, e.client, callRemove, ofEngine{e.name, name})
	return err
}

// Close closes the server's engine, if it was ever used.
func (e *engine) Close() error {
	e.client.mu.Lock()
	s := e.client.current
	e.client.mu.Unlock()
	if s == nil || isClosed(s.gone) {
		return nil // it has ended with its sandboxes
	}
	_, err := ask[nothing](context.Background(), s, callClose, ofEngine{Engine: e.name})
	return err
}
