package local

import (
	"context"
	"strconv"

	"github.com/toolward/toolward/server/api"
)

// What listens in a sandbox, and what of it is forwarded.
type (
	SandboxPorts   = api.SandboxPorts
	PortForward    = api.PortForward
	ListeningPort  = api.ListeningPort
	StartedForward = api.StartedForward
)

// SandboxPorts says what listens in a sandbox now.
func (g *Gateway) SandboxPorts(ctx context.Context, name string) (ports SandboxPorts, err error) {
	err = g.get(ctx, sandbox(name)+"/ports", nil, &ports)
	return ports, err
}

// PortForwards lists the ports of sandboxes that are forwarded to this machine.
func (g *Gateway) PortForwards(ctx context.Context) (list []PortForward, err error) {
	var answer api.PortForwards
	err = g.get(ctx, "/v1/forwards", nil, &answer)
	return answer.Forwards, err
}

// ForwardPort forwards a port of a sandbox to one of this machine; to is 0 for the same number.
func (g *Gateway) ForwardPort(ctx context.Context, name string, port, to uint16) (started StartedForward, err error) {
	err = g.post(ctx, sandbox(name)+"/forwards", api.ForwardRequest{Port: port, To: to}, &started)
	return started, err
}

// StopForward ends a forward.
func (g *Gateway) StopForward(ctx context.Context, name string, port uint16) error {
	return g.post(ctx, sandbox(name)+"/forwards/"+strconv.Itoa(int(port))+"/stop", struct{}{}, nil)
}
