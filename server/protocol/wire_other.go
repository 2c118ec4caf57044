//go:build !unix

package protocol

// writeNow is not possible here: every frame goes through its connection's own goroutine.
func writeNow(uintptr, []byte) int { return 0 }
