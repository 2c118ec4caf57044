package command

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/toolward/toolward/place"
)

// Bounds of one decision, whatever the text of the command: who sends 64 KiB of arguments must not make the daemon look at
// the disk for seconds. What lies beyond them asks.
const (
	maxRunsInAll     = 200   // commands that programs run
	maxInnerCommands = 256   // commands in scripts of shells, all scripts together
	maxExpanded      = 3000  // words of commands with words that are expanded, all of them together
	maxObjections    = 100   // of one kind to one command
	maxLoaded        = 1000  // files that decide what runs
	maxElements      = 6000  // elements of paths that are looked up
	maxDirsRead      = 64    // directories that patterns are matched against
	maxNamesRead     = 20000 // names in them
)

// lookupCost is what it costs to look up a file besides the elements of its path, in elements.
const lookupCost = 3

// bounds counts what one decision has looked at.
type bounds struct {
	runs, commands, expanded, elements, dirs, names, walked, loaded int
}

var (
	errTooManyFiles = errors.New("the command names more files than anybody reads")
	errTooManyNames = errors.New("patterns are matched against more files than anybody reads")
)

// locate finds out what a path means and where it lies.
func (v *evaluation) locate(dir, p string) (place.Resolved, error) {
	if v.bounds.elements += lookupCost + strings.Count(dir, "/") + strings.Count(p, "/"); v.bounds.elements > maxElements {
		return place.Resolved{}, errTooManyFiles
	}
	return v.places.Resolve(dir, p)
}

// readDir lists a directory for patterns.
func (v *evaluation) readDir(dir string) ([]fs.DirEntry, error) {
	if v.bounds.dirs++; v.bounds.dirs > maxDirsRead || v.bounds.names > maxNamesRead {
		return nil, errTooManyNames
	}
	entries, err := v.e.resolver.files.ReadDir(dir)
	v.bounds.names += len(entries)
	return entries, err
}
