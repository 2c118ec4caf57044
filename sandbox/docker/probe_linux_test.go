package docker

import (
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Whoever may not use a container engine that runs is not told to install one.
func TestAContainerEngineOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docker.sock")
	if closedToUs("unix://" + path) {
		t.Error("one that is not there is closed")
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // it ends with the test
	if err := unix.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	// Files are looked at as an ordinary user's, by this thread alone: it ends with the goroutine.
	said := make(chan bool)
	go func() {
		runtime.LockOSThread()
		if unix.Geteuid() == 0 {
			unix.Setfsuid(nobody) //nolint:errcheck // it says nothing; without it the test fails
		}
		said <- closedToUs("unix://" + path)
	}()
	if !<-said {
		t.Error("one whose socket is another user's is open")
	}
	if closedToUs("tcp://127.0.0.1:1") {
		t.Error("one in the network is closed")
	}
}
