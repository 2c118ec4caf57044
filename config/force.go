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
	// RememberApplied keeps a content as the one in force. [ErrNotKept] means that it counts until the process ends.
	RememberApplied(ctx context.Context, source []byte) error
}

// ErrNotKept is returned for a configuration that cannot be remembered now. What was remembered before still is.
var ErrNotKept = errors.New("the configuration cannot be remembered")

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
		// Another version of Toolward finds fault with what was in force, or somebody exchanged it. The file at hand is sound, but
		// nobody is known to have agreed to it: until somebody does, the defaults are in force.
		if last, err = Parse(path, []byte("{}"), checks...); err != nil {
			return nil, nil, fmt.Errorf("the defaults, since the configuration last in force is wrong (%w): %w", wrong, err)
		}
	case err != nil:
		return nil, nil, fmt.Errorf("the configuration last in force: %w", err)
	case last.File.Config.AutoApply:
		return file, nil, nil
	}
	last.Name = path
	return last, file, nil
}
