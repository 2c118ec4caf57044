//go:build linux

package inside_test

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// Bounds of what the program inside may cost.
const (
	maxProgram = 4 << 20
	maxPrivate = 4 << 20
)

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

	b := newBox(t)
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
