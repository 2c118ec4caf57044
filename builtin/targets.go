package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// located is the classifier of a caller together with the directory that relative paths start from.
type located struct {
	*place.Classifier
	workDir string // absolute and real

	box   *Confinement // nil: this machine
	table *settings.MountTable
}

// locate finds out where a call's paths start.
func (b *Toolbox) locate(ctx context.Context, r *toolward.Request) (located, error) {
	if b.deps.Sandboxes != nil && !r.Call.ByClient {
		box, err := b.deps.Sandboxes.Confinement(ctx, &r.Call)
		if err != nil {
			return located{}, noSandbox(r, err)
		}
		if box != nil {
			return box.located(r.Call.WorkDir)
		}
	}
	return b.locateHere(r)
}

// noSandbox refuses a call whose sandbox cannot be told. Nothing of the arguments was looked at. Who is to mend it needs the
// words; they name no way around it.
func noSandbox(r *toolward.Request, err error) error {
	return &toolward.Refusal{Tool: r.Call.Tool, Code: toolward.CodeNoSandbox, Detail: err.Error(), Cause: err}
}

// locateHere finds out where a call's paths start on this machine.
func (b *Toolbox) locateHere(r *toolward.Request) (located, error) {
	places, err := b.deps.Places(r.Call.Caller)
	if err != nil {
		return located{}, fmt.Errorf("find the places of agent %q: %w", r.Call.Caller.Agent, err)
	}
	workspace := places.Layout().Workspace
	switch dir := r.Call.WorkDir; dir {
	case "", workspace:
		return located{Classifier: places, workDir: workspace}, nil
	default:
		// A working directory given through a link would make one path look like another.
		real, err := places.Resolve("/", dir)
		if err != nil {
			return located{}, fmt.Errorf("working directory: %w", err)
		}
		return located{Classifier: places, workDir: real.Real}, nil
	}
}

// disk is where the files are that were located. release must be called when they are done with.
func (l located) disk(ctx context.Context) (on disk, release func(), err error) {
	if l.box == nil {
		return machine{}, func() {}, nil
	}
	box, release, err := l.box.Acquire(ctx, "")
	if err != nil {
		return nil, nil, unusable(err.Error())
	}
	return confinedDisk{ctx, box}, release, nil
}

// Resolve finds the real path that a call's path means, inside its sandbox if it has one.
func (l located) Resolve(workDir, asked string) (place.Resolved, error) {
	return l.resolveBy(l.Classifier.Resolve, workDir, asked)
}

// ResolveEntry is Resolve for operations on the name itself.
func (l located) ResolveEntry(workDir, asked string) (place.Resolved, error) {
	return l.resolveBy(l.Classifier.ResolveEntry, workDir, asked)
}

func (l located) resolveBy(resolve func(workDir, asked string) (place.Resolved, error), workDir, asked string) (place.Resolved, error) {
	if l.box == nil {
		return resolve(workDir, asked)
	}
	inside, err := l.inside(workDir, asked)
	if err != nil {
		return place.Resolved{}, err
	}
	real, err := resolve(workDir, inside)
	real.Asked = asked
	return real, err
}

// target resolves one path of a call as its tool will open it. The field names the parameter in errors.
func (l located) target(field, path string, op toolward.Op) (place.Resolved, toolward.Target, error) {
	return l.targetBy(l.Resolve, field, path, op)
}

// entry is target for operations on the name itself: removing and renaming.
func (l located) entry(field, path string, op toolward.Op) (place.Resolved, toolward.Target, error) {
	return l.targetBy(l.ResolveEntry, field, path, op)
}

func (l located) targetBy(resolve func(workDir, asked string) (place.Resolved, error), field, path string, op toolward.Op) (place.Resolved, toolward.Target, error) {
	real, err := resolve(l.workDir, path)
	if err != nil {
		return real, toolward.Target{}, pathError(field, err)
	}
	return real, real.Target(op), nil
}

// pathError makes an error about a path that may be shown to the model. It says the same whatever is on the disk
// there: a call that is going to be refused must not find out what exists.
func pathError(field string, err error) error {
	if errors.Is(err, place.ErrNotMounted) {
		return &toolward.InvalidArgs{Field: field, Text: "leads out of the sandbox: only its workspace and what is mounted there can be reached"}
	}
	if errors.Is(err, place.ErrBadPath) || errors.Is(err, place.ErrDisguised) {
		return &toolward.InvalidArgs{Field: field, Text: "is not a usable path: it is empty or too long, has control characters, is another spelling of a guarded name, or goes through something that is not a directory"}
	}
	return fmt.Errorf("%s: %w", field, err)
}

// mustBeFile refuses a directory where a file is needed, as early as that tells nothing about what lies outside of
// the caller's reach.
func (l located) mustBeFile(field string, real place.Resolved, write bool) error {
	if real.Kind == place.KindDirectory && l.InRoots(real.Real, write) {
		return &toolward.InvalidArgs{Field: field, Text: "is a directory; a file is needed"}
	}
	return nil
}

// failed is the result of a tool that ran and could not do its work: the model reads the text.
func failed(format string, args ...any) toolward.Result {
	return toolward.ErrorResult(fmt.Sprintf(format, args...))
}

// fileFailure says in words why a file could not be used. Asked is the path as the caller wrote it.
func fileFailure(asked string, err error) toolward.Result {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return failed("%s does not exist", asked)
	case errors.Is(err, os.ErrPermission):
		return failed("%s: permission denied", asked)
	case errors.Is(err, place.ErrChanged):
		return failed("%s was changed by someone else between the decision and the run; nothing was done. Look at it and try again", asked)
	case errors.Is(err, place.ErrLinked):
		return failed("%s has other names (hard links) and is left alone", asked)
	case errors.Is(err, place.ErrNotFile):
		return failed("%s is not a regular file", asked)
	case errors.Is(err, place.ErrTooLarge):
		return failed("%s is too large: %s", asked, errors.Unwrap(err))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return failed("%s was not written: the disk is full. The old content is unchanged", asked)
	case errors.Is(err, syscall.EROFS):
		return failed("%s: the file system is read-only", asked)
	}
	return failed("%s: %v", asked, err)
}
