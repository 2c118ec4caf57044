package live_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/toolward/toolward/internal/live"
)

// TestTicketsAreForOne: of those who show one ticket one starts its command, and another user none.
func TestTicketsAreForOne(t *testing.T) {
	m := newTicketDesk(t, quietAgent)
	for range 5 {
		command := m.told("echo x >> ran; cat ran")
		var all sync.WaitGroup
		var well, refused atomic.Int32
		for range 6 {
			all.Go(func() {
				switch got := m.shell(command); {
				case got.code == 0:
					well.Add(1)
				case got.refused("a ticket is good for once. Repeat the call"):
					refused.Add(1)
				default:
					t.Errorf("%+v", got)
				}
			})
		}
		all.Wait()
		if ran, _ := os.ReadFile(filepath.Join(m.Workspace, "ran")); string(ran) != "x\n" || well.Load() != 1 || refused.Load() != 5 {
			t.Errorf("%q: %d ran, %d were refused", ran, well.Load(), refused.Load())
		}
		_ = os.Remove(filepath.Join(m.Workspace, "ran")) // it was there
	}
}

// TestTicketOfAnother: whoever has the text of a ticket, but is not its user, has nothing, even where the socket lets everybody in.
func TestTicketOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: only root can be two users")
	}
	m := newTicketDesk(t, quietAgent)
	command := m.told("touch ran")
	for _, path := range []string{m.Home, m.State, m.Workspace, m.Socket()} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	other := func(c *exec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if got := m.shell(command, other); !got.refused("did not run") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(m.Workspace, "ran")); err == nil {
		t.Error("another user ran it")
	}
	if got := m.shell(command); got.code != 0 || got.err != "" {
		t.Errorf("its own user: %+v", got)
	}
}

// TestTicketAfterRestart: a ticket ends with the daemon that has issued it, and the model learns what to do.
func TestTicketAfterRestart(t *testing.T) {
	m := newTicketDesk(t, quietAgent)
	command := m.told("touch ran")
	m.Stop()
	if got := m.shell(command); !got.refused("start it with: toolward up") {
		t.Errorf("without a daemon: %+v", got)
	}
	m.Start()
	if got := m.shell(command); !got.refused("The command did not run; repeat the call") {
		t.Errorf("with another daemon: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(m.Workspace, "ran")); err == nil {
		t.Error("it ran")
	}
}

// TestGuessedTickets: guessing finds nothing, and disturbs nobody.
func TestGuessedTickets(t *testing.T) {
	m := newTicketDesk(t, quietAgent)
	command := m.told("echo mine")
	guesses := live.Count(t, "TOOLWARD_GUESSES", 2_000, 100_000)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range guesses / 4 {
				conn, err := net.Dial("unix", m.Socket())
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = fmt.Fprintf(conn, "POST /v1/run HTTP/1.1\r\nHost: x\r\nConnection: close\r\nToolward-Ticket: %s\r\nToolward-Directory: %s\r\nToolward-Streams: m\r\nContent-Length: 0\r\n\r\n",
					strings.ToLower(rand.Text()), m.Workspace)
				said, _ := io.ReadAll(conn) // it is closed
				_ = conn.Close()
				if !bytes.Contains(said, []byte("this ticket is not known")) {
					t.Errorf("%q", said)
					return
				}
			}
		})
	}
	all.Wait()
	if got := m.shell(command); got != (seen{out: "mine\n"}) {
		t.Errorf("%+v", got)
	}
}

// TestWrapped: clients put what they are told to run into more.
func TestWrapped(t *testing.T) {
	m := newTicketDesk(t, quietAgent)
	marker := fmt.Sprint(3_000_000 + os.Getpid())
	if got := m.shell("timeout 1 " + m.told("echo begun; sleep "+marker)); got != (seen{out: "begun\n", code: 124}) || sleeping(marker) > 0 {
		t.Errorf("timeout: %+v, %d processes are left", got, sleeping(marker))
	}
	if got := m.shell("timeout 20 " + m.told("echo well; exit 4")); got != (seen{out: "well\n", code: 4}) {
		t.Errorf("timeout: %+v", got)
	}
	// Its shell ends, and hangs up on what is left.
	got := m.shell("nohup " + m.told("echo begun; sleep 1; echo ended; exit 5") + " > out 2> err & one=$!; sleep 0.3; kill -HUP $one; wait $one; echo $?; cat out")
	if got.code != 0 || got.out != "5\nbegun\nended\n" || got.err != "" {
		t.Errorf("nohup: %+v", got)
	}
	terminal := exec.Command("bash", "-c", m.told("test -t 0 && test -t 1 && stty size; sleep "+marker))
	terminal.Dir, terminal.Env = m.Workspace, m.Environment()
	screen, err := pty.StartWithSize(terminal, &pty.Winsize{Rows: 33, Cols: 101})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	late := time.AfterFunc(patience, func() { _ = terminal.Process.Kill() })
	defer late.Stop()
	said := make([]byte, 8)
	if _, err := io.ReadFull(screen, said); err != nil || string(said) != "33 101\r\n" {
		t.Errorf("terminal: %q, %v", said, err)
	}
	// Not before: a shell goes on if what ran in front of it ends by itself while ^C is typed.
	eventually(t, "the last command runs", func() bool { return sleeping(marker) > 0 })
	_, _ = screen.Write([]byte{3}) // ^C
	_ = terminal.Wait()            // its status says it
	if status := terminal.ProcessState.String(); status != "signal: interrupt" || sleeping(marker) > 0 {
		t.Errorf("terminal: %s, %d processes are left", status, sleeping(marker))
	}
}

