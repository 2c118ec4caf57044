package builtin

import (
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

// takes is what a command takes, as paths of this machine. On the machine itself only what lies in the workspace counts: the analysis
// asks about the rest. In a sandbox it does not, because nothing else is there but what a person has bound into it.
func (l located) takes(list []command.Taken) (takes []toolward.Take) {
	for _, t := range list {
		one := toolward.Take{Path: t.Path, Real: t.Real, Tree: t.Tree, Name: t.Name, Git: t.Git}
		switch {
		case l.box != nil:
			takes = append(takes, l.taken(one)...)
		case t.Real == "" || place.Within(t.Real, l.Layout().Workspace):
			takes = append(takes, one)
		}
	}
	return takes
}

// taken finds a path inside on this machine, with what a person has bound below it. What else is in a sandbox is its own.
func (l located) taken(one toolward.Take) (takes []toolward.Take) {
	inside := one.Real
	if inside == "" {
		return []toolward.Take{one}
	}
	if at, err := l.table.Map(inside, "", false, settings.Host); err == nil && at.Writable && l.isPersons(at.Mount) {
		one.Real = at.Host
		takes = append(takes, one)
	}
	for i := range l.box.Mounts {
		m := &l.box.Mounts[i]
		below := m.Target != inside && place.Within(m.Target, inside)
		if one.Tree && below && m.Writable && l.isPersons(m.Kind) && l.table.Shows(m, m.Target) {
			takes = append(takes, toolward.Take{Path: m.Target, Real: m.Source, Tree: true, Name: one.Name, Git: one.Git})
		}
	}
	return takes
}

// isPersons reports whether a mount shows files of the person: not what a sandbox has for its own use.
func (l located) isPersons(kind sandbox.MountKind) bool {
	return kind == sandbox.MountWorkspace && !l.box.Private || kind == sandbox.MountBind || kind == sandbox.MountAgent
}

// takesTargets is what a file tool takes of its targets in a sandbox. On the machine they say it themselves.
func (l located) takesTargets(targets []toolward.Target) []toolward.Take {
	if l.box == nil {
		return nil
	}
	var list []command.Taken
	for _, t := range targets {
		if t.Op != toolward.OpRead {
			list = append(list, command.Taken{Path: t.Path, Real: t.Real})
		}
	}
	return l.takes(list)
}
