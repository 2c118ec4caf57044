package inside

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/sandbox"
)

// Serve is the argument that makes the program serve the protocol on its standard input and output, or on standard
// input alone if that is a socket.
const Serve = "serve"

// Program is toolward-inside on this machine.
type Program struct {
	Path string   // for an engine that mounts it
	Args []string // before [Serve]: none, or "inside" where the big program stands in
	// File is its content for an engine that executes it from a descriptor: sealed memory that nobody can write to,
	// where the system has that. It belongs to this package.
	File *os.File
}

var found struct {
	sync.Mutex
	program *Program
}

// FindProgram finds toolward-inside, once for this process. What it returns is shared.
func FindProgram(ctx context.Context) (*Program, error) {
	found.Lock()
	defer found.Unlock()
	if found.program != nil {
		return found.program, nil
	}
	location, err := companion.Find(ctx, "toolward-inside")
	if err != nil {
		e := sandbox.Errorf(sandbox.CodeUnavailable, "the program inside was not found: %v", err)
		e.Fix = "go install ./cmd/..."
		return nil, e
	}
	file, err := openProgram(location)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.CodeUnavailable, "open the program inside: %v", err)
	}
	found.program = &Program{Path: location.Path, Args: location.Args, File: file}
	return found.program, nil
}

func openProgram(location companion.Program) (*os.File, error) {
	file, err := os.Open(location.Path)
	if err != nil {
		return nil, err
	}
	if len(location.Args) > 0 { // the big program is too big to be kept in memory twice
		return file, nil
	}
	defer file.Close()
	sealed, err := inMemory(file)
	if err != nil {
		return nil, fmt.Errorf("copy %s to memory: %w", location.Path, err)
	}
	return sealed, nil
}
