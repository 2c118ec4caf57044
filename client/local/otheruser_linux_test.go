package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/hostdaemon"
	"github.com/toolward/toolward/internal/otheruser"
)

// Another user's program that listens in the daemon's place is not told a passphrase, and answers nothing.
func TestAnotherUserIsSentNothing(t *testing.T) {
	home, err := os.MkdirTemp("/tmp", "tw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	sent := otheruser.Listen(t, filepath.Join(home, hostdaemon.SocketName))
	_, err = local.At(home).SignIn(t.Context(), "correct horse")
	var got *local.Error
	if _, untrusted := errors.AsType[*hostdaemon.UntrustedError](err); !untrusted || !errors.As(err, &got) || !errors.Is(err, local.ErrAbsent) || got.Hint != "" {
		t.Errorf("got %#v", err)
	}
	if got := sent(); got != "was sent 0" {
		t.Errorf("it %s", got)
	}
}
