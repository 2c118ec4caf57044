package policy

import (
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/policy/report"
	"github.com/toolward/toolward/policy/visible"
)

// agents compiles how the calls of every agent are judged, and those of agents that the file does not name.
func (b *builder) agents() {
	global := &b.config.Tools
	usual := modes.Default()
	usual.SandboxAsk = b.config.TEG.Exec.Sandbox == "ask"
	base := agent{patchInWorkspace: true}.with(global)
	base.modes = b.modes(global.Exec, usual, report.Path{"tools", "exec"})
	b.snapshot.agents = visible.NewByAgent(&base)
	for i := range b.config.Agents {
		a, at := &b.config.Agents[i], report.Path{"agents", "list", i}
		id := visible.Fold(a.ID)
		// Package visible has told already which entries are no agents.
		if !b.snapshot.HasAgent(id) || b.snapshot.agents.Named(id) != nil {
			continue
		}
		one := base.with(&a.Tools)
		one.modes = b.modes(a.Tools.Exec, base.modes, at.At("tools", "exec"))
		one.overrides = b.overrides(a.TEG.Tools, "agents.list[].teg.tools", at.At("teg", "tools"))
		b.snapshot.agents.Set(id, &one)
	}
}

// with lays what a narrower scope says about files over what a wider one does.
func (a agent) with(t *visible.Tools) agent {
	if only := t.FS.WorkspaceOnly; only != nil {
		a.workspaceOnly = *only
	}
	if only := t.Exec.ApplyPatch.WorkspaceOnly; only != nil {
		a.patchInWorkspace = *only
	}
	return a
}

// modes lays the settings for commands of a narrower scope over those of a wider one.
func (b *builder) modes(e visible.Exec, m modes.Modes, at report.Path) modes.Modes {
	var err error
	if e.Security != "" {
		if m.Security, err = modes.ParseSecurity(e.Security); err != nil {
			b.Fail(at.At("security"), "%v", err)
		}
	}
	if e.Ask != "" {
		if m.Ask, err = modes.ParseAsk(e.Ask); err != nil {
			b.Fail(at.At("ask"), "%v", err)
		}
	}
	return m
}
