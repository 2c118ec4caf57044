package mcp

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/hostdaemon"
	"github.com/toolward/toolward/internal/otheruser"
)

// Another user's program that listens in the daemon's place is sent nothing, and gets no descriptors.
func TestPipeSendsAnotherUserNothing(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "tw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	sent := otheruser.Listen(t, filepath.Join(dir, "s"))
	err = Pipe(context.Background(), own(filepath.Join(dir, "s")), Hello{Agent: "coder"}, strings.NewReader("{}"), io.Discard)
	if _, untrusted := errors.AsType[*hostdaemon.UntrustedError](err); !untrusted {
		t.Errorf("got %v", err)
	}
	if got := sent(); got != "was sent 0" {
		t.Errorf("it %s", got)
	}
}
