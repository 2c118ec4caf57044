// Package undo keeps what a directory was before a call changed it, and takes the call back.
//
// [Store.Keep] reads a tree and keeps a [Snapshot] of it: every file, link, mode and directory, by content, so that what has
// not changed costs neither time nor space. Two snapshots, one from before a call and one from after it, say what the call
// changed ([Store.Changes]). [Store.TakeBack] brings that back, and nothing else: where somebody has changed a file since, it
// stops at that file and says so.
//
// Not kept are sockets, pipes and devices, other file systems that are mounted in the tree, files above [Limits.File], and
// files that this process may not read. A snapshot names them; what a call did to them cannot be taken back.
//
// No function follows a symbolic link in the tree, because whoever may write to it may put one there that leads out of it. A
// process that is killed leaves a tree either as it was or, after the next [Open], as it was to become.
package undo

import (
	"errors"
	"fmt"
	"time"
)

// Limits bound what is kept. The zero value of a field is its default.
type Limits struct {
	File    int64         // bytes of one file; above it the file is not kept. Default 100 MiB
	Total   int64         // bytes of all that is kept; beyond it the oldest snapshots go. Default 5 GB
	Age     time.Duration // snapshots older than that go. Default 7 days
	Entries int           // files and directories in one tree; a larger one is not kept at all. Default 300,000
}

func (l Limits) orDefaults() Limits {
	if l.File <= 0 {
		l.File = 100 << 20
	}
	if l.Total <= 0 {
		l.Total = 5_000_000_000
	}
	if l.Age <= 0 {
		l.Age = 7 * 24 * time.Hour
	}
	if l.Entries <= 0 {
		l.Entries = 300_000
	}
	return l
}

// Errors that callers branch on.
var (
	// ErrBusy says that something changed while it was read, again and again.
	ErrBusy = errors.New("it changes while it is read")
	// ErrTooMuch says that a tree alone is larger than all that may be kept. It is not kept; what was kept before stays.
	ErrTooMuch = errors.New("it is larger than all that may be kept")
	// ErrTooMany says that a tree has more entries than are kept.
	ErrTooMany = errors.New("too many files")
	// ErrLocked says that another process uses the store.
	ErrLocked = errors.New("another process uses the store")
	// ErrDamaged says that what was kept is not what is there.
	ErrDamaged = errors.New("the store is damaged")
	// ErrGone says that a snapshot is not kept any more.
	ErrGone = errors.New("the snapshot is not kept any more")
)

// PathError says about which file of a tree an error is.
type PathError struct {
	Path string // within the tree
	Err  error
}

func (e *PathError) Error() string { return fmt.Sprintf("%q: %v", e.Path, e.Err) }

// Unwrap leads to what happened.
func (e *PathError) Unwrap() error { return e.Err }
