package allowlist

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward/modes"
)

// Changes says in words what differs between two states of the file, for records and for people. What only says when
// something was used is no change.
func Changes(before, after *File) []string {
	changes := settingChanges("defaults", before.Defaults, after.Defaults)
	if before.Socket.Path != after.Socket.Path {
		changes = append(changes, fmt.Sprintf("socket path: %s → %s", spoken(before.Socket.Path), spoken(after.Socket.Path)))
	}
	if before.Socket.Token != after.Socket.Token {
		changes = append(changes, "socket token: another one")
	}
	agents := maps.Clone(before.Agents)
	if agents == nil {
		agents = map[string]*AgentFile{}
	}
	maps.Copy(agents, after.Agents)
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		old, new := before.part(name), after.part(name)
		changes = append(changes, settingChanges("agent "+name, old.Settings, new.Settings)...)
		changes = append(changes, entryChanges("agent "+name, old.Allowlist, new.Allowlist)...)
	}
	return changes
}

func (f *File) part(agent string) AgentFile {
	if a := f.Agents[agent]; a != nil {
		return *a
	}
	return AgentFile{}
}

func settingChanges(of string, before, after modes.Settings) (changes []string) {
	compare := func(name, old, new string) {
		if old != new {
			changes = append(changes, fmt.Sprintf("%s, %s: %s → %s", of, name, spoken(old), spoken(new)))
		}
	}
	compare("security", string(before.Security), string(after.Security))
	compare("ask", string(before.Ask), string(after.Ask))
	compare("askFallback", string(before.AskFallback), string(after.AskFallback))
	compare("autoAllowSkills", spokenBool(before.AutoAllowSkills), spokenBool(after.AutoAllowSkills))
	return changes
}

func entryChanges(of string, before, after []Entry) (changes []string) {
	described := func(entries []Entry) (list []string) {
		for _, e := range entries {
			list = append(list, e.String())
		}
		return list
	}
	old, new := described(before), described(after)
	for _, text := range new {
		if !slices.Contains(old, text) {
			changes = append(changes, of+" may run "+text)
		}
	}
	for _, text := range old {
		if !slices.Contains(new, text) {
			changes = append(changes, of+" may no longer run "+text)
		}
	}
	return changes
}

// String is what the entry allows.
func (e Entry) String() string {
	text := fmt.Sprintf("%q", e.Pattern)
	if e.Argv != nil {
		text += fmt.Sprintf(" as exactly %q", e.Argv)
	}
	if e.Effects != nil {
		text += " with the effects " + cmp.Or(strings.Join(e.Effects, ", "), "none")
	}
	if e.Host != "" {
		text += ", on the machine also where other commands run in a sandbox"
	}
	if e.ArgPattern != "" {
		text += " (covers nothing: argPattern is not understood)"
	}
	return text
}

// Check reports what is wrong with an entry that somebody wants to add.
func (e Entry) Check() error {
	if pattern := strings.TrimSpace(e.Pattern); pattern != "*" && !strings.ContainsAny(pattern, "/~") {
		return &InvalidContent{fmt.Errorf("the pattern %q is no path: name the program by its path, or by one with * in it", e.Pattern)}
	}
	if e.Host != "" && e.Host != OnMachine {
		return &InvalidContent{fmt.Errorf("the host %q is not %q", e.Host, OnMachine)}
	}
	for _, effect := range e.Effects {
		if !slices.Contains(entryEffects, effect) {
			return &InvalidContent{fmt.Errorf("%q is none of the effects %s", effect, strings.Join(entryEffects, ", "))}
		}
	}
	return nil
}

func spoken(s string) string { return cmp.Or(s, "not set") }

func spokenBool(b *bool) string {
	if b == nil {
		return ""
	}
	return fmt.Sprint(*b)
}
