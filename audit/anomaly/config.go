package anomaly

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Detector names what is watched for.
type Detector uint8

// The detectors, in the order in which one event is fed to them.
const (
	Burst      Detector = iota // calls in a row without a message of a user
	Rate                       // calls
	Writes                     // calls that change state
	Deletes                    // files deleted
	Denied                     // refusals
	Invalid                    // refusals for the arguments: probing
	Fanout                     // different recipients and spawned sessions
	Loop                       // calls that lead nowhere, see [LoopConfig]
	ArgSize                    // arguments far longer than usual
	ArgEncoded                 // encoded data on its way out
	Evasion                    // after a refusal, the same target by another tool
	ExfilChain                 // after reading a secret, contact with somebody new
	NewTarget                  // with strangers' content in context, contact with somebody new

	detectors = iota
)

var detectorNames = [detectors]string{
	"burst", "rate", "writes", "deletes", "denied", "invalid", "fanout", "loop", "argSize", "argEncoded", "evasion",
	"exfilChain", "newTarget",
}

func (d Detector) String() string {
	if int(d) < len(detectorNames) {
		return detectorNames[d]
	}
	return fmt.Sprintf("invalid(%d)", d)
}

// MarshalText writes the detector's name.
func (d Detector) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Detector) UnmarshalText(text []byte) error {
	i := slices.Index(detectorNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown anomaly detector %q: expected one of %q", text, detectorNames)
	}
	*d = Detector(i)
	return nil
}

// Action is what follows when a detector fires. The zero value is the gravest.
type Action uint8

// The actions, from grave to light.
const (
	Abort    Action = iota // the run ends
	Block                  // the call is refused
	Lockdown               // the session's level is at least lockdown for [LockdownTime], or until a person clears it
	Elevate                // the session's level is at least elevated for [ElevateTime]
	Ask                    // this call, and calls that the detector counts for [AskTime], ask people; no grant answers
	Alert                  // the operator is told
)

// How long actions last, and how seldom the same alert is repeated for one session.
const (
	AskTime      = 10 * time.Minute
	ElevateTime  = 30 * time.Minute
	LockdownTime = 60 * time.Minute
	NotifyEvery  = 5 * time.Minute
)

var actionNames = [...]string{"abort", "block", "lockdown", "elevate", "ask", "alert"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("invalid(%d)", a)
}

// MarshalText writes the action's name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (a *Action) UnmarshalText(text []byte) error {
	i := slices.Index(actionNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown anomaly action %q: expected one of %q", text, actionNames)
	}
	*a = Action(i)
	return nil
}

// Config says what to watch for. The zero Config has every detector at its default and loop detection off.
type Config struct {
	// Detectors changes single settings of detectors (teg.anomaly).
	Detectors map[Detector]Override
	// Loops configures loop detection (tools.loopDetection); Agents changes it field by field for single agents.
	Loops  LoopConfig
	Agents map[string]LoopConfig
	// Known reports whether the operator named a host or recipient, in the configuration for instance. It must be
	// quick; nil knows none.
	Known func(target string) bool
}

// Override changes settings of one detector; what is nil stays as it is by default.
type Override struct {
	Enabled   *bool      `json:"enabled,omitempty"`
	Threshold *int       `json:"threshold,omitempty"`
	WindowMs  *int64     `json:"windowMs,omitempty"`
	Action    *Action    `json:"action,omitempty"`
	Escalate  Escalation `json:"escalate,omitzero"`
}

// Escalation is a second step. JSON null takes a default one away; absent leaves it.
type Escalation struct {
	Set  bool // Step replaces the default
	Step *Step
}

