package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// byPreset tries the preset "developer": programs that people installed, that have a profile, and that stay in the
// workspace.
func (v *evaluation) byPreset(seg *Segment, c circumstances) bool {
	if v.e.policy.Preset != Developer {
		v.explain(seg, c)
		return false
	}
	own := len(seg.effects) > 0 && v.workspaceScript(seg)
	if !own && (!seg.profile || !v.installed(seg)) {
		return false
	}
	p := v.presetPermit()
	p.inline = false
	p.fetchers = p.network
	p.network = p.network && fetches(seg.Program.names()[0])
	if own && v.r.Level != toolward.Normal || !v.permits(seg, p, c) {
		return false
	}
	seg.By = ByPreset
	return true
}

// explain says what the program would do, for people and for what "always" saves.
func (v *evaluation) explain(seg *Segment, c circumstances) {
	if len(seg.Effects) == 0 && len(seg.effects) > 0 {
		asks := seg.Asks
		v.permits(seg, permit{read: true, write: true, network: true, project: true, outside: true}, c)
		seg.Asks = asks
	}
}

// installed reports whether the program lies where people install programs: on the search path or in a trusted
// directory, and not where the agent could have put it.
func (v *evaluation) installed(seg *Segment) bool {
	p := &seg.Program
	return p.Hijack == "" && !place.Within(p.Real, v.where.Workspace) &&
		(p.searched || v.trusts(p) || slices.Contains(strings.Split(v.where.Path, ":"), path.Dir(p.Path)))
}
