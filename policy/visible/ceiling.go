package visible

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/glob"
)

// Ceiling is what a caller's policies leave to a child that it spawns. The policies themselves are kept, not the
// names of today's tools, so that tools which come later are judged too. What an agent gives up for itself alone and
// the defaults for sub-agents are not a part of it: the child has its own. A child that is spawned only for some tools
// gets no others; only takes entries as an allow list does.
func (b *Book) Ceiling(c toolward.Caller, only ...string) toolward.Ceiling {
	a := b.agentOf(&c)
	if a == nil {
		return noTools
	}
	c = b.Confined(c)
	kept, named := []restriction{}, []string{}
	for _, l := range b.rules.pipeline(a, &c) {
		r := l.effective
		if l.label != inheritedLayer {
			named = union(named, namesOfPlugins(r.Allow))
		}
		same := func(other restriction) bool {
			return slices.Equal(other.Allow, r.Allow) && slices.Equal(other.Deny, r.Deny) && slices.Equal(other.Optional, r.Optional)
		}
		if l.private || len(r.Allow) == 0 && len(r.Deny) == 0 && r.Optional == nil || slices.ContainsFunc(kept, same) {
			continue
		}
		kept = append(kept, r)
	}
	if len(only) > 0 {
		kept = append(kept, restriction{Allow: only})
	}
	kept = append(kept, restriction{Optional: named})
	text, err := json.Marshal(kept)
	if err != nil {
		return noTools
	}
	return toolward.Ceiling(text)
}

// namesOfPlugins are the entries of an allow list that may name a plug-in, a tool of one, or all of them.
func namesOfPlugins(allow []string) []string {
	return slices.DeleteFunc(ExpandGroups(allow), func(entry string) bool { return glob.Is(entry) || reserved(entry) })
}

// noTools is a ceiling that leaves nothing.
const noTools toolward.Ceiling = `[{"deny":["*"]}]`

// inherited reads a ceiling. One that cannot be read leaves nothing: damage to the session's entry, or a newer
// version's words, must not free a child from its parent's limits.
func (r *ruleBook) inherited(c toolward.Ceiling) pipeline {
	if c == "" {
		return nil
	}
	return r.ceilings.Of(c, func() pipeline { return r.readCeiling(c) })
}

func (r *ruleBook) readCeiling(c toolward.Ceiling) pipeline {
	var kept []restriction
	d := json.NewDecoder(bytes.NewReader([]byte(c)))
	d.DisallowUnknownFields()
	err := d.Decode(&kept)
	if _, after := d.Token(); err != nil || after != io.EOF {
		kept = []restriction{{Deny: []string{"*"}}}
	}
	var p pipeline
	for _, one := range kept {
		if len(one.Allow) == 0 && len(one.Deny) == 0 && one.Optional == nil {
			continue // restricts nothing
		}
		l := layer{label: inheritedLayer, allowKey: inheritedLayer, denyKey: inheritedLayer}
		if one.Optional != nil {
			named := NewNames(one.Optional, r.inventory.isPlugin)
			l.optional = &named
		}
		p = append(p, r.inventory.layer(l, one))
	}
	return p
}
