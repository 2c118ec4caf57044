package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

const probeAgain = time.Minute

func (p *probe) look(ctx context.Context, anew bool) (sandbox.Capabilities, error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return sandbox.Capabilities{}, sandbox.Errorf(sandbox.CodeTimeout, "engine %s: %v", p.engine.Name(), context.Cause(ctx))
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
func (m *Manager) Probe(ctx context.Context) []sandbox.Capabilities {
	var all []sandbox.Capabilities
	for _, e := range m.options.Engines {
		all = append(all, ProbeEngine(ctx, e, m.probes[e.Name()]))
	}
	return all
}

// ProbeEngine asks one engine; p may be nil.
func ProbeEngine(ctx context.Context, e sandbox.Engine, p *probe) sandbox.Capabilities {
	if p == nil {
		p = &probe{engine: e, turn: make(chan struct{}, 1)}
	}
	found, err := p.look(ctx, true)
	if err != nil {
		found = sandbox.Capabilities{Checks: append(found.Checks, sandbox.Check{Name: "probe", Found: err.Error()})}
	}
	found.Engine = e.Name()
	return found
}

// pick chooses the engine for an agent's sandboxes. It depends on the configuration and the machine only, so that calls
// do not hop between engines.
func (m *Manager) pick(ctx context.Context, r *settings.Resolved) (sandbox.Engine, settings.Site, error) {
	if r.Engine != settings.EngineAuto {
		e := m.engines[r.Engine]
		if e == nil {
			return nil, settings.Site{}, unavailable("sandbox.engine is "+r.Engine+", which this program does not have", "sandbox.engine: "+settings.EngineAuto)
		}
		site, why := m.refuses(ctx, e, r)
		if why != "" {
			return nil, settings.Site{}, unavailable("the engine "+r.Engine+" cannot make sandboxes here: "+why, "toolward sandbox probe")
		}
		return e, site, nil
	}
	var reasons []string
	for _, e := range candidates(r, m.options.Engines) {
		site, why := m.refuses(ctx, e, r)
		if why == "" {
			return e, site, nil
		}
		reasons = append(reasons, e.Name()+": "+why)
	}
	if len(reasons) == 0 {
		reasons = []string{"this program has none of them"}
	}
	return nil, settings.Site{}, unavailable("no engine can make sandboxes here: "+strings.Join(reasons, "; "), "toolward sandbox probe")
}

func unavailable(text, fix string) error {
	return &sandbox.Error{
		Code: sandbox.CodeUnavailable, Text: text + ". The call was not run outside",
		Fix: fix + " shows more, or set agents.defaults.sandbox.mode to off to run without sandboxes",
	}
}

// candidates are the engines that an agent's sandboxes may be of, in the order of preference.
func candidates(r *settings.Resolved, engines []sandbox.Engine) (list []sandbox.Engine) {
	for _, name := range r.EngineOrder() {
		if i := slices.IndexFunc(engines, func(e sandbox.Engine) bool { return e.Name() == name }); i >= 0 {
			list = append(list, engines[i])
		}
	}
	return list
}

// refuses says why an engine is no good for an agent, and "" if it is good, with what it can do about places.
func (m *Manager) refuses(ctx context.Context, e sandbox.Engine, r *settings.Resolved) (settings.Site, string) {
	found, err := m.probes[e.Name()].look(ctx, false)
	if err != nil {
		return settings.Site{}, err.Error()
	}
	return settings.Site{Engine: e.Name(), InPlace: found.InPlace}, lacks(found, r.DegradeOK)
}

// lacks says what an engine lacks that nobody has agreed to do without; "" if there is nothing.
func lacks(c sandbox.Capabilities, degradeOK []string) string {
	missing := ""
	switch c.Level {
	case sandbox.LevelFull:
		return ""
	case sandbox.LevelNoCgroup:
		missing = "cgroup"
	case sandbox.LevelLandlock:
		missing = "namespaces"
	}
	if missing != "" && slices.Contains(degradeOK, missing) {
		return ""
	}
	var failed []string
	for _, check := range c.Checks {
		if !check.OK {
			failed = append(failed, strings.TrimSpace(fmt.Sprintf("%s: %s. %s", check.Name, check.Found, check.Fix)))
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
