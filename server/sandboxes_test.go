package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox/fleet"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/server/api"
)

// boxes are sandboxes in memory.
type boxes struct {
	names []string
	done  []string
}

func (b *boxes) List(context.Context) ([]fleet.Info, error) {
	var list []fleet.Info
	for _, name := range b.names {
		list = append(list, fleet.Info{Name: name, ScopeKey: "agent:coder", Running: true, ImageMatch: true})
	}
	return list, errors.New("engine docker: no answer")
}

func (b *boxes) Describe(ctx context.Context, name string) (*fleet.Detail, error) {
	list, _ := b.List(ctx)
	for _, i := range list {
		if i.Name == name {
			return &fleet.Detail{Info: i}, nil
		}
	}
	return nil, sandbox.Errorf(sandbox.CodeNotFound, "no %s", name)
}

func (b *boxes) Usage(context.Context, []fleet.Info) map[string]fleet.Usage {
	return map[string]fleet.Usage{"a": {At: time.Now(), Memory: 3 << 20, Busy: new(0.5), Processors: 2}}
}

func (b *boxes) Found() []fleet.Found { return nil }

func (b *boxes) Settings() *settings.Settings { return nil }

func (b *boxes) Stop(_ context.Context, name, why string) error { return b.end("stop", name, why) }

func (b *boxes) Remove(_ context.Context, name, why string) error { return b.end("remove", name, why) }

func (b *boxes) end(what, name, why string) error {
	switch name {
	case "stuck":
		return sandbox.Errorf(sandbox.CodeFailed, "sandbox stuck is still there")
	case "a":
		b.done = append(b.done, what+" "+name+" "+why)
		return nil
	}
	return sandbox.Errorf(sandbox.CodeNotFound, "no %s", name)
}

func (b *boxes) Ports(_ context.Context, name string) ([]fleet.Listening, bool, error) {
	if name != "a" {
		return nil, false, sandbox.Errorf(sandbox.CodeNotFound, "no %s", name)
	}
	return []fleet.Listening{{Port: 3000, Program: "node", Local: true}}, false, nil
}

func (b *boxes) Prune(context.Context) (fleet.Pruned, error) {
	return fleet.Pruned{Stopped: []string{"a"}, Removed: []string{}, Failed: []string{}}, nil
}

func TestSandboxesThroughTheAPI(t *testing.T) {
	b := &boxes{names: []string{"a"}}
	w := consoletest.New(t, consoletest.Options{Sandboxes: b})
	wire := &apiClient{t: t, http: w.SocketClient(), base: "http://toolward"}
	wire.want(401, "GET", "/v1/sandboxes", nil, nil)
	wire.want(401, "POST", "/v1/sandboxes/a/remove", struct{}{}, nil)
	wire.want(200, "POST", "/v1/login", api.Passphrase{Passphrase: consoletest.Passphrase}, nil)

	var list api.SandboxList
	wire.want(200, "GET", "/v1/sandboxes", nil, &list)
	if len(list.Containers) != 1 || list.Containers[0].Name != "a" || list.Browsers == nil || list.Warning == "" {
		t.Errorf("%+v", list)
	}
	wire.want(200, "POST", "/v1/sandboxes/a/stop", struct{}{}, nil)
	wire.want(200, "POST", "/v1/sandboxes/a/remove", struct{}{}, nil)
	wire.want(404, "POST", "/v1/sandboxes/b/remove", struct{}{}, nil)
	wire.want(502, "POST", "/v1/sandboxes/stuck/remove", struct{}{}, nil)
	if len(b.done) != 2 || b.done[0][:7] != "stop a " {
		t.Errorf("done: %q", b.done)
	}
	var pruned fleet.Pruned
	wire.want(200, "POST", "/v1/sandboxes/prune", struct{}{}, &pruned)
	if len(pruned.Stopped) != 1 {
		t.Errorf("%+v", pruned)
	}
	records, err := w.Audit.Query(t.Context(), audit.Filter{Type: audit.TypeConfig, Text: "sandbox-"})
	must(t, err)
	if len(records) != 3 {
		t.Errorf("%d records", len(records))
	}
	plain, person := person(t)
	_ = plain
	person.want(404, "GET", "/v1/sandboxes", nil, nil)
}
