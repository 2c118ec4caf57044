package docker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Whoever may not use a container engine that runs is not told to install one, and not at every start that it refuses.
func TestAContainerEngineOfOthers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "docker.sock")
	here := endpoint{host: "unix://" + path}
	if closedToUs(here.host) {
		t.Error("one that is not there is closed")
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // it ends with the test
	own, err := net.Listen("unix", path+".own")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(path, 0), os.Chmod(path+".own", 0o666)); err != nil {
		t.Fatal(err)
	}
	// Files are looked at as an ordinary user's, by this thread alone: it ends with the goroutine.
	said := make(chan string)
	go func() {
		runtime.LockOSThread()
		if unix.Geteuid() == 0 {
			unix.Setfsuid(nobody) // it says nothing; without it the test fails
		}
		named := endpoint{host: here.host, explicit: true}
		said <- fmt.Sprint(closedToUs(here.host), here.absent(), named.absent())
		said <- firstSocket([]string{path + ".none", path, path + ".own"})
		said <- firstSocket([]string{path + ".none", path})
	}()
	if got := <-said; got != "true true false" {
		t.Errorf("one whose socket is another user's is closed, absent, absent although it is named: %s", got)
	}
	if got := <-said; got != path+".own" {
		t.Errorf("beside another user's, ours is not taken but %s", got)
	}
	if got := <-said; got != path {
		t.Errorf("another user's is not told: %q", got)
	}
	if closedToUs("tcp://127.0.0.1:1") {
		t.Error("one in the network is closed")
	}
}
