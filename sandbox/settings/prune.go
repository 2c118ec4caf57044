package settings

import "time"

// Pruning is what happens to a sandbox that is old or unused.
type Pruning string

// What happens.
const (
	PruneKeep   Pruning = "keep"
	PruneStop   Pruning = "stop"
	PruneRemove Pruning = "remove"
)

// PruneRules say when. 0 turns a rule off.
type PruneRules struct {
	Idle   time.Duration // unused for longer: Action
	MaxAge time.Duration // older: removed
	Action Pruning       // stop or remove
}

// Decide says what happens to a sandbox at a time. One that is in use is kept.
func (r PruneRules) Decide(now, created, used time.Time, live, running bool) Pruning {
	switch {
	case live:
		return PruneKeep
	case r.MaxAge > 0 && now.Sub(created) > r.MaxAge:
		return PruneRemove
	case r.Idle <= 0 || now.Sub(used) <= r.Idle:
		return PruneKeep
	case r.Action == PruneRemove:
		return PruneRemove
	case running:
		return PruneStop
	}
	return PruneKeep
}

// PruneRules are the rules of the agent's sandboxes.
func (r *Resolved) PruneRules() PruneRules {
	return PruneRules{
		Idle:   time.Duration(*r.Prune.IdleHours) * time.Hour,
		MaxAge: time.Duration(*r.Prune.MaxAgeDays) * 24 * time.Hour,
		Action: Pruning(r.Prune.IdleAction),
	}
}

// maxAlone bounds how long a sandbox goes on without any gateway, whatever is written: a Toolward that was removed from the
// machine must leave nothing for ever.
const maxAlone = 7 * 24 * time.Hour

// alone is how long the sandboxes of an agent go on without a gateway: as long as one that nobody uses.
func (r *Resolved) alone() time.Duration {
	if idle := r.PruneRules().Idle; idle > 0 {
		return min(idle, maxAlone)
	}
	return maxAlone
}
