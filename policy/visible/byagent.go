package visible

import "github.com/toolward/toolward"

// ByAgent holds something for each agent that the configuration names, and for all others. The zero value holds nothing
// for anybody.
type ByAgent[V any] struct {
	named  map[string]*V // by folded id
	others *V
}

// NewByAgent starts with what holds for agents that the configuration does not name.
func NewByAgent[V any](others *V) ByAgent[V] {
	return ByAgent[V]{named: map[string]*V{}, others: others}
}

// Set says what holds for an agent, by its folded id.
func (a *ByAgent[V]) Set(id string, v *V) { a.named[id] = v }

// Named returns what Set said, or nil.
func (a *ByAgent[V]) Named(id string) *V { return a.named[id] }

// Of finds what holds for a caller, who may say only by its session which agent it is. A face that spells an id in
// another way must not get the caller out of the agent's own rules.
func (a *ByAgent[V]) Of(id string, session toolward.SessionKey) *V {
	if id == "" {
		id = session.Agent()
	}
	if v, ok := a.named[id]; ok {
		return v
	}
	if v, ok := a.named[Fold(id)]; ok {
		return v
	}
	return a.others
}
