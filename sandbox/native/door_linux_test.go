package native

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// knock is somebody at the door of a sandbox.
func knock(t *testing.T, dir, name string, key []byte) (said []byte) {
	t.Helper()
	here, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	conn, err := net.Dial("unix", "/proc/self/fd/"+strconv.Itoa(int(here.Fd()))+"/"+name+socketSuffix)
	if err != nil {
		return nil
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	conn.Write(key)
	buffer := make([]byte, 256)
	n, _ := conn.Read(buffer)
	return buffer[:n]
}

// Only who knows the key comes in, and one at a time: a second gateway replaces nobody.
func TestDoor(t *testing.T) {
	dir := supervisors(t)
	e := detachedEngine(t, dir)
	spec := detachedSpec(t, t.TempDir())
	handle := ensure(t, e, spec)
	r := handle.(*box).record
	if said := knock(t, dir, spec.Name, r.Key); len(said) != 1 || said[0] != wire.DoorBusy {
		t.Errorf("while its gateway is there, who has the key is told %v", said)
	}
	if out, err := output(t.Context(), handle, "echo still"); err != nil || out != "still\n" {
		t.Errorf("the first gateway was disturbed: %q %v", out, err)
	}
	handle.Close()
	wrong := append([]byte{r.Key[0] ^ 1}, r.Key[1:]...)
	if said := knock(t, dir, spec.Name, wrong); len(said) != 0 {
		t.Errorf("who does not have the key is told %v", said)
	}
	eventually(t, "the door is open", func() bool {
		said := knock(t, dir, spec.Name, r.Key) // and hangs up again, which must not end the sandbox
		return len(said) > 1 && said[0] == wire.DoorOpen && string(said[1:]) == string(r.Answer)
	})
	if out, err := output(t.Context(), ensure(t, e, spec), "echo again"); err != nil || out != "again\n" {
		t.Errorf("the next one finds %q %v", out, err)
	}
	remove(t, e, spec.Name)
}

// Who takes the place of a supervisor is not believed, and never shown the key.
func TestFalseSupervisor(t *testing.T) {
	asUser(t) // whose supervisors have the user of the gateway
	dir := supervisors(t)
	e := detachedEngine(t, dir)
	spec := detachedSpec(t, t.TempDir())
	handle := ensure(t, e, spec)
	before := handle.State().EngineID
	handle.Close()
	path := filepath.Join(dir, spec.Name+socketSuffix)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	here, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	impostor, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + strconv.Itoa(int(here.Fd())) + "/" + spec.Name + socketSuffix, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer impostor.Close()
	got := make(chan int, 1)
	go func() {
		conn, err := impostor.Accept()
		if err != nil {
			got <- -1
			return
		}
		defer conn.Close()
		n, _ := conn.Read(make([]byte, 64))
		got <- n
	}()
	again := ensure(t, e, spec)
	if again.State().EngineID == before {
		t.Error("it is the same one")
	}
	if n := <-got; n != 0 {
		t.Errorf("the false supervisor was shown %d bytes", n)
	}
	if out, err := output(t.Context(), again, "echo new"); err != nil || out != "new\n" {
		t.Errorf("%q %v", out, err)
	}
	remove(t, e, spec.Name)
}

// Nothing of the door is to be found inside: not its path, not its descriptor, not the key.
func TestDoorIsNotInside(t *testing.T) {
	asUser(t)
	dir := supervisors(t)
	e := detachedEngine(t, dir)
	spec := detachedSpec(t, t.TempDir())
	handle := ensure(t, e, spec)
	out, err := output(t.Context(), handle, `ls /proc/1/fd 2>/dev/null && echo "descriptors"
grep -a . /proc/1/environ 2>/dev/null && echo "environment"
grep -c . /proc/net/unix
ls -la /proc/self/fd | grep -c socket
ls `+dir+` 2>/dev/null && echo "directory"
kill -9 1 2>/dev/null; kill -STOP 1; echo end`)
	if err != nil || out != "1\n0\nend\n" { // the first line of /proc/net/unix names its columns
		t.Errorf("inside there is %q, %v", out, err)
	}
	remove(t, e, spec.Name)
}

// A directory that others may write to is no place to meet anybody.
func TestSharedDirectoryIsRefused(t *testing.T) {
	dir := supervisors(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e := testEngine(t, Options{Dir: dir})
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Ensure(t.Context(), detachedSpec(t, t.TempDir())); sandbox.CodeOf(err) != sandbox.CodeUnavailable || !strings.Contains(err.Error(), "0700") {
		t.Errorf("%v", err)
	}
	if _, err := testEngine(t, Options{}).Ensure(t.Context(), detachedSpec(t, t.TempDir())); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("without a directory: %v", err)
	}
}

// What a boot has left is nothing to the next one, whatever has its number now; and what was half made is not used.
func TestRecordsOfWhatHasEnded(t *testing.T) {
	dir := supervisors(t)
	e := detachedEngine(t, dir)
	spec := detachedSpec(t, t.TempDir())
	handle := ensure(t, e, spec)
	r := *handle.(*box).record
	handle.Close()
	store := &supervised{dir: dir}
	other := r
	other.Name, other.ID, other.Group = "of-another-boot", strconv.Itoa(os.Getpid())+":"+startTime(os.Getpid())+":another-boot", nil
	if err := errors.Join(store.write(&other), os.WriteFile(filepath.Join(dir, "no-record.json"), []byte("{"), 0o600), os.WriteFile(filepath.Join(dir, "alone.sock"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := e.Sweep(t.Context()); err == nil {
		t.Error("nobody is told of a record that cannot be understood")
	}
	if states, err := e.List(t.Context()); err != nil || len(states) != 1 || states[0].Name != spec.Name {
		t.Errorf("%+v %v", states, err)
	}
	half := r
	half.Ready = false
	if err := store.write(&half); err != nil {
		t.Fatal(err)
	}
	if err := e.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if states, err := e.List(t.Context()); err != nil || len(states) != 0 || lives(r.ID) {
		t.Errorf("half made: %+v %v", states, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What another version has made is made anew.
func TestAnotherVersionIsNotUsed(t *testing.T) {
	dir := supervisors(t)
	e := detachedEngine(t, dir)
	spec := detachedSpec(t, t.TempDir())
	handle := ensure(t, e, spec)
	before := handle.State().EngineID
	handle.Close()
	e.mu.Lock()
	e.supervised.found[spec.Name].Made = "another"
	e.mu.Unlock()
	if now := ensure(t, e, spec).State().EngineID; now == before || lives(before) {
		t.Errorf("%s is used, and %s was; that one lives: %v", now, before, lives(before))
	}
	remove(t, e, spec.Name)
}
