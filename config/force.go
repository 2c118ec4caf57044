package config

import (
	"context"
	"errors"
	"fmt"
)

// Memory remembers which file was last put in force. Without it a process of the same user could change the file
// while no daemon runs, and the next start would take the change for the person's.
type Memory interface {
	// LastApplied returns the content that was last put in force; known is false before the first start.
	LastApplied(context.Context) (source []byte, known bool, err error)
	// RememberApplied keeps a content as the one in force.
	RememberApplied(ctx context.Context, source []byte) error
}

// InForce reads the file at path and says which configuration counts: the file itself at the first start, when it is
// what was last in force, or when that had config.autoApply; else what was last in force, and the file waits.
func InForce(ctx context.Context, path string, memory Memory, checks ...Check) (force, pending *Loaded, err error) {
	file, err := Own(path, checks...)
	if err != nil {
		return nil, nil, err
	}
	source, known, err := memory.LastApplied(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !known || Hash(source) == file.Hash {
		return file, nil, nil
	}
	last, err := Parse(path+" (as last in force)", source, checks...)
	var wrong Problems
	switch {
	case errors.As(err, &wrong):
		// Only another version of Toolward can find fault with what was in force; the file at hand is sound.
		return file, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("the configuration last in force: %w", err)
	case last.File.Config.AutoApply:
		return file, nil, nil
	}
	last.Name = path
	return last, file, nil
}
