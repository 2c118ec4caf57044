package anomaly

import (
	"time"

	"github.com/toolward/toolward"
)

// Detection is one detector that fired.
type Detection struct {
	Detector Detector
	Count    int // the value that was reached
	Action   Action
	Notify   bool   // tell the operator; false if the same was told less than [NotifyEvery] ago
	Detail   string // of a loop: which
}

// Report is what must follow. The zero Report is the strictest: lockdown.
type Report struct {
	Fired    []Detection
	Ask      []Detector     // if any: people are asked about this call, and no grant answers
	Floor    toolward.Level // the session's level is at least this; Normal if nothing follows
	FloorFor time.Duration  // how long, unless a person clears it before
	FloorBy  Detector       // the detector that demands the floor
	Block    bool           // the call must not run
	Blocking []Detector     // the detectors that demand it
	Abort    bool           // the run must end: this call and all further ones of it must not run
	Ended    bool           // the run was ended before; nothing was counted
	Stuck    Stuck          // what loop detection says
}

// follow puts what the reached steps demand of a counted call into the report.
func (s *state) follow(d Detector, value int, steps []Step, report *Report) {
	ask := s.now < s.asks[d]
	for _, step := range steps {
		if value < step.Threshold {
			continue
		}
		if step.Action == Ask {
			s.asks[d] = s.now + int64(AskTime)
			ask = true
			continue
		}
		report.demand(d, step.Action)
	}
	if ask {
		report.Ask = append(report.Ask, d)
	}
}

func (r *Report) demand(d Detector, a Action) {
	switch a {
	case Alert, Ask:
	case Elevate:
		if r.Floor > toolward.Elevated {
			r.Floor, r.FloorFor, r.FloorBy = toolward.Elevated, ElevateTime, d
		}
	case Lockdown:
		if r.Floor > toolward.Lockdown {
			r.Floor, r.FloorFor, r.FloorBy = toolward.Lockdown, LockdownTime, d
		}
	case Block:
		r.Block, r.Blocking = true, append(r.Blocking, d)
	default:
		// Abort, and whatever nobody has thought of.
		r.Block, r.Abort, r.Blocking = true, true, append(r.Blocking, d)
	}
}

// notify reports whether the operator is to be told of the detector now.
func (s *state) notify(d Detector) bool {
	if s.now-s.notified[d] < int64(NotifyEvery) {
		return false
	}
	s.notified[d] = s.now
	return true
}
