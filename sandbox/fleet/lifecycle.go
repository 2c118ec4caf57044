package fleet

import (
	"time"

	"github.com/toolward/toolward/sandbox"
)

// Reuse is what to do about a sandbox before it is used.
type Reuse string

// What to do.
const (
	ReuseCreate   Reuse = "create"         // there is none
	ReuseUse      Reuse = "use"            // it runs and is what it should be
	ReuseStart    Reuse = "start"          // the same, but it is stopped
	ReuseKeep     Reuse = "keep_warn"      // it is in use and differs in what does not confine: keep it, and say so
	ReuseRecreate Reuse = "recreate"       // it differs and is idle
	ReuseDrain    Reuse = "drain_recreate" // it differs in what confines: let commands finish shortly, then recreate
	ReuseConflict Reuse = "conflict"       // the name is somebody else's: touch nothing
)

// hotFor is how long after its last use a sandbox is still in use.
const hotFor = 5 * time.Minute

// Existing is what is known of a sandbox that stands under the wanted name.
type Existing struct {
	Exists, Running bool
	Foreign         bool           // not made by us for this scope key
	Label           string         // the hash on the sandbox itself; "" is unknown
	Recorded        string         // the hash in the registry; "" is unknown
	Idle            *time.Duration // since the last use; nil is unknown
	// Security: what differs is part of what confines. In doubt it is.
	Security bool
}

// foreign reports whether a sandbox is not one that this installation has made for a scope.
func foreign(s *sandbox.State, instance, scopeKey string) bool {
	return s.Instance != instance || s.ScopeKey != scopeKey
}

// Decide says what to do about a sandbox that should have the given hash.
func (e Existing) Decide(want string) Reuse {
	have := e.Label
	if have == "" {
		have = e.Recorded
	}
	hot := e.Running && (e.Idle == nil || *e.Idle < hotFor)
	switch {
	case !e.Exists:
		return ReuseCreate
	case e.Foreign:
		return ReuseConflict
	case have != "" && have == want && e.Running:
		return ReuseUse
	case have != "" && have == want:
		return ReuseStart
	case hot && e.Security:
		return ReuseDrain
	case hot:
		return ReuseKeep
	}
	return ReuseRecreate
}
