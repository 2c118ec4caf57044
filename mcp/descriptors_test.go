package mcp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// osPipe is what a program has as standard input or output of another.
func osPipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	return read, write
}

func socketPair(t *testing.T) (a, b *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b = os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestOnlyPipesAndSocketPairsAreHandedOver(t *testing.T) {
	read, write := osPipe(t)
	a, _ := socketPair(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	daemon := newWorld(t).daemon(t, welcomeAll)
	conn, err := net.Dial("unix", daemon.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	named, err := conn.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	for _, c := range []struct {
		name string
		file *os.File
		want bool
	}{
		{"pipe to read", read, true},
		{"pipe to write", write, true},
		{"socket pair, as Node.js makes", a, true},
		{"connection to a service, which could ask whose words it gets", named, false},
		{"file", file, false},
		{"device", null, false},
	} {
		if got := handable(c.file); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPipeOverSocketPairs(t *testing.T) {
	w := newWorld(t)
	in, toServer := socketPair(t)
	out, fromServer := socketPair(t)
	ended := make(chan error, 1)
	go func() {
		ended <- Pipe(context.Background(), own(w.daemon(t, welcomeAll).socket), Hello{Agent: "coder", Workspace: "/work"}, in, out)
	}()
	fmt.Fprintln(toServer, "nonsense")
	answer, err := bufio.NewReader(fromServer).ReadString('\n')
	if err != nil || !strings.Contains(answer, "-32700") {
		t.Errorf("got %q, %v", answer, err)
	}
	toServer.Close()
	if err := <-ended; err != nil {
		t.Errorf("after the client's end: %v", err)
	}
}

func TestPipeToAClientThatReadsNoMore(t *testing.T) {
	w := newWorld(t)
	in, toServer := osPipe(t)
	fromServer, out := osPipe(t)
	ended := make(chan error, 1)
	go func() {
		ended <- Pipe(context.Background(), own(w.daemon(t, welcomeAll).socket), Hello{Agent: "coder", Workspace: "/work"}, in, out)
	}()
	fmt.Fprintln(toServer, "nonsense")
	if _, err := bufio.NewReader(fromServer).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fromServer.Close()
	fmt.Fprintln(toServer, "nonsense")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "pass messages on") {
		t.Errorf("got %v", err)
	}
}

// A program that offers descriptors and sends others, or none, gets a stream over its connection.
func TestDescriptorsThatCannotBeTaken(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	read, _ := osPipe(t)
	fd := func(f *os.File) (n int) {
		withFD(f, func(fd int) bool { n = fd; return true })
		return n
	}
	for name, rights := range map[string][]byte{
		"none": nil, "one": syscall.UnixRights(fd(read)), "a device": syscall.UnixRights(fd(read), fd(file)),
		"too many": syscall.UnixRights(fd(read), fd(read), fd(read), fd(read)),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", newWorld(t).daemon(t, welcomeAll).socket)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			in, wanted, err := greet(conn, Hello{Agent: "coder", Workspace: "/work"}, true)
			if err != nil || !wanted {
				t.Fatal(wanted, err)
			}
			if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte{0}, rights, nil); err != nil {
				t.Fatal(err)
			}
			said, err := in.ReadByte()
			if err != nil {
				t.Fatal(err)
			}
			if name == "too many" && said == saysTaken {
				return // the first two are pipes, the kernel has dropped the others
			}
			if said != saysCopy {
				t.Fatalf("answer %q", said)
			}
			fmt.Fprintln(conn, "nonsense")
			if answer, err := in.ReadString('\n'); err != nil || !strings.Contains(answer, "-32700") {
				t.Errorf("got %q, %v", answer, err)
			}
		})
	}
}

// Streams that are no files, such as those of a terminal, are copied.
func TestStreamsThatAreCopied(t *testing.T) {
	var out bytes.Buffer
	if _, ok := descriptorsOf(strings.NewReader(""), &out); ok {
		t.Error("a buffer has no descriptor")
	}
	read, write := io.Pipe()
	if _, ok := descriptorsOf(read, write); ok {
		t.Error("a pipe within the program has no descriptor")
	}
}
