package anomaly

import (
	"encoding/json"
	"hash/maphash"
	"math"
	"strings"

	"github.com/toolward/toolward/schema"
)

// LoopConfig configures loop detection; nil means the default. A number that is not a whole number above zero is the
// default too.
type LoopConfig struct {
	Enabled            *bool         `json:"enabled,omitempty" jsonschema:"default false"`
	HistorySize        *float64      `json:"historySize,omitempty" jsonschema:"calls looked back; default 30, at most 512"`
	Warning            *float64      `json:"warningThreshold,omitempty" jsonschema:"default 10"`
	Critical           *float64      `json:"criticalThreshold,omitempty" jsonschema:"default 20; above the warning"`
	GlobalCircuitBreak *float64      `json:"globalCircuitBreakerThreshold,omitempty" jsonschema:"default 30; above critical"`
	Detectors          LoopDetectors `json:"detectors,omitzero" jsonschema:"single loop detectors"`
}

// LoopDetectors switches single loop detectors; all are on by default.
type LoopDetectors struct {
	GenericRepeat       *bool `json:"genericRepeat,omitempty" jsonschema:"the same call again and again; default true"`
	KnownPollNoProgress *bool `json:"knownPollNoProgress,omitempty" jsonschema:"asking a process again and again; default true"`
	PingPong            *bool `json:"pingPong,omitempty" jsonschema:"back and forth between two calls; default true"`
}

// Over lays the settings of an agent over the global ones, field by field.
func (c LoopConfig) Over(global LoopConfig) LoopConfig {
	return LoopConfig{
		Enabled:            or(c.Enabled, global.Enabled),
		HistorySize:        or(c.HistorySize, global.HistorySize),
		Warning:            or(c.Warning, global.Warning),
		Critical:           or(c.Critical, global.Critical),
		GlobalCircuitBreak: or(c.GlobalCircuitBreak, global.GlobalCircuitBreak),
		Detectors: LoopDetectors{
			GenericRepeat:       or(c.Detectors.GenericRepeat, global.Detectors.GenericRepeat),
			KnownPollNoProgress: or(c.Detectors.KnownPollNoProgress, global.Detectors.KnownPollNoProgress),
			PingPong:            or(c.Detectors.PingPong, global.Detectors.PingPong),
		},
	}
}

func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// loopRules are settings ready for use.
type loopRules struct {
	enabled, generic, poll, pingPong    bool
	history, warning, critical, breaker int
}

func (c LoopConfig) rules() loopRules {
	r := loopRules{
		enabled: isTrue(c.Enabled, false), generic: isTrue(c.Detectors.GenericRepeat, true),
		poll: isTrue(c.Detectors.KnownPollNoProgress, true), pingPong: isTrue(c.Detectors.PingPong, true),
		history: min(count(c.HistorySize, 30), maxEvents),
		warning: count(c.Warning, 10), critical: count(c.Critical, 20), breaker: count(c.GlobalCircuitBreak, 30),
	}
	r.critical = max(r.critical, r.warning+1)
	r.breaker = max(r.breaker, r.critical+1)
	return r
}

