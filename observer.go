package toolward

import "context"

// Observer follows calls for measurements. It can change nothing.
type Observer interface {
	// Step is told that a step of a call begins: "call" for the whole admission, within it each step of Admit by name
	// and "record", and later "run". The context it returns is that of the step; end is called once, with the step's error.
	Step(ctx context.Context, name string, call *Call) (_ context.Context, end func(error))
}

// under is a context with the values of another: a run belongs to the admission that allowed it, but ends with its own
// caller.
type under struct {
	context.Context
	values context.Context
}

func (u under) Value(key any) any {
	if v := u.values.Value(key); v != nil {
		return v
	}
	return u.Context.Value(key)
}

// observed runs a step under the eyes of the observer, if there is one.
func (g *Gateway) observed(ctx context.Context, name string, call *Call, do func(context.Context) error) (err error) {
	if g.observer == nil {
		return do(ctx)
	}
	ctx, end := g.observer.Step(ctx, name, call)
	defer func() { end(err) }()
	return do(ctx)
}