// UnmarshalJSON reads a step or null.
func (e *Escalation) UnmarshalJSON(text []byte) error {
	e.Set = true
	e.Step = nil
	return json.Unmarshal(text, &e.Step)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (e Escalation) MarshalJSON() ([]byte, error) { return json.Marshal(e.Step) }

// Step is an action and the value from which on it is taken.
type Step struct {
	Threshold int    `json:"threshold"`
	Action    Action `json:"action"`
}

// Bounds of settings. They bound the memory of a session too.
const (
	maxEvents = 512
	maxBurst  = 1_000_000

	// LongestWindow is the longest window that can be set.
	LongestWindow = 24 * time.Hour
)

// rule is a detector ready for use.
type rule struct {
	enabled bool
	window  time.Duration // 0: each call for itself
	steps   []Step
}

func defaultRules() [detectors]rule {
	on := func(window time.Duration, steps ...Step) rule {
		return rule{enabled: true, window: window, steps: steps}
	}
	return [detectors]rule{
		Burst:      on(0, Step{50, Alert}, Step{100, Elevate}),
		Rate:       on(time.Minute, Step{60, Alert}, Step{120, Elevate}),
		Writes:     on(time.Minute, Step{20, Alert}, Step{40, Ask}),
		Deletes:    on(time.Minute, Step{10, Ask}),
		Denied:     on(5*time.Minute, Step{3, Elevate}, Step{6, Lockdown}),
		Invalid:    on(time.Minute, Step{5, Alert}),
		Fanout:     on(10*time.Minute, Step{5, Ask}),
		Loop:       on(0, Step{1, Alert}, Step{2, Block}), // 1 is a warning, 2 is critical
		ArgSize:    on(10*time.Minute, Step{1, Alert}, Step{3, Ask}),
		ArgEncoded: on(0, Step{1, Ask}),
		Evasion:    on(10*time.Minute, Step{1, Ask}, Step{2, Lockdown}),
		ExfilChain: on(0, Step{1, Ask}),
		NewTarget:  on(0, Step{1, Ask}),
	}
}

// SettingError is a setting of a detector that is out of bounds.
type SettingError struct {
	Detector Detector
	Key      string // threshold, windowMs or escalate.threshold
	Text     string // the value, and what is expected
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("anomaly.%s.%s: %s", e.Detector, e.Key, e.Text)
}

// Check lists the settings that are out of bounds, in the order of detectors.
func Check(overrides map[Detector]Override) (wrong []*SettingError) {
	_, wrong = rulesOf(overrides)
	return wrong
}

// Default is a detector as it is without settings.
type Default struct {
	Detector Detector
	Counts   string        // what its value is
	Window   time.Duration // 0: without a window
	Steps    []Step
}

// Defaults lists all detectors, for the documentation.
func Defaults() []Default {
	counts := [detectors]string{
		"calls in a row without a message of a user", "calls", "calls that change something", "files deleted",
		"calls refused", "calls refused for their arguments", "different recipients, and sub-agents",
		"1: loop detection warns, 2: it is sure",
		"texts more than 10 times as long as 95 % of the same argument before, of at least 20, and 4 KiB; contents of files and patches are left out",
		"at least 200 characters of base64 or hex, too even to be words, in what leaves the machine",
		"within 3 calls after a refusal, the same path, host, recipient or command by another tool",
		"within 10 calls after reading a secret, memory or another session, contact with a host or recipient that is new in the session",
		"after content from outside, first contact with a host or recipient that neither an owner nor `teg.web.allowHosts` nor `egress.hosts` named",
	}
	list := make([]Default, detectors)
	for d, r := range defaultRules() {
		list[d] = Default{Detector(d), counts[d], r.window, r.steps}
	}
	return list
}

// rulesOf applies overrides to the defaults.
func rulesOf(overrides map[Detector]Override) (rules [detectors]rule, wrong []*SettingError) {
	rules = defaultRules()
	for d, o := range overrides {
		if int(d) >= detectors {
			wrong = append(wrong, &SettingError{d, "", "there is no such detector"})
			continue
		}
		wrong = append(wrong, o.apply(d, &rules[d])...)
	}
	slices.SortStableFunc(wrong, func(a, b *SettingError) int { return int(a.Detector) - int(b.Detector) })
	return rules, wrong
}

func (o *Override) apply(d Detector, r *rule) (wrong []*SettingError) {
	if o.Enabled != nil {
		r.enabled = *o.Enabled
	}
	if o.Threshold != nil {
		r.steps[0].Threshold = *o.Threshold
	}
	if o.Action != nil {
		r.steps[0].Action = *o.Action
	}
	if o.Escalate.Set {
		r.steps = r.steps[:1]
		if o.Escalate.Step != nil {
			r.steps = append(r.steps, *o.Escalate.Step)
		}
	}
	check := func(key string, value, most int64) {
		if value < 1 || value > most {
			wrong = append(wrong, &SettingError{d, key, fmt.Sprintf("%d: write 1 to %d", value, most)})
		}
	}
	if o.WindowMs != nil {
		check("windowMs", *o.WindowMs, LongestWindow.Milliseconds())
		r.window = time.Duration(*o.WindowMs) * time.Millisecond
	}
	highest := int64(maxEvents)
	if d == Burst {
		highest = maxBurst
	}
	for i, step := range r.steps {
		check([...]string{"threshold", "escalate.threshold"}[i], int64(step.Threshold), highest)
	}
	return wrong
}
