package gateway

import (
	"context"
	"log/slog"
	"os"
	"runtime"

	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/light"
)

// NewLight is what confines commands of this machine that nobody saw; nil if the configuration switches that off, and on
// systems that know nothing of the kind.
func NewLight(f *config.File, log *slog.Logger) *light.Light {
	if runtime.GOOS != "linux" || !f.ConfinesLightly() {
		return nil
	}
	return light.New(light.Options{Log: log, Program: func(ctx context.Context) (*os.File, []string, error) {
		program, err := inside.FindProgram(ctx)
		if err != nil {
			return nil, nil, err
		}
		return program.File, program.Args, nil
	}})
}

// LightCheck tries what this machine can confine; nil on systems that know nothing of the kind.
func LightCheck(f *config.File) func() light.Check {
	if runtime.GOOS != "linux" {
		return nil
	}
	return func() light.Check {
		l := NewLight(f, nil)
		if l == nil {
			return light.Check{Mode: light.None}
		}
		defer l.Close()
		return l.Check()
	}
}

// Confiner is what tools are made with of it: an interface that is nil where it is.
func Confiner(l *light.Light) builtin.Confiner {
	if l == nil {
		return nil
	}
	return l
}

// openLight finds out what this machine can confine, beside whatever else starts: the first command must not wait for it.
func (g *Gateway) openLight() {
	if g.light = NewLight(&g.atStart, g.log); g.light == nil {
		if runtime.GOOS == "linux" {
			g.log.Warn("commands on this machine that no person saw are not confined", "change", "tools.exec.lightConfinement")
		}
		return
	}
	go func() {
		if check := g.light.Check(); check.Mode != light.Namespaces {
			g.log.Warn("commands on this machine that no person saw cannot be confined as they should", "mode", check.Mode, "why", check.Found, "fix", check.Fix)
		}
	}()
}
