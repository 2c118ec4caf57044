//go:build !linux

package box

// Main: there are no namespaces on this system.
func Main() int { return 1 }
