package anomaly

import (
	"fmt"
	"time"

	"github.com/toolward/toolward"
)

// asking says, for people, why a detector wants their decision.
var asking = [detectors]string{
	Burst:      "many calls in a row without a message of a user",
	Rate:       "many calls in a short time",
	Writes:     "many changes in a short time",
	Deletes:    "many files deleted in a short time",
	Denied:     "many calls were refused",
	Invalid:    "many calls had wrong arguments",
	Fanout:     "many different recipients or sub-agents in a short time",
	Loop:       "the same calls again and again, without progress",
	ArgSize:    "an argument is far longer than usual",
	ArgEncoded: "encoded data is about to leave the machine",
	Evasion:    "a call was refused, and another tool is now aimed at the same target",
	ExfilChain: "contact with somebody new, shortly after reading a secret, memory or another session",
	NewTarget:  "first contact with somebody that no owner named, and the session has seen content from outside",
}

// reasonOf is why a detector stands in the way of a call.
func reasonOf(d Detector) toolward.Reason {
	return toolward.Reason{Layer: "anomaly", Rule: "teg.anomaly." + d.String(), Text: asking[d]}
}

// text says in words what was counted; window is the detector's.
func (d *Detection) text(window time.Duration) string {
	counted := func(what string) string { return fmt.Sprintf("%d %s within %s", d.Count, what, spanOf(window)) }
	switch d.Detector {
	case Burst:
		return fmt.Sprintf("%d calls in a row without a message of a user", d.Count)
	case Rate:
		return counted("calls")
	case Writes:
		return counted("calls that change something")
	case Deletes:
		return counted("files deleted")
	case Denied:
		return counted("calls refused")
	case Invalid:
		return counted("calls with wrong arguments")
	case Fanout:
		return counted("different recipients and sub-agents")
	case ArgSize:
		return counted("arguments far longer than usual")
	case Evasion:
		return counted("attempts to reach by another tool what was refused")
	case Loop:
		return fmt.Sprintf("%s, %d calls", loops[d.Detail], d.Count)
	default:
		return asking[d.Detector]
	}
}

// loops says what the loop detectors have seen.
var loops = map[string]string{
	"generic_repeat":         "the same call again and again",
	"known_poll_no_progress": "the same question again and again, and always the same answer",
	"ping_pong":              "back and forth between two calls",
	"global_circuit_breaker": "the same call again and again, and always with the same outcome",
}

// spanOf is a duration as people say it.
func spanOf(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.length; n >= 1 && d%unit.length == 0 {
			if n == 1 {
				return "a " + unit.name
			}
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return d.String()
}
