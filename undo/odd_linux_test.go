package undo_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/undo"
)

func TestWhatIsNoFile(t *testing.T) {
	s, root := open(t, undo.Limits{}), t.TempDir()
	makeOdd(t, root)
	want := look(t, root)
	during(t, s, "call", root, func() { write(t, filepath.Join(root, "a"), "x") })
	takeBack(t, s, undo.Request{ID: "call"}, "undo")
	expect(t, root, want)
}

// makeOdd puts everything into a tree that is neither file nor directory, and a cycle of links.
func makeOdd(t *testing.T, root string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	must(os.Symlink("two", filepath.Join(root, "one")))
	must(os.Symlink("one", filepath.Join(root, "two")))
	must(os.Symlink(".", filepath.Join(root, "self")))
	listener, err := net.Listen("unix", filepath.Join(root, "s"))
	must(err)
	t.Cleanup(func() { _ = listener.Close() })
	if os.Getuid() == 0 {
		must(unix.Mknod(filepath.Join(root, "device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))))
	}
}