func isTrue(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

func count(n *float64, otherwise int) int {
	if n == nil || *n <= 0 || *n != math.Trunc(*n) || *n > math.MaxInt32 {
		return otherwise
	}
	return int(*n)
}

// Stuck is what loop detection says of a call. The zero value is: not stuck.
type Stuck struct {
	Detector string // generic_repeat, known_poll_no_progress, ping_pong or global_circuit_breaker; "" if not stuck
	Critical bool   // the call must not run; otherwise it is a warning
	Count    int    // calls in the loop
}

// past is one earlier call.
type past struct {
	call    uint64 // hash of tool and parameters
	id      uint64 // hash of the client's id of the call; 0 if it has none
	outcome uint64
	ended   bool // the outcome is known
}

// history is the latest calls of a session, oldest first.
type history struct {
	calls []past
}

func (h *history) record(r loopRules, call, id uint64) {
	h.calls = append(h.calls, past{call: call, id: id})
	h.cut(r.history)
}

func (h *history) cut(most int) {
	if excess := len(h.calls) - most; excess > 0 {
		h.calls = append(h.calls[:0], h.calls[excess:]...)
	}
}

// outcome notes how a recorded call ended. It is found by its id alone if its parameters are others now: a plug-in
// that rewrites every call must not hide a loop. One that is not in the history, any more or yet, is added.
func (h *history) outcome(r loopRules, call, id, outcome uint64) {
	rewritten := -1
	for i := len(h.calls) - 1; i >= 0; i-- {
		p := &h.calls[i]
		if p.ended || id != 0 && p.id != id {
			continue
		}
		if p.call == call {
			p.outcome, p.ended = outcome, true
			return
		}
		if id != 0 && rewritten < 0 {
			rewritten = i
		}
	}
	if rewritten >= 0 {
		h.calls[rewritten].outcome, h.calls[rewritten].ended = outcome, true
		return
	}
	h.calls = append(h.calls, past{call: call, id: id, outcome: outcome, ended: true})
	h.cut(r.history)
}

// check looks whether a call that is about to be made continues a loop. poll says that the call is made to be
// repeated.
func (h *history) check(r loopRules, call uint64, poll bool) Stuck {
	if !r.enabled {
		return Stuck{}
	}
	same := h.sameOutcome(call)
	switch {
	case same >= r.breaker:
		return Stuck{"global_circuit_breaker", true, same}
	case poll && r.poll && same >= r.warning:
		return Stuck{"known_poll_no_progress", same >= r.critical, same}
	}
	if alternating, still := h.alternating(call); r.pingPong && alternating >= r.warning {
		return Stuck{"ping_pong", alternating >= r.critical && still, alternating}
	}
	if poll || !r.generic {
		return Stuck{}
	}
	repeats := 0
	for _, p := range h.calls {
		if p.call == call {
			repeats++
		}
	}
	if repeats < r.warning {
		return Stuck{}
	}
	return Stuck{"generic_repeat", false, repeats}
}

// sameOutcome counts the latest outcomes of a call that are alike; other calls in between do not matter.
func (h *history) sameOutcome(call uint64) int {
	n := 0
	latest := uint64(0)
	for i := len(h.calls) - 1; i >= 0; i-- {
		p := h.calls[i]
		if p.call != call || !p.ended {
			continue
		}
		if n > 0 && p.outcome != latest {
			break
		}
		latest = p.outcome
		n++
	}
	return n
}

// alternating counts the calls of a series that goes back and forth between two calls and ends with this one; 0 if
// there is none. still says that neither of the two ever ended in another way.
func (h *history) alternating(call uint64) (n int, still bool) {
	last := len(h.calls) - 1
	if last < 1 {
		return 0, false
	}
	sides := [2]uint64{h.calls[last].call, call}
	if sides[0] == sides[1] {
		return 0, false
	}
	outcomes := [2]uint64{}
	still = true
	for n = 0; n <= last; n++ {
		p, side := h.calls[last-n], n%2
		if p.call != sides[side] {
			break
		}
		if n < 2 {
			outcomes[side] = p.outcome
		}
		still = still && p.ended && p.outcome == outcomes[side]
	}
	if n < 2 {
		return 0, false
	}
	return n + 1, still
}

// Outcome is how a call ended.
type Outcome struct {
	Error   string          // text of the error; "" if it went well
	Details json.RawMessage // machine-readable part of the result
	Text    string          // text of the result
	Digest  string          // of the whole result, where it is known; the record has it too
}

// Parts of the results of process that tell whether something has changed; times and the like do not.
var (
	pollParts = []string{"status", "exitCode", "exitSignal", "aggregated"}
	logParts  = []string{"status", "totalLines", "totalChars", "truncated", "exitCode", "exitSignal"}
)

// hash tells outcomes apart. action is that of a poll of process, else "".
func (o *Outcome) hash(seed maphash.Seed, action string) uint64 {
	if o.Error != "" {
		return maphash.String(seed, "error\x00"+o.Error)
	}
	if o.Digest != "" && (action == "" || len(o.Details) == 0 && o.Text == "") {
		return maphash.String(seed, o.Digest)
	}
	b := make([]byte, 0, len(o.Details)+len(o.Text)+64)
	var parts map[string]json.RawMessage
	switch {
	case action != "" && json.Unmarshal(o.Details, &parts) == nil:
		names := pollParts
		if action == "log" {
			names = logParts
		}
		for _, name := range names {
			b = appendDetails(b, parts[name])
		}
	default:
		b = appendDetails(b, o.Details)
	}
	b = append(b, strings.TrimSpace(o.Text)...)
	return maphash.Bytes(seed, b)
}

// appendDetails appends JSON so that the order of keys does not matter; absent is null.
func appendDetails(b []byte, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return append(b, "null\x00"...)
	}
	if canonical, err := schema.Canonicalize(raw); err == nil {
		raw = canonical
	}
	return append(append(b, raw...), 0)
}

// warnings remembers which loops the operator has heard of. It keeps the newest of them.
type warnings struct {
	told map[uint64]int
	keys []uint64
}

const (
	maxWarned    = 256
	warnAgainPer = 10 // further repeats
)

// due reports whether a warning is news: the first of its key, or ten repeats further than the last.
func (w *warnings) due(key uint64, count int) bool {
	bucket := count / warnAgainPer
	last, known := w.told[key]
	if known && bucket <= last {
		return false
	}
	if !known {
		if w.told == nil {
			w.told = map[uint64]int{}
		}
		if len(w.keys) == maxWarned {
			delete(w.told, w.keys[0])
			w.keys = append(w.keys[:0], w.keys[1:]...)
		}
		w.keys = append(w.keys, key)
	}
	w.told[key] = bucket
	return true
}
