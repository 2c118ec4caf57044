package gateway

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/toolward/toolward/plugin"
)

// compiledIn are the plug-ins of this binary. Whoever builds Toolward with plug-ins of their own adds the function by
// which each registers its handlers.
var compiledIn []func(*plugin.Registry) error

// newRegistry is a registry with the plug-ins of this binary.
func newRegistry() (*plugin.Registry, error) {
	registry := plugin.NewRegistry()
	for _, register := range compiledIn {
		if err := register(registry); err != nil {
			return nil, fmt.Errorf("register the compiled-in plug-ins: %w", err)
		}
	}
	return registry, nil
}

// openPlugins makes the runner of plug-ins. Those of the configuration start when it is applied.
func (g *Gateway) openPlugins(context.Context, Options) (err error) {
	if g.registry, err = newRegistry(); err != nil {
		return err
	}
	g.plugins = plugin.New(plugin.Options{Registry: g.registry, Redact: g.secrets, Environ: os.LookupEnv, Log: g.log})
	return nil
}

// holdSecrets makes what is sent along to collectors, and the keys that sign what plug-ins get, secrets like any other:
// a call that would send one anywhere is refused, and no record keeps one.
func (g *Gateway) holdSecrets(plugins plugin.Config) {
	held := slices.Collect(maps.Values(g.atStart.Telemetry.Traces.Headers))
	for _, entry := range plugins.Entries {
		if key, ok := os.LookupEnv(entry.SecretEnv); ok {
			held = append(held, key)
		}
	}
	g.secrets.Hold("plug-ins and collectors", held...)
}
