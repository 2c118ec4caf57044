package config

import (
	"slices"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/netguard/packs"
)

// Sandbox is the part that sandboxes are made by.
func (f *File) Sandbox() settings.Configuration {
	c := settings.Configuration{Defaults: f.Agents.Defaults.Sandbox}
	for i := range f.Agents.List {
		c.Agents = append(c.Agents, settings.AgentConfig{ID: f.Agents.List[i].ID, Config: f.Agents.List[i].Sandbox})
	}
	return c
}

// egressHosts are the hosts that are listed for the sandboxes of any agent.
func (f *File) egressHosts() []netguard.Pattern {
	lists, named := f.Agents.Defaults.Sandbox.Egress.Hosts, f.Agents.Defaults.Sandbox.Egress.Packs
	for i := range f.Agents.List {
		lists = slices.Concat(lists, f.Agents.List[i].Sandbox.Egress.Hosts)
		named = slices.Concat(named, f.Agents.List[i].Sandbox.Egress.Packs)
	}
	var all []netguard.Pattern
	for _, name := range named {
		all = append(all, packs.Hosts(name)...)
	}
	for _, text := range lists {
		if p, err := netguard.ParsePattern(text); err == nil { // others were reported
			all = append(all, p)
		}
	}
	return all
}

// CheckSandbox is a Check of the sections "sandbox".
func CheckSandbox(around settings.Surroundings) Check {
	return func(f File) (errs []error) {
		_, problems := settings.Compile(f.Sandbox(), around)
		for _, p := range problems {
			errs = append(errs, keyError{p.Key, p.Text})
		}
		return errs
	}
}

// describeSandbox tells editors the words and forms of one section "sandbox".
func describeSandbox(s *jsonschema.Schema) {
	for name, list := range map[string][]any{
		"mode": {"off", "non-main", "auto", "all", "always"}, "scope": {"agent", "session", "shared"},
		"workspaceAccess": {"none", "ro", "readonly", "rw", "readwrite"}, "engine": {"auto", "native", "docker"},
	} {
		s.Properties[name].Enum = list
	}
	s.Properties["degradeOk"].Items.Enum = []any{"cgroup", "namespaces"}
	s.Properties["fs"].Properties["hardlinks"].Enum = []any{"refuse", "read"}
	s.Properties["prune"].Properties["idleAction"].Enum = []any{"stop", "remove"}
	for _, name := range packs.Names() {
		list := s.Properties["egress"].Properties["packs"].Items
		list.Enum = append(list.Enum, name)
	}
	s.Properties["egress"].Properties["unlisted"].Enum = []any{"ask", "deny"}
	limits, docker := s.Properties["limits"].Properties, s.Properties["docker"].Properties
	for _, quantity := range []*jsonschema.Schema{
		s.Properties["egress"].Properties["maxSent"], limits["memory"], limits["swap"], limits["disk"], limits["fileSize"], docker["memory"], docker["memorySwap"],
	} {
		quantity.Type, quantity.Types = "", []string{"string", "number"}
	}
	ulimit := docker["ulimits"].AdditionalProperties
	number := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "number"} }
	*ulimit = jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Types: []string{"string", "number"}},
		{Type: "object", Properties: map[string]*jsonschema.Schema{"soft": number(), "hard": number()}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}},
	}}
}
