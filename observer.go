package toolward

import "context"

// Observer follows calls for measurements. It can change nothing.
type Observer interface {
	// Step is told that a step of a call begins: "call" for the whole admission, then each step of Admit by name,
	// "record", and "run". The context it returns is that of the step; end is called once, with the step's error.
	Step(ctx context.Context, name string, call *Call) (_ context.Context, end func(error))
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
