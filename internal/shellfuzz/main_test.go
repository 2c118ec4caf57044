//go:build linux

package shellfuzz

import (
	"fmt"
	"os"
	"testing"
)

// TestMain makes of the test program the executor of a sandbox, if it was started as one.
func TestMain(m *testing.M) {
	if root := os.Getenv(ExecutorRole); root != "" {
		if err := Serve(root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
