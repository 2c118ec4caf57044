package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// probe remembers what an engine can do: for good if it works, else for a minute, so that somebody who mends it need
// not restart the gateway.
type probe struct {
	engine Engine
	turn   chan struct{}
	found  Capabilities
	err    error
	at     time.Time
}

const probeAgain = time.Minute

func (p *probe) look(ctx context.Context, anew bool) (Capabilities, error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return Capabilities{}, Errorf(CodeTimeout, "engine %s: %v", p.engine.Name(), context.Cause(ctx))
	}
	defer func() { <-p.turn }()
	works := p.err == nil && p.found.Works()
	if !anew && !p.at.IsZero() && (works || time.Since(p.at) < probeAgain) {
		return p.found, p.err
	}
	bounded, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	found, err := p.engine.Probe(bounded)
	if err != nil && ctx.Err() != nil {
		return found, err // says nothing about the engine
	}
	p.found, p.err, p.at = found, err, time.Now()
	return found, err
}

// Probe asks every engine anew what it can enforce. An engine that fails has no Level and a check that says why.
func (m *Manager) Probe(ctx context.Context) []Capabilities {
	var all []Capabilities
	for _, e := range m.options.Engines {
		all = append(all, ProbeEngine(ctx, e, m.probes[e.Name()]))
	}
	return all
}

// ProbeEngine asks one engine; p may be nil.
func ProbeEngine(ctx context.Context, e Engine, p *probe) Capabilities {
	if p == nil {
		p = &probe{engine: e, turn: make(chan struct{}, 1)}
	}
	found, err := p.look(ctx, true)
	if err != nil {
		found = Capabilities{Checks: append(found.Checks, Check{Name: "probe", Found: err.Error()})}
	}
	found.Engine = e.Name()
	return found
}

// pick chooses the engine for an agent's sandboxes. It depends on the configuration and the machine only, so that calls
// do not hop between engines.
func (m *Manager) pick(ctx context.Context, r *Resolved) (Engine, error) {
	if r.Engine != EngineAuto {
		e := m.engines[r.Engine]
		if e == nil {
			return nil, unavailable("sandbox.engine is "+r.Engine+", which this program does not have", "sandbox.engine: "+EngineAuto)
		}
		if why := m.refuses(ctx, e, r); why != "" {
			return nil, unavailable("the engine "+r.Engine+" cannot make sandboxes here: "+why, "toolward sandbox probe")
		}
		return e, nil
	}
	order := []string{EngineNative, EngineDocker}
	if r.dockerAsked {
		slices.Reverse(order)
	}
	var reasons []string
	for _, name := range order {
		e := m.engines[name]
		if e == nil {
			continue
		}
		why := m.refuses(ctx, e, r)
		if why == "" {
			return e, nil
		}
		reasons = append(reasons, name+": "+why)
	}
	if len(reasons) == 0 {
		reasons = []string{"this program has none of them"}
	}
	return nil, unavailable("no engine can make sandboxes here: "+strings.Join(reasons, "; "), "toolward sandbox probe")
}

func unavailable(text, fix string) error {
	return &Error{
		Code: CodeUnavailable, Text: text + ". The call was not run outside",
		Fix: fix + " shows more, or set agents.defaults.sandbox.mode to off to run without sandboxes",
	}
}

// refuses says why an engine is no good for an agent; "" if it is.
func (m *Manager) refuses(ctx context.Context, e Engine, r *Resolved) string {
	found, err := m.probes[e.Name()].look(ctx, false)
	if err != nil {
		return err.Error()
	}
	missing := ""
	switch found.Level {
	case LevelFull:
		return ""
	case LevelNoCgroup:
		missing = "cgroup"
	case LevelLandlock:
		missing = "namespaces"
	}
	if missing != "" && slices.Contains(r.DegradeOK, missing) {
		return ""
	}
	var failed []string
	for _, c := range found.Checks {
		if !c.OK {
			failed = append(failed, strings.TrimSpace(fmt.Sprintf("%s: %s. %s", c.Name, c.Found, c.Fix)))
		}
	}
	if missing != "" {
		failed = append(failed, "sandbox.degradeOk may name "+missing)
	}
	if len(failed) == 0 {
		failed = []string{"it works at level 0"}
	}
	return strings.Join(failed, "; ")
}
