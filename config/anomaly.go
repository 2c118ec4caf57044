package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/toolward/toolward/audit/anomaly"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/policy/visible"
)

// Tools is the section "tools", of the gateway and of agents.
type Tools struct {
	visible.Tools
	Exec          Exec                   `json:"exec,omitzero" jsonschema:"commands; an agent's settings stand over the gateway's, rules of both count"`
	Elevated      command.ElevatedConfig `json:"elevated,omitzero" jsonschema:"who may ask for commands with more rights; an agent's section only restricts"`
	LoopDetection anomaly.LoopConfig     `json:"loopDetection,omitzero" jsonschema:"calls that lead nowhere; an agent's settings count field by field"`
}

// Anomaly is teg.anomaly: one entry for every detector.
type Anomaly struct {
	Burst      Detector `json:"burst,omitzero" jsonschema:"calls in a row without a message of a user"`
	Rate       Detector `json:"rate,omitzero" jsonschema:"calls"`
	Writes     Detector `json:"writes,omitzero" jsonschema:"calls that change something"`
	Deletes    Detector `json:"deletes,omitzero" jsonschema:"files deleted"`
	Denied     Detector `json:"denied,omitzero" jsonschema:"refusals"`
	Invalid    Detector `json:"invalid,omitzero" jsonschema:"refusals for the arguments"`
	Fanout     Detector `json:"fanout,omitzero" jsonschema:"different recipients and sub-agents"`
	Loop       Detector `json:"loop,omitzero" jsonschema:"what follows when tools.loopDetection finds a loop: threshold 1 is a warning, 2 is critical"`
	ArgSize    Detector `json:"argSize,omitzero" jsonschema:"arguments far longer than usual"`
	ArgEncoded Detector `json:"argEncoded,omitzero" jsonschema:"encoded data that leaves the machine"`
	Evasion    Detector `json:"evasion,omitzero" jsonschema:"after a refusal, the same target by another tool"`
	ExfilChain Detector `json:"exfilChain,omitzero" jsonschema:"after a secret was read, contact with somebody new"`
	NewTarget  Detector `json:"newTarget,omitzero" jsonschema:"content from outside was seen, and contact with somebody that no owner named"`
}

// Detector is teg.anomaly.<detector>. What is left out is as by default.
type Detector struct {
	Enabled   *bool  `json:"enabled,omitempty" jsonschema:"default true"`
	Threshold *int   `json:"threshold,omitempty" jsonschema:"the value at which it fires"`
	WindowMs  *int64 `json:"windowMs,omitempty" jsonschema:"how long an event counts"`
	Action    string `json:"action,omitempty" jsonschema:"what follows: alert, ask, elevate, lockdown, block or abort"`
	Escalate  Step   `json:"escalate,omitzero" jsonschema:"a second step; null: none"`
}

// Step is teg.anomaly.<detector>.escalate. JSON null takes the default step away, which its absence does not.
type Step struct {
	Threshold *int   `json:"threshold,omitempty" jsonschema:"the value from which on it follows"`
	Action    string `json:"action,omitempty" jsonschema:"as action of the detector"`
	none      bool
}

// nullable marks types that JSON null is a value of.
type nullable interface{ nullable() }

func (Step) nullable() {}

// UnmarshalJSON reads a step or null.
func (s *Step) UnmarshalJSON(text []byte) error {
	type plain Step
	*s = Step{none: bytes.Equal(text, []byte("null"))}
	return json.Unmarshal(text, (*plain)(s))
}

// MarshalJSON writes what UnmarshalJSON reads.
func (s Step) MarshalJSON() ([]byte, error) {
	if s.none {
		return []byte("null"), nil
	}
	type plain Step
	return json.Marshal(plain(s))
}

