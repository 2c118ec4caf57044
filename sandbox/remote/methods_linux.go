package remote

import (
	"context"

	"github.com/toolward/toolward/sandbox"
)

// method answers a call.
type method func(context.Context, *call)

// on is a method that ends with its answer.
func on[A, R any](do func(context.Context, *call, A) (R, error)) method {
	return func(ctx context.Context, c *call) {
		var args A
		var value R
		err := c.args(&args)
		if err == nil {
			value, err = do(ctx, c, args)
		}
		if err != nil {
			_ = fail(c.conn, err) // whoever asked has hung up
			return
		}
		_ = succeed(c.conn, value) // as above
	}
}

// does is a method without an answer but its success.
func does[A any](do func(context.Context, *call, A) error) method {
	return on(func(ctx context.Context, c *call, args A) (nothing, error) { return nothing{}, do(ctx, c, args) })
}

// methods are all that can be asked for.
var methods = map[string]method{
	callProbe: onEngine(func(ctx context.Context, e sandbox.Engine, _ string) (sandbox.Capabilities, error) {
		return e.Probe(ctx)
	}),
	callSweep: onEngine(func(ctx context.Context, e sandbox.Engine, _ string) (nothing, error) { return nothing{}, e.Sweep(ctx) }),
	callLookup: onEngine(func(ctx context.Context, e sandbox.Engine, name string) (sandbox.State, error) {
		return e.Lookup(ctx, name)
	}),
	callList: onEngine(func(ctx context.Context, e sandbox.Engine, _ string) ([]sandbox.State, error) { return e.List(ctx) }),
	callStop: onEngine(func(ctx context.Context, e sandbox.Engine, name string) (nothing, error) {
		return nothing{}, e.Stop(ctx, name)
	}),
	callRemove: onEngine(func(ctx context.Context, e sandbox.Engine, name string) (nothing, error) {
		return nothing{}, e.Remove(ctx, name)
	}),
	callClose:  onEngine(func(_ context.Context, e sandbox.Engine, _ string) (nothing, error) { return nothing{}, e.Close() }),
	callEnsure: on(func(ctx context.Context, c *call, p plan) (made, error) { return c.ensure(ctx, p) }),

	callDone: does(func(ctx context.Context, c *call, a ofBox) error {
		h, err := c.box(a.Box)
		if err != nil {
			return err
		}
		select {
		case <-h.Done():
			c.forget(a.Box)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}),
	callLetGo: does(func(_ context.Context, c *call, a ofBox) error {
		h, err := c.box(a.Box)
		if err != nil {
			return err
		}
		return h.Close()
	}),
	callStat: inBox(func(a atPath) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, a atPath) (sandbox.FileInfo, error) {
		return h.Stat(ctx, a.Path)
	}),
	callLstat: inBox(func(a atPath) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, a atPath) (sandbox.FileInfo, error) {
		return h.Lstat(ctx, a.Path)
	}),
	callRead: inBox(func(a reading) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, a reading) (content, error) {
		data, info, err := h.ReadFile(ctx, a.Path, a.Offset, a.Limit)
		return content{data, info}, err
	}),
	callWrite: inBox(func(a writing) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, a writing) (sandbox.FileInfo, error) {
		return h.WriteFile(ctx, a.Path, a.Data, a.Options)
	}),
	callMkdir: inBox(func(a atPath) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, a atPath) (nothing, error) {
		return nothing{}, h.Mkdir(ctx, a.Path)
	}),
	callErase: inBox(func(a erasing) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, a erasing) (nothing, error) {
		return nothing{}, h.Remove(ctx, a.Path, a.Options)
	}),
	callRename: inBox(func(a renaming) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, a renaming) (nothing, error) {
		return nothing{}, h.Rename(ctx, a.From, a.To)
	}),
	callEntries: inBox(func(a listing) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, a listing) (entries, error) {
		list, more, err := h.List(ctx, a.Path, a.Options)
		return entries{list, more}, err
	}),
	callPorts: inBox(func(a ofBox) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, _ ofBox) (ports, error) {
		list, more, err := h.Ports(ctx)
		return ports{list, more}, err
	}),
	callStats: inBox(func(a ofBox) uint64 { return a.Box }, func(ctx context.Context, h sandbox.Handle, _ ofBox) (sandbox.Stats, error) {
		return h.Stats(ctx)
	}),

	callConnect: func(ctx context.Context, c *call) { c.connect(ctx) },
	callStart:   func(ctx context.Context, c *call) { c.start(ctx) },
	callSignal: does(func(_ context.Context, c *call, a signaling) error {
		p, err := c.process(a.Process)
		if err != nil {
			return err
		}
		return p.Signal(a.Signal)
	}),
	callResize: does(func(_ context.Context, c *call, a resizing) error {
		p, err := c.process(a.Process)
		if err != nil {
			return err
		}
		return p.Resize(a.Size)
	}),
}

// onEngine is a method of an engine.
func onEngine[R any](do func(context.Context, sandbox.Engine, string) (R, error)) method {
	return on(func(ctx context.Context, c *call, a ofEngine) (value R, err error) {
		e, err := c.engine(a.Engine)
		if err != nil {
			return value, err
		}
		return do(ctx, e, a.Name)
	})
}

// inBox is a method of a sandbox.
func inBox[A, R any](which func(A) uint64, do func(context.Context, sandbox.Handle, A) (R, error)) method {
	return on(func(ctx context.Context, c *call, a A) (value R, err error) {
		h, err := c.box(which(a))
		if err != nil {
			return value, err
		}
		return do(ctx, h, a)
	})
}

func (in *served) engine(name string) (sandbox.Engine, error) {
	if e := in.engines[name]; e != nil {
		return e, nil
	}
	return nil, sandbox.Errorf(sandbox.CodeUnavailable, "there is no engine %q", name)
}

func (in *served) box(number uint64) (sandbox.Handle, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if h := in.boxes[number]; h != nil {
		return h, nil
	}
	return nil, sandbox.Errorf(sandbox.CodeUnavailable, "the sandbox has ended")
}

func (in *served) forget(number uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.boxes, number)
}

func (in *served) process(number uint64) (sandbox.Process, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if p := in.processes[number]; p != nil {
		return p, nil
	}
	return nil, sandbox.Errorf(sandbox.CodeFailed, "the command has ended")
}

func (c *call) ensure(ctx context.Context, p plan) (made, error) {
	e, err := c.engine(p.Engine)
	if err != nil {
		return made{}, err
	}
	spec, err := p.spec(c.files)
	if err != nil {
		return made{}, err
	}
	h, err := e.Ensure(ctx, spec)
	if err != nil {
		return made{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for number, known := range c.boxes {
		if known == h {
			return made{number, h.State()}, nil
		}
	}
	c.last++
	c.boxes[c.last] = h
	return made{c.last, h.State()}, nil
}
