package command

import (
	"errors"
)

// Bounds of one decision, whatever the text of the command: who sends 64 KiB of arguments must not make the daemon look at
// the disk for seconds. What lies beyond them asks.
const (
	maxRunsInAll     = 200   // commands that programs run
	maxInnerCommands = 256   // commands in scripts of shells, all scripts together
	maxExpanded      = 3000  // words of commands with words that are expanded, all of them together
	maxFindings      = 100   // of one kind to one command
	maxLoaded        = 1000  // files that decide what runs
	maxElements      = 6000  // elements of paths that are looked up
	maxDirsRead      = 64    // directories that patterns are matched against
	maxNamesRead     = 20000 // names in them
)

// lookupCost is what it costs to look up a file besides the elements of its path, in elements.
const lookupCost = 3

// bounds counts what one decision has looked at.
type bounds struct {
	runs, commands, expanded, elements, dirs, names, walked, below, loaded int
}

var (
	errTooManyFiles = errors.New("the command names more files than anybody reads")
	errTooManyNames = errors.New("patterns are matched against more files than anybody reads")
)
