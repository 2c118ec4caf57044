package main

import "golang.org/x/sys/unix"

// hideProcess keeps programs of the same user out of this process: its environment and its open files in /proc, among them
// the database, and debuggers. What the gateway starts is not hidden: executing a program ends it.
func hideProcess() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