// TestManyAtOnce: commands of one session run beside each other, each with its own output and status.
func TestManyAtOnce(t *testing.T) {
	m := newTicketDesk(t, quietAgent)
	var all sync.WaitGroup
	for i := range 20 {
		command := m.told(fmt.Sprintf("echo out %d; echo err %d >&2; echo %d >> ran; sleep 0.2; exit %d", i, i, i, i))
		all.Go(func() {
			if got, want := m.shell(command), (seen{fmt.Sprintf("out %d\n", i), fmt.Sprintf("err %d\n", i), i}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
	all.Wait()
	if ran, _ := os.ReadFile(filepath.Join(m.Workspace, "ran")); bytes.Count(ran, []byte("\n")) != 20 {
		t.Errorf("%q", ran)
	}
}

// TestMuch: much output, much input and a large environment arrive whole.
func TestMuch(t *testing.T) {
	m := newTicketDesk(t, quietAgent)
	sum := func(size int64) string {
		h := sha256.New()
		_, _ = io.CopyN(h, zeros{}, size) // it never fails
		return hex.EncodeToString(h.Sum(nil))
	}
	const out, in = 300 << 20, 50 << 20
	if got := m.shell(m.told(fmt.Sprintf("head -c %d /dev/zero", out)) + " | sha256sum"); got.code != 0 || !strings.HasPrefix(got.out, sum(out)) || got.err != "" {
		t.Errorf("output: %+v", got)
	}
	got := m.shell(m.told("sha256sum; echo done"), func(c *exec.Cmd) { c.Stdin = io.LimitReader(zeros{}, in) })
	if got.code != 0 || !strings.HasPrefix(got.out, sum(in)) || !strings.HasSuffix(got.out, "done\n") || got.err != "" {
		t.Errorf("input: %+v", got)
	}
	large := strings.Repeat("x", 100_000)
	got = m.shell(m.told("cat <(env) | grep -c '^LARGE[0-9]*=xxx'; echo ${#LARGE9}"), func(c *exec.Cmd) {
		for i := range 10 {
			c.Env = append(c.Env, fmt.Sprintf("LARGE%d=%s", i, large))
		}
	})
	if got != (seen{out: "10\n100000\n"}) {
		t.Errorf("environment: %.300s %.300s %d", got.out, got.err, got.code)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestTicketOnAFullDisk: without room for records nothing is decided. What was let run before runs, and its output is not lost.
func TestTicketOnAFullDisk(t *testing.T) {
	m := &ticketDesk{Machine: live.NewQuickMachine(t, quietAgent), t: t}
	mount(t, m.State, "size=24m,mode=0700")
	live.Unsandboxed(t, m.State)
	m.Configure(quietAgent)
	m.Start()
	if got := m.shell(m.told("echo before")); got != (seen{out: "before\n"}) {
		t.Fatalf("%+v", got)
	}
	before := m.told("echo x >> ran; echo mine")
	filler := filepath.Join(m.State, "filler")
	fill(t, filler)
	if got := m.shell(before); got != (seen{out: "mine\n"}) && !got.refused("did not run") {
		t.Errorf("%+v", got)
	}
	refusals := 0
	for i := 0; refusals < 5 && i < 500; i++ {
		said, err := m.hook(t.Context(), m.bashEvent("PreToolUse", fmt.Sprintf("full%d", i), "echo y >> ran"+strings.Repeat(" ", 3000), nil))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(said, []byte(`"deny"`)) {
			refusals++
		}
	}
	if refusals < 5 {
		t.Error("a full disk refuses nothing")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if got := m.shell(m.told("cat ran")); got.code != 0 || strings.Contains(got.out, "y") {
		t.Errorf("with room again: %+v", got)
	}
}

// TestSwappedDirectory: between the decision and the start, or between two calls, a directory becomes another by a link. The command of the
// one is not run in the other; and when everything is as before, so are calls.
func TestSwappedDirectory(t *testing.T) {
	m := newTicketDesk(t, quietAgent)
	other := filepath.Join(m.Home, "other")
	sub := filepath.Join(m.Workspace, "sub")
	for _, dir := range []string{other, sub} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "precious"), "x")
	}
	for i, path := range []string{m.Workspace, m.Workspace, sub} { // before there is a sandbox, and with one
		text := "rm -f sub/precious; touch sub/ran"
		command := m.told(text)
		if err := errors.Join(os.Rename(path, path+".away"), os.Symlink(other, path)); err != nil {
			t.Fatal(err)
		}
		got := m.shell(command)
		if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
			t.Fatal(err)
		}
		left, _ := filepath.Glob(filepath.Join(other, "*"))
		if len(left) != 1 || filepath.Base(left[0]) != "precious" {
			t.Errorf("%d: the other directory has %v", i, left)
		}
		if _, err := os.Stat(filepath.Join(sub, "ran")); got.code == 0 && err != nil || got.code != 0 && strings.Count(got.err, "\n") < 1 {
			t.Errorf("%d: %+v", i, got)
		}
		if got := m.shell(m.told("touch sub/precious; rm -f sub/ran; ls sub")); got != (seen{out: "precious\n"}) {
			t.Errorf("%d: as before: %+v", i, got)
		}
	}
}

// TestWorkspaceAnew: a project that is removed and made again at its path is the one that commands see.
func TestWorkspaceAnew(t *testing.T) {
	m := newTicketDesk(t, quietAgent)
	if got := m.shell(m.told("touch old; ls")); got != (seen{out: "old\n"}) {
		t.Fatalf("%+v", got)
	}
	if err := errors.Join(os.RemoveAll(m.Workspace), os.Mkdir(m.Workspace, 0o700)); err != nil {
		t.Fatal(err)
	}
	if got := m.shell(m.told("touch new; ls")); got != (seen{out: "new\n"}) {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(m.Workspace, "new")); err != nil {
		t.Error(err)
	}
}
