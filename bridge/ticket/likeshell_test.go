//go:build unix

package ticket_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDeaths: whatever signal a command dies of, its shell sees the same as without us, at once and without another word.
func TestDeaths(t *testing.T) {
	byDefault(t)
	for number := syscall.Signal(1); number <= 64; number++ {
		switch number {
		case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, 32, 33: // they stop, or are the threads' own
			continue
		}
		t.Run(number.String(), func(t *testing.T) {
			w := newWorld(t)
			w.text = fmt.Sprintf("ulimit -c 0; kill -%d $$", number)
			how := func(text string) (status, said string) {
				c := exec.Command("bash", "-c", text)
				c.Dir = w.dir
				out, _ := c.CombinedOutput() // its status says it
				return c.ProcessState.String(), string(out)
			}
			want, _ := how(w.text)
			_, command := w.issue(false)
			began := time.Now()
			if got, said := how("exec " + command); got != want || said != "" || time.Since(began) > 900*time.Millisecond {
				t.Errorf("it ended with %q after %v, want %q; it said %.200q", got, time.Since(began), want, said)
			}
		})
	}
	if left, _ := filepath.Glob("core*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// byDefault has what this test starts begin with signals that nobody ignores, although this test may be run by nohup: what is caught here is
// not caught there.
func byDefault(t *testing.T) {
	t.Helper()
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGPIPE)
	t.Cleanup(func() { signal.Stop(caught) })
}

// TestIgnoredSignals: a signal that the shell has had ignored, as nohup does, is ignored by the command's end of it, too.
func TestIgnoredSignals(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		t.Run(sent.String(), func(t *testing.T) {
			w := newWorld(t)
			w.text = "echo ready; read line; echo got $line"
			_, command := w.issue(false)
			c := exec.Command("bash", "-c", fmt.Sprintf("trap '' %d; exec %s", sent, command))
			c.Dir = w.dir
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			first, _ := lines.ReadString('\n')
			_ = c.Process.Signal(sent) // it runs
			_, _ = io.WriteString(in, "on\n")
			rest, _ := io.ReadAll(lines)
			_ = c.Wait() // its status says it
			if first != "ready\n" || string(rest) != "got on\n" || c.ProcessState.ExitCode() != 0 {
				t.Errorf("%q %q, %v", first, rest, c.ProcessState)
			}
		})
	}
}

// TestOutputThatDoesNotFit: a command whose output was lost is not one that went well.
func TestOutputThatDoesNotFit(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skipf("not run: %v", err)
	}
	w := newWorld(t)
	w.text = "echo lost"
	_, command := w.issue(false)
	got := w.shell(command + " > /dev/full")
	if got.code != 1 || !strings.Contains(got.err, "could be written: no space left on device") || strings.Count(got.err, "\n") != 1 {
		t.Errorf("%+v", got)
	}
}

// TestGoneAndNotRead: who goes, and leaves the other ends of the pipes open with somebody who does not read, holds up nothing.
func TestGoneAndNotRead(t *testing.T) {
	w := newWorld(t)
	w.text = "head -c 1100000 /dev/zero" // a little more than a pipe takes: it ends, and its last words wait to be read
	_, command := w.issue(false)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	conn := w.dial(command[strings.LastIndexByte(command, ' ')+1:], "m")
	if _, _, err := conn.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(writer.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	eventually(t, "the command ends", func() bool {
		group := int(w.group.Load())
		return group > 0 && syscall.Kill(group, 0) != nil
	})
	_ = conn.Close()
	eventually(t, "its sandbox is let go", func() bool { return w.ended.Load() == 1 })
}

// TestLastOutputNotRead: a signal ends toolward-run although the command has ended before it and nobody reads what it wrote.
func TestLastOutputNotRead(t *testing.T) {
	byDefault(t)
	for _, size := range []int{1 << 20, 3 << 20} { // in the pipes beside toolward-run; and still at the daemon
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			w := newWorld(t)
			w.text = fmt.Sprintf("head -c %d /dev/zero", size)
			_, command := w.issue(false)
			c := exec.Command("bash", "-c", "exec "+command)
			c.Dir = w.dir
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			c.Stdout = writer
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			_ = writer.Close()
			eventually(t, "the command starts", func() bool { return w.group.Load() > 0 })
			late := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
			defer late.Stop()
			_ = c.Process.Signal(syscall.SIGTERM) // it runs
			_ = c.Wait()                          // its status says it
			if got := c.ProcessState.String(); got != "signal: terminated" {
				t.Error(got)
			}
		})
	}
}

// TestSlowReader: who reads slowly gets everything of a command that has survived a signal.
func TestSlowReader(t *testing.T) {
	byDefault(t)
	w := newWorld(t)
	w.text = "trap : TERM; echo ready; until read -t 0.01 line; do :; done; head -c 3000000 /dev/zero"
	_, command := w.issue(false)
	c := exec.Command("bash", "-c", "exec "+command)
	c.Dir = w.dir
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, 6)
	if _, err := io.ReadFull(out, ready); err != nil {
		t.Fatal(err)
	}
	_ = c.Process.Signal(syscall.SIGTERM) // it runs
	time.Sleep(50 * time.Millisecond)     // the other side is a process of another kind
	_, _ = io.WriteString(in, "go on\n")
	n := int64(0)
	for { // three seconds for all
		got, err := io.CopyN(io.Discard, out, 100_000)
		if n += got; err != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	_ = c.Wait() // its status says it
	if n != 3_000_000 || c.ProcessState.ExitCode() != 0 {
		t.Errorf("%d bytes, %v", n, c.ProcessState)
	}
}

// TestNobodyWaitsForTheStart: a sandbox may take long to make. What ends toolward-run meanwhile ends that, and nothing runs.
func TestNobodyWaitsForTheStart(t *testing.T) {
	byDefault(t)
	for _, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sent.String(), func(t *testing.T) {
			w := newWorld(t)
			begun, given := make(chan struct{}), make(chan struct{})
			w.making = func(ctx context.Context) error {
				close(begun)
				<-ctx.Done()
				close(given)
				return ctx.Err()
			}
			_, command := w.issue(false)
			c := exec.Command("bash", "-c", "exec "+command)
			c.Dir = w.dir
			var errs strings.Builder
			c.Stderr = &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			<-begun
			_ = c.Process.Signal(sent) // it runs
			_ = c.Wait()               // its status says it
			<-given
			if got := c.ProcessState.String(); got != "signal: "+sent.String() || errs.String() != "" || w.started.Load() != 0 {
				t.Errorf("%s, %q, %d commands started", got, errs.String(), w.started.Load())
			}
		})
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) { // it happens in other processes
		if time.Now().After(end) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// dial shows a ticket, and returns when the daemon wants the streams.
func (w *world) dial(ticket, streams string) *net.UnixConn {
	w.Helper()
	conn, err := net.Dial("unix", filepath.Join(w.home, "toolward.sock"))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/run HTTP/1.1\r\nHost: x\r\nToolward-Ticket: %s\r\nToolward-Directory: %s\r\nToolward-Streams: %s\r\nContent-Length: 0\r\n\r\n", ticket, w.dir, streams)
	if err != nil {
		w.Fatal(err)
	}
	answer := bufio.NewReader(conn)
	for {
		line, err := answer.ReadString('\n')
		if err != nil {
			w.Fatal(err)
		}
		if line == "\r\n" {
			break
		}
	}
	if says, err := answer.ReadByte(); err != nil || says != 'd' {
		w.Fatalf("it says %q, %v", says, err)
	}
	return conn.(*net.UnixConn)
}
