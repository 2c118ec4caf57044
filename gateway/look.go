package gateway

import (
	"path/filepath"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/report"
	"github.com/toolward/toolward/sandbox/settings"
)

// ShippedTools are the tools that every gateway has, as they are without any configuration. They are for looking at: none
// of them finds a file.
func ShippedTools() ([]*toolward.Tool, error) {
	tools, err := builtin.New(builtin.Config{}, builtin.Deps{Places: (&Territory{}).Of})
	if err != nil {
		return nil, err
	}
	return tools.Tools(), nil
}

// Load reads a configuration file and checks it as the gateway of a home does.
func Load(home, path string) (*config.Loaded, error) {
	checks, err := checksOf(home)
	if err != nil {
		return nil, err
	}
	if path == filepath.Join(home, config.FileName) {
		return config.Own(path, checks...)
	}
	return config.Load(path, checks...)
}

// Parse is [Load] of a text that is no file.
func Parse(home, name string, source []byte) (*config.Loaded, error) {
	checks, err := checksOf(home)
	if err != nil {
		return nil, err
	}
	return config.Parse(name, source, checks...)
}

func checksOf(home string) ([]config.Check, error) {
	tools, err := ShippedTools()
	if err != nil {
		return nil, err
	}
	registry, err := newRegistry()
	if err != nil {
		return nil, err
	}
	return []config.Check{
		config.CheckPolicy(tools, Surroundings()), config.CheckPlugins(registry.IDs()), config.CheckSandbox(settings.OnThisMachine(home)), config.CheckCheckpoints(home),
	}, nil
}

// Surroundings is what programs that only look know around a configuration.
func Surroundings() policy.Surroundings {
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

// PolicyWarnings are what works in a configuration, but probably not as meant, as far as the tools go that every gateway
// has.
func PolicyWarnings(loaded *config.Loaded) ([]report.Warning, error) {
	tools, err := ShippedTools()
	if err != nil {
		return nil, err
	}
	c := loaded.File.Policy()
	c.Around = Surroundings()
	_, warnings, err := policy.Compile(c, tools)
	return warnings, err
}
