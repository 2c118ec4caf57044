package policy

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/toolward/toolward"
)

// inheritedLayer is the label of what a parent's policies leave to its children.
const inheritedLayer = "inherited tools"

// Ceiling is what a caller's policies leave to a child that it spawns. The policies themselves are kept, not the
// names of today's tools, so that tools which come later are judged too. What an agent gives up for itself alone and
// the defaults for sub-agents are not a part of it: the child has its own. A child that is spawned only for some tools
// gets no others; only takes entries as an allow list does.
func (s *Snapshot) Ceiling(c toolward.Caller, only ...string) toolward.Ceiling {
	a := s.agentOf(&c)
	if a == nil {
		return noTools
	}
	kept := []restriction{}
	for _, l := range s.rules.pipeline(a, &c) {
		r := l.effective
		same := func(other restriction) bool {
			return slices.Equal(other.Allow, r.Allow) && slices.Equal(other.Deny, r.Deny)
		}
		if l.private || len(r.Allow) == 0 && len(r.Deny) == 0 || slices.ContainsFunc(kept, same) {
			continue
		}
		kept = append(kept, r)
	}
	if len(only) > 0 {
		kept = append(kept, restriction{Allow: only})
	}
	if len(kept) == 0 {
		return ""
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return noTools
	}
	return toolward.Ceiling(text)
}

// noTools is a ceiling that leaves nothing.
const noTools toolward.Ceiling = `[{"deny":["*"]}]`

// inherited reads a ceiling. One that cannot be read leaves nothing: damage to the session's entry, or a newer
// version's words, must not free a child from its parent's limits.
func (r *ruleBook) inherited(c toolward.Ceiling) pipeline {
	if c == "" {
		return nil
	}
	return r.ceilings.of(c, func() pipeline { return r.readCeiling(c) })
}

func (r *ruleBook) readCeiling(c toolward.Ceiling) pipeline {
	var kept []restriction
	d := json.NewDecoder(bytes.NewReader([]byte(c)))
	d.DisallowUnknownFields()
	if err := d.Decode(&kept); err != nil || d.More() {
		kept = []restriction{{Deny: []string{"*"}}}
	}
	var p pipeline
	for _, one := range kept {
		p = append(p, r.inventory.layer(layer{label: inheritedLayer, allowKey: inheritedLayer, denyKey: inheritedLayer}, one))
	}
	return p
}
