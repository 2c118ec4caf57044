//go:build !linux && !darwin

package tui

// flushInput cannot throw typed text away here; the half-second rule still holds.
func flushInput(int) {}
