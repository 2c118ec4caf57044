package main

import (
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/sandbox"
)

// shippedTools are the tools that every gateway has, as they are without any configuration. They are for looking at: none
// of them finds a file.
func shippedTools() ([]*toolward.Tool, error) {
	tools, err := builtin.New(builtin.Config{}, builtin.Deps{Places: (&places{}).of})
	if err != nil {
		return nil, err
	}
	return tools.Tools(), nil
}

// loadFile reads a configuration file and checks it as the gateway of a home does.
func loadFile(home, path string) (*config.Loaded, error) {
	tools, err := shippedTools()
	if err != nil {
		return nil, err
	}
	registry, err := newRegistry()
	if err != nil {
		return nil, err
	}
	return config.Load(path,
		config.CheckPolicy(tools, surroundings()), config.CheckPlugins(registry.IDs()), config.CheckSandbox(sandbox.OnThisMachine(home)))
}

// surroundings is what programs that only look know around a configuration.
func surroundings() policy.Surroundings {
	return policy.Surroundings{ClientTools: bridge.ToolNames(), Addresses: publicOnly}
}

// publicOnly refuses addresses that are not on the public internet.
var publicOnly = func() *netguard.Policy {
	p, err := netguard.NewPolicy(netguard.Config{})
	if err != nil {
		panic(err) // there is nothing in it that could be wrong
	}
	return p
}()

// policyWarnings are what works in a configuration, but probably not as meant, as far as the tools go that every gateway
// has.
func policyWarnings(loaded *config.Loaded) ([]policy.Warning, error) {
	tools, err := shippedTools()
	if err != nil {
		return nil, err
	}
	c := loaded.File.Policy()
	c.Around = surroundings()
	_, warnings, err := policy.Compile(c, tools)
	return warnings, err
}