// each gives all detectors with their settings.
func (a *Anomaly) each(visit func(anomaly.Detector, *Detector)) {
	for d, settings := range map[anomaly.Detector]*Detector{
		anomaly.Burst: &a.Burst, anomaly.Rate: &a.Rate, anomaly.Writes: &a.Writes, anomaly.Deletes: &a.Deletes,
		anomaly.Denied: &a.Denied, anomaly.Invalid: &a.Invalid, anomaly.Fanout: &a.Fanout, anomaly.Loop: &a.Loop,
		anomaly.ArgSize: &a.ArgSize, anomaly.ArgEncoded: &a.ArgEncoded, anomaly.Evasion: &a.Evasion,
		anomaly.ExfilChain: &a.ExfilChain, anomaly.NewTarget: &a.NewTarget,
	} {
		visit(d, settings)
	}
}

// overrides are the settings as the detectors take them, and what is wrong with them.
func (a *Anomaly) overrides() (map[anomaly.Detector]anomaly.Override, []error) {
	all := map[anomaly.Detector]anomaly.Override{}
	var errs []error
	a.each(func(d anomaly.Detector, s *Detector) {
		o := anomaly.Override{Enabled: s.Enabled, Threshold: s.Threshold, WindowMs: s.WindowMs}
		key := "teg.anomaly." + d.String()
		action := func(word, at string) (a anomaly.Action) {
			if a.UnmarshalText([]byte(word)) != nil {
				errs = append(errs, keyError{at, fmt.Sprintf("%q: write alert, ask, elevate, lockdown, block or abort", word)})
			}
			return a
		}
		if s.Action != "" {
			first := action(s.Action, key+".action")
			o.Action = &first
		}
		switch e := &s.Escalate; {
		case e.none:
			o.Escalate.Set = true
		case e.Threshold != nil && e.Action != "":
			o.Escalate = anomaly.Escalation{Set: true, Step: &anomaly.Step{Threshold: *e.Threshold, Action: action(e.Action, key+".escalate.action")}}
		case e.Threshold != nil || e.Action != "":
			errs = append(errs, keyError{key + ".escalate", "a step needs both threshold and action; null: no second step"})
		}
		all[d] = o
	})
	return all, errs
}

// Watching is what the detectors are told of the file.
func (f *File) Watching() anomaly.Config {
	overrides, _ := f.TEG.Anomaly.overrides() // checked when the file was read
	c := anomaly.Config{Detectors: overrides, Loops: f.Tools.LoopDetection, Agents: map[string]anomaly.LoopConfig{}}
	for _, a := range f.Agents.List {
		if id := strings.ToLower(strings.TrimSpace(a.ID)); id != "" {
			c.Agents[id] = a.Tools.LoopDetection
		}
	}
	hosts, listed := f.TEG.Web.AllowHosts, f.egressHosts()
	if len(hosts)+len(listed) > 0 {
		// A host that the operator named is not news to them.
		c.Known = func(target string) bool {
			return slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, target) }) ||
				slices.ContainsFunc(listed, func(p netguard.Pattern) bool { return p.Covers(target) })
		}
	}
	return c
}

// checkAnomaly checks the detectors' settings.
func checkAnomaly(f File) []error {
	overrides, errs := f.TEG.Anomaly.overrides()
	for _, wrong := range anomaly.Check(overrides) {
		errs = append(errs, keyError{"teg.anomaly." + wrong.Detector.String() + "." + wrong.Key, wrong.Text})
	}
	return errs
}

// describeAnomaly tells editors the words and ranges of detectors.
func describeAnomaly(schema *jsonschema.Schema) {
	least, most := 1.0, float64(anomaly.LongestWindow.Milliseconds())
	words := []any{"alert", "ask", "elevate", "lockdown", "block", "abort"}
	for _, detector := range schema.Properties {
		p := detector.Properties
		p["threshold"].Minimum, p["windowMs"].Minimum, p["windowMs"].Maximum = &least, &least, &most
		p["action"].Enum = words
		step := p["escalate"]
		step.Type, step.Types = "", []string{"object", "null"}
		step.Properties["threshold"].Minimum, step.Properties["action"].Enum = &least, words
	}
}
