// Package docker is the sandbox engine that asks a container engine: Docker, or Podman behind the same interface.
//
// A sandbox is one container whose first process is the program inside, mounted from this machine. The channel over which
// everything else goes is a socket at which that program meets the gateway once; where it cannot reach one, the standard
// streams, attached once. What confines is asked for at creation and written
// down by the container engine: a root that can only be read, no capability, no new privileges, our own list of system
// calls, limits, no network. Nothing is ever pulled.
//
// The container engine itself runs as root in general, and whoever may talk to it may do everything on the machine. Its
// socket is used by the gateway alone and is never mounted anywhere.
package docker

import (
	"log/slog"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// Options say how sandboxes are made.
type Options struct {
	// Instance tells the sandboxes of this Toolward home from others of the container engine.
	Instance string
	// Log gets what people should know; nil is none.
	Log *slog.Logger

	// For tests.
	streams bool            // the standard streams are the channel in any case
	program *inside.Program // in place of the one that is found
}

// Name is the name of this engine.
const Name = sandbox.EngineDocker

// Labels of our containers. They are how a container is known to be ours: nothing else is ever stopped or removed.
const (
	labelSandbox  = sandbox.Brand + ".sandbox"
	labelScope    = sandbox.Brand + ".sessionKey"
	labelCreated  = sandbox.Brand + ".createdAtMs"
	labelHash     = sandbox.Brand + ".configHash"
	labelInstance = sandbox.Brand + ".instance"
)

// agentTarget is the program inside.
const agentTarget = "/." + sandbox.Brand + "/agent"

// Where the program inside meets the gateway.
const (
	doorTarget = "/." + sandbox.Brand + "/door"
	doorName   = "socket"
)

var _ sandbox.Engine = (*Engine)(nil)
