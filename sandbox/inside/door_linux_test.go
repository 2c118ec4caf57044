package inside_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// lasting starts the program with a door, as the native engine does, but with no sandbox around it: who connects here is in
// its own process namespace, as what it runs is.
func lasting(t *testing.T, alone int64) (b *box, path string, terms wire.Detach) {
	t.Helper()
	b = &box{TB: t, dir: realDir(t), ended: make(chan struct{})}
	terms = wire.Detach{Alone: alone, Key: [wire.NonceSize]byte{1, 2, 3}, Answer: [wire.NonceSize]byte{4, 5, 6}}
	b.setup = inside.Setup{Mounts: []sandbox.Mount{{Target: b.dir, Writable: true}}, Workdir: b.dir, Detach: terms}
	short, err := os.MkdirTemp("", "tw") // the path of a socket holds about 100 bytes
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	path = filepath.Join(short, "door")
	door, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	must(t, unix.Bind(door, &unix.SockaddrUnix{Name: path}))
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	program, err := inside.FindProgram(t.Context())
	must(t, err)
	ours, theirs, file := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs"), os.NewFile(uintptr(door), "door")
	b.program = exec.Command(program.Path, append(program.Args, inside.Serve, "3")...)
	b.program.Stdin, b.program.Stderr, b.program.ExtraFiles = theirs, os.Stderr, []*os.File{file}
	must(t, b.program.Start())
	theirs.Close()
	file.Close()
	t.Cleanup(func() { b.program.Process.Kill() })
	go func() {
		b.program.Wait()
		close(b.ended)
	}()
	b.Client, err = inside.Connect(b.context(), ours, b.setup)
	must(t, err)
	return b, path, terms
}

// What runs in a sandbox could not command its first process if it had the socket and the key: it is of that sandbox.
func TestDoorIsShutToThoseInside(t *testing.T) {
	b, path, terms := lasting(t, 3600)
	for _, when := range []string{"while the gateway is there", "after it has gone"} {
		conn, err := net.Dial("unix", path)
		must(t, err)
		conn.SetDeadline(time.Now().Add(patience))
		conn.Write(terms.Key[:]) // it may be closed already
		var said [64]byte
		if n, err := conn.Read(said[:]); n != 0 || err == nil {
			t.Errorf("%s, it says %v", when, said[:n])
		}
		conn.Close()
		b.Client.Close()
	}
	select {
	case <-b.ended:
		t.Error("it has ended with its gateway")
	default:
	}
}

// Without a gateway for longer than it was told, it ends, and what it has started does.
func TestEndsWithoutAGateway(t *testing.T) {
	b, _, _ := lasting(t, 1)
	b.do(sandbox.Command{Shell: "setsid sh -c 'echo $$ > " + b.path("pid") + "; exec sleep 1000' </dev/null >/dev/null 2>&1 & until test -s " + b.path("pid") + "; do sleep 0.01; done"})
	b.Client.Close()
	select {
	case <-b.ended:
	case <-time.After(patience):
		t.Error("it goes on")
	}
}

// One that was given no door ends with its gateway, whatever it is told.
func TestNoDoor(t *testing.T) {
	b := &box{TB: t, dir: realDir(t), ended: make(chan struct{})}
	stream := b.start()
	setup := inside.Setup{Workdir: b.dir, Detach: wire.Detach{Alone: 3600}}
	if _, err := inside.Connect(b.context(), stream, setup); err == nil {
		t.Error("it promises to go on")
	}
	select {
	case <-b.ended:
	case <-time.After(patience):
		b.program.Process.Kill()
		t.Error("it goes on")
	}
}
