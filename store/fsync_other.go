//go:build !linux

package store

import "os"

// syncFile brings a file to the disk; on macOS that includes the disk's own
// cache.
func syncFile(file *os.File) error { return file.Sync() }
