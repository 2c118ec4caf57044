// Package native is the sandbox engine that needs no daemon: namespaces, a root of its own, Landlock, seccomp and
// control groups, set up by a small helper that then becomes the program inside.
//
// The gateway decides everything and writes it into a plan (package setup); the helper carries it out in fresh
// namespaces, gives up every right and executes the program inside as process 1. What that program and its commands see
// is a root in memory that can only be read, the host's /usr, a made-up /etc, a few devices, and what the
// [sandbox.Spec] mounts. It is never user 0 of the host, also where the gateway is.
//
// The kernel is shared: this confines what programs do by mistake or by what they were told, and takes most ways of
// attack away; it is no boundary against who has a way to attack the kernel itself.
package native

import (
	"log/slog"
	"os"
)

// Options say how sandboxes are made.
type Options struct {
	// Instance tells the sandboxes of this Toolward home from others on the machine.
	Instance string
	// Cgroup is a directory below /sys/fs/cgroup that was delegated to the gateway; "" is the gateway's own group, or
	// that of a scope that systemd makes for it.
	Cgroup string
	// Dir is the engine's own, where sandboxes are met again that go on without the gateway. It gets the mode 0700. "" is
	// none: then all end with it.
	Dir string
	// Spares is how many helpers wait for the next sandbox; 0 is one, and a negative number none.
	Spares int
	// Log gets what people should know; nil is none.
	Log *slog.Logger

	program      *os.File // for tests: instead of the program inside
	noNamespaces bool     // for tests: as on a machine that refuses them
}

// Name is the name of this engine.
const Name = "native"
