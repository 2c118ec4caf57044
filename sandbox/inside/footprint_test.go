//go:build linux

package inside_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// Bounds of what the program inside may cost.
const (
	maxProgram  = 4 << 20
	maxPrivate  = 4 << 20
	maxResident = 4 << 20 // before its first command
)

// allowedImports is every package that the program inside may be made of. What is not here would make it larger, slower
// to start, or a larger target: the network, formats, compression, reflection on data that it is sent.
var allowedImports = strings.Fields(`unsafe math/bits runtime errors sync/atomic sync io iter unicode unicode/utf8 bytes math
	strconv reflect cmp slices encoding/binary sort strings syscall time golang.org/x/sys/unix path io/fs os hash crypto
	crypto/fips140 crypto/subtle crypto/cipher math/rand/v2 fmt math/rand math/big crypto/rand path/filepath context os/signal
	runtime/debug
	github.com/toolward/toolward/cmd/toolward-inside github.com/toolward/toolward/cmd/toolward-inside/entry
	github.com/toolward/toolward/job github.com/toolward/toolward/sandbox/disk/usage github.com/toolward/toolward/sandbox/inside/join
	github.com/toolward/toolward/sandbox/inside/serve github.com/toolward/toolward/sandbox/inside/wire
	github.com/toolward/toolward/sandbox/light/box github.com/toolward/toolward/sandbox/native/setup github.com/toolward/toolward/sandbox/task`)

func TestImportsOfTheProgramInside(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "github.com/toolward/toolward/cmd/toolward-inside")
	list.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := list.Output()
	must(t, err)
	seen := 0
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		first, _, _ := strings.Cut(path, "/")
		if first == "internal" || first == "vendor" || strings.Contains(path, "/internal/") && !strings.Contains(first, ".") {
			continue // the standard library's own: what uses them is in the list
		}
		seen++
		if !slices.Contains(allowedImports, path) {
			t.Errorf("the program inside is made of %s, too", path)
		}
	}
	if seen < len(allowedImports)/2 {
		t.Errorf("only %d packages were looked at", seen)
	}
}

// One is in every sandbox, so it is small: on disk, and in memory that is not shared with the others.
func TestFootprint(t *testing.T) {
	program, err := inside.FindProgram(t.Context())
	must(t, err)
	st, err := program.File.Stat()
	must(t, err)
	t.Logf("program: %d KiB", st.Size()>>10)
	if st.Size() > maxProgram {
		t.Errorf("the program has %d bytes", st.Size())
	}
	if _, err := program.File.WriteAt([]byte("x"), 0); err == nil {
		t.Error("the program in memory can be written to")
	}

	if os.Geteuid() != 0 {
		t.Skip("the rest is not run: only root may look into the program inside")
	}
	b := newBox(t)
	resident, _ := memory(t, b.program.Process.Pid)
	t.Logf("after the start: %d KiB resident", resident>>10)
	if resident > maxResident {
		t.Errorf("%d bytes are resident before the first command", resident)
	}
	b.shell("true")
	resident, private := memory(t, b.program.Process.Pid)
	t.Logf("after one command: %d KiB resident, %d KiB of it its own", resident>>10, private>>10)
	if private > maxPrivate {
		t.Errorf("%d bytes are its own", private)
	}
	p, err := b.Start(b.context(), sandbox.Command{Argv: []string{"head", "-c", "50000000", "/dev/zero"}})
	must(t, err)
	io.Copy(io.Discard, p.Stdout())
	p.Wait(b.context())
	for range 100 {
		b.do(sandbox.Command{Argv: []string{"true"}})
	}
	resident, private = memory(t, b.program.Process.Pid)
	t.Logf("after much work: %d KiB resident, %d KiB of it its own", resident>>10, private>>10)
	if private > 3*maxPrivate {
		t.Errorf("%d bytes are its own after it has worked", private)
	}
}

// memory reads /proc/<pid>/smaps_rollup.
func memory(t *testing.T, pid int) (resident, private int) {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	must(t, err)
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 3 {
			continue
		}
		size, _ := strconv.Atoi(string(fields[1]))
		switch string(fields[0]) {
		case "Rss:":
			resident = size << 10
		case "Private_Dirty:", "Private_Clean:":
			private += size << 10
		}
	}
	return resident, private
}

// The program can be executed from memory, where no file of it is.
func TestFromMemory(t *testing.T) {
	program, err := inside.FindProgram(t.Context())
	must(t, err)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	process, err := os.StartProcess("/proc/self/fd/"+strconv.Itoa(int(program.File.Fd())), append(append([]string{"toolward-inside"}, program.Args...), inside.Serve), &os.ProcAttr{
		Files: []*os.File{theirs, nil, os.Stderr},
	})
	must(t, err)
	theirs.Close()
	client, err := inside.Connect(t.Context(), ours, inside.Setup{Workdir: "/"})
	must(t, err)
	running, err := client.Start(t.Context(), sandbox.Command{Segments: []sandbox.Segment{{Argv: []string{"no-such-program"}, Operator: "||"}, {Argv: []string{"echo", "yes"}}}})
	must(t, err)
	out, _ := io.ReadAll(running.Stdout())
	if string(out) != "yes\n" {
		t.Errorf("%q", out)
	}
	client.Close()
	ended := make(chan error, 1)
	go func() { _, err := process.Wait(); ended <- err }()
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(patience):
		process.Kill()
		t.Error("it did not end")
	}
}
