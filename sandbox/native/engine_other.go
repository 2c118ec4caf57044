//go:build !linux

package native

import (
	"context"
	"runtime"

	"github.com/toolward/toolward/sandbox"
)

// Engine is not available on this system.
type Engine struct{}

var _ sandbox.Engine = (*Engine)(nil)

// New returns an engine that says so.
func New(Options) *Engine { return &Engine{} }

func unavailable() error {
	err := sandbox.Errorf(sandbox.CodeUnavailable, "the native sandbox engine needs Linux, and this is %s", runtime.GOOS)
	err.Fix = `use sandbox.engine "docker"`
	return err
}

// Name is "native".
func (*Engine) Name() string { return Name }

// Probe finds nothing that could be enforced.
func (*Engine) Probe(context.Context) (sandbox.Capabilities, error) {
	err := unavailable()
	return sandbox.Capabilities{Engine: Name, Checks: []sandbox.Check{{Name: "system", Found: err.Error()}}}, nil
}

// Sweep finds nothing.
func (*Engine) Sweep(context.Context) error { return nil }

// Ensure refuses.
func (*Engine) Ensure(context.Context, *sandbox.Spec) (sandbox.Handle, error) {
	return nil, unavailable()
}

// Lookup finds nothing.
func (*Engine) Lookup(_ context.Context, name string) (sandbox.State, error) {
	return sandbox.State{}, sandbox.Errorf(sandbox.CodeNotFound, "there is no sandbox %s", name)
}

// List returns nothing.
func (*Engine) List(context.Context) ([]sandbox.State, error) { return nil, nil }

// Stop has nothing to stop.
func (*Engine) Stop(context.Context, string) error { return nil }

// Remove has nothing to remove.
func (*Engine) Remove(context.Context, string) error { return nil }

// Close has nothing to release.
func (*Engine) Close() error { return nil }
