// Package inside talks to toolward-inside, the small program that runs commands and does file operations in a sandbox.
//
// An engine starts that program inside (see [FindProgram]), has a stream to it, and gets a [Client]:
//
//	client, err := inside.Connect(ctx, stream, inside.SetupOf(spec))
//	process, err := client.Start(ctx, sandbox.Command{Argv: []string{"ls"}})
//
// The program runs with the rights of what it confines, so whatever comes over the stream is said by the sandbox: it is
// checked, bounded, and never a permission. A peer that breaks the protocol ends the connection with
// [sandbox.CodeUnavailable]; the engine makes the sandbox anew.
package inside

import (
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// Setup is what the program inside must know. It is sent once, when the connection is made.
type Setup struct {
	Mounts    []sandbox.Mount // what file operations reach: only Target and Writable count
	Workdir   string          // absolute path inside
	Env       []string        // NAME=value, of every command
	Protected []string        // below writable mounts nobody may write there: absolute paths, or ".git/hooks" for every depth
	Hardlinks bool            // files with several names may be read
	Limits    sandbox.Limits  // only OpenFiles and FileSize: the rest is the engine's

	// OOMKills counts what was killed for lack of memory, as the engine sees it from outside. nil: the program inside is
	// asked, which is data about the sandbox and no more.
	OOMKills func() int64

	// Detach is of a sandbox that goes on when this side ends.
	Detach wire.Detach
}

// SetupOf is what the program inside must know of a sandbox.
func SetupOf(spec *sandbox.Spec) Setup {
	return Setup{
		Mounts: spec.Mounts, Workdir: spec.Workdir, Env: spec.Env, Protected: spec.Protected, Hardlinks: spec.Hardlinks,
		Limits: spec.Limits,
	}
}
