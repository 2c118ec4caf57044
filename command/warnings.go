package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Warning is what of a section is ignored or risky.
type Warning struct {
	Agent string // "": of the gateway's section
	SettingError
}

func (w Warning) String() string {
	if w.Agent == "" {
		return w.Error()
	}
	return "agent " + w.Agent + ": " + w.Error()
}

// Check reports everything that is wrong, in every section, and what of it is ignored or risky. An error of an agent's
// section begins with the agent.
func (c *Configuration) Check() (warnings []Warning, err error) {
	var wrong []error
	note := func(agent string, errs ...SettingError) {
		for _, e := range errs {
			if agent == "" {
				wrong = append(wrong, e)
			} else {
				wrong = append(wrong, fmt.Errorf("agent %s: %w", agent, e))
			}
		}
	}
	note("", slices.Concat(c.Gateway.Check(), c.Elevated.Check())...)
	for _, agent := range slices.Sorted(maps.Keys(c.Agents)) {
		own := c.Agents[agent]
		note(agent, own.Check()...)
	}
	for _, agent := range slices.Sorted(maps.Keys(c.AgentElevated)) {
		note(agent, c.AgentElevated[agent].Check()...)
	}
	if _, err := ParseElevatedLevel(c.ElevatedDefault); err != nil {
		wrong = append(wrong, fmt.Errorf("agents.defaults.elevatedDefault: %w", err))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return c.warnings(NewResolver(Disk{}))
}

// warnings are those of the gateway's section, and those that an agent's section adds.
func (c *Configuration) warnings(resolver *Resolver) (warnings []Warning, err error) {
	_, common, err := New(c.Gateway.policy(nil, false, false), "", resolver)
	if err != nil {
		return nil, err
	}
	for _, w := range common {
		warnings = append(warnings, Warning{"", w})
	}
	for _, agent := range slices.Sorted(maps.Keys(c.Agents)) {
		section := c.For(agent)
		_, own, err := New(section.policy(nil, false, false), "", resolver)
		if err != nil {
			return nil, fmt.Errorf("agent %s: %w", agent, err)
		}
		for _, w := range own {
			if !slices.Contains(common, w) {
				warnings = append(warnings, Warning{agent, w})
			}
		}
	}
	return warnings, nil
}
