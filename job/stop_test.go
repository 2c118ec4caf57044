//go:build linux

package job_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/toolward/toolward/job"
)

// alive lists processes whose command line contains a word.
func alive(t *testing.T, word string) []string {
	t.Helper()
	var found []string
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, name := range lines {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), word) {
			found = append(found, name+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// await waits until something becomes true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what + ": does not happen")
		}
	}
}

func TestStop(t *testing.T) {
	for i, test := range []struct {
		text      string
		processes int
	}{
		{"sleep %s; touch made", 1},
		{"sleep %s | sleep %s | sleep %s || touch made", 3},
		{"true && sleep %s || touch made", 1},
		{"echo a; sleep %s; touch made", 1},
		{"echo a | timeout 1000 sleep %s; touch made", 2},
		{"sh -c 'sleep %s & sleep %s'; touch made", 2},
		{"sh -c 'setsid sleep %s & sleep %s'; touch made", 2},
		{"sh -c 'kill -STOP $$; sleep %s'; touch made", 1},
	} {
		t.Run(test.text, func(t *testing.T) {
			b := newBench(t)
			word := fmt.Sprintf("98%d%d.5", os.Getpid(), i)
			running, _, _, err := startPlan(b.plan(strings.ReplaceAll(test.text, "%s", word)), nil)
			must(t, err)
			await(t, "the start", func() bool { return len(alive(t, word)) >= test.processes })
			running.Stop(syscall.SIGTERM)
			select {
			case <-running.Done():
			case <-time.After(time.Minute):
				t.Fatal("it does not stop")
			}
			running.Release()
			if result := running.Result(); !errors.Is(result.Err, job.ErrStopped) || result.Code == 0 {
				t.Errorf("%+v", result)
			}
			await(t, "the end of all processes", func() bool { return len(alive(t, word)) == 0 })
			if _, err := os.Stat(b.dir + "/made"); err == nil {
				t.Error("the next segment ran")
			}
		})
	}
}

// TestStubborn: a program that ignores TERM ends with KILL, and its group with it.
func TestStubborn(t *testing.T) {
	b := newBench(t)
	running, out, _, err := startPlan(b.plan(`sh -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done'`), nil)
	must(t, err)
	await(t, "the trap", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", running.Process()))
		_, mask, found := strings.Cut(string(status), "SigIgn:\t")
		ignored, _ := strconv.ParseUint(strings.SplitN(mask, "\n", 2)[0], 16, 64)
		return err == nil && found && ignored>>(syscall.SIGTERM-1)&1 == 1 // others may be ignored where the test runs
	})
	running.Stop(syscall.SIGTERM)
	select {
	case <-running.Done():
		t.Fatal("it ended by TERM")
	case <-time.After(50 * time.Millisecond):
	}
	running.Stop(syscall.SIGKILL)
	<-running.Done()
	running.Release()
	if result := running.Result(); result.Code != 137 || result.Signal != syscall.SIGKILL || <-out != "ready\n" {
		t.Errorf("%+v", result)
	}
}

// TestLeftBehind: what programs leave in the background lives as long as the job, and no longer.
func TestLeftBehind(t *testing.T) {
	b := newBench(t)
	word := fmt.Sprintf("97%d.5", os.Getpid())
	text := "sh -c 'sleep " + word + " & true' >/dev/null; pgrep -f '^sleep " + word + "' | wc -l"
	running, out, _, err := startPlan(b.plan(text), nil)
	must(t, err)
	<-running.Done()
	if len(alive(t, word)) == 0 {
		t.Error("it was ended too early")
	}
	running.Release()
	if got := <-out; strings.TrimSpace(got) != "1" {
		t.Errorf("the next program saw %q of it", got)
	}
	await(t, "its end", func() bool { return len(alive(t, word)) == 0 })
	if err := syscall.Kill(running.Process(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the first program is still there: %v", err)
	}
}

// TestKilledMember kills programs of a pipeline from outside.
func TestKilledMember(t *testing.T) {
	b := newBench(t)
	word := fmt.Sprintf("96%d.5", os.Getpid())
	running, out, _, err := startPlan(b.plan("sleep "+word+" | cat && echo went on"), nil)
	must(t, err)
	must(t, syscall.Kill(running.Process(), syscall.SIGKILL))
	running.Release()
	if got := <-out; got != "went on\n" || running.Result().Code != 0 {
		t.Errorf("the first: %q, %+v", got, running.Result())
	}
	running, out, _, err = startPlan(b.plan("sleep "+word+" | sh -c 'kill -9 $$'"), nil)
	must(t, err)
	must(t, syscall.Kill(running.Process(), syscall.SIGTERM))
	running.Release()
	if got := <-out; got != "" || running.Result().Code != 137 {
		t.Errorf("the last: %q, %+v", got, running.Result())
	}
}

func TestMuchData(t *testing.T) {
	b := newBench(t)
	for text, want := range map[string]string{
		"head -c 30000000 /dev/zero | cat | wc -c": "30000000\n",
		"yes | head -n 300000 | tail -n 1":         "y\n",
		"yes | sleep 0.1":                          "", // never reads
		"seq 200000 > big; cat big big | wc -l":    "400000\n",
		"cat":                                      "", // its input is empty
	} {
		if got := b.run(b.plan(text)); got.out != want || got.result.Code != 0 {
			t.Errorf("%s: %q, %+v", text, got.out, got.result)
		}
	}
	document := strings.Repeat("a line of a here-document\n", 40_000) // more than a pipe holds
	plan := b.plan("cat | wc -c")
	plan.Segments[0].Redirects = []job.Redirect{job.Document(document)}
	if got := b.run(plan); strings.TrimSpace(got.out) != fmt.Sprint(len(document)) {
		t.Errorf("here-document: %+v", got)
	}
}

// TestNoReader: the reader of the output goes away.
func TestNoReader(t *testing.T) {
	b := newBench(t)
	read, write, err := os.Pipe()
	must(t, err)
	read.Close()
	running, err := job.Start(b.plan("yes; cat < missing; yes | cat"), job.Streams{Out: write, Err: write})
	must(t, err)
	running.Release()
	if result := running.Result(); result.Signal != syscall.SIGPIPE || result.Err != nil {
		t.Errorf("%+v", result)
	}
}

func TestInput(t *testing.T) {
	b := newBench(t)
	read, write, err := os.Pipe()
	must(t, err)
	go func() {
		write.WriteString("one\ntwo\nthree\n")
		write.Close()
	}()
	got, err := runPlan(b.plan("sh -c 'read x; echo $x'; cat | tail -n 1"), read)
	must(t, err)
	if got.out != "one\nthree\n" {
		t.Errorf("%q", got.out)
	}
}

func TestTerminal(t *testing.T) {
	b := newBench(t)
	for text, want := range map[string]string{
		"sh -c 'test -t 0 && test -t 1 && test -t 2 && ps -o tty= -p $$ | grep -c pts'": "1\r\n",
		"cd / && sh -c 'test -t 0 && pwd'":                                              "/\r\n",
		"sh -c 'test -t 0 || head -c 1 </dev/tty >/dev/null; echo has' </dev/null":      "has\r\n",
	} {
		ours, theirs, err := pty.Open()
		must(t, err)
		ours.WriteString("\n")
		out := collect(ours)
		running, err := job.Start(b.plan(text), job.Streams{In: theirs, Out: theirs, Err: theirs, Terminal: true})
		must(t, err)
		running.Release()
		if got := strings.TrimPrefix(<-out, "\r\n"); got != want || running.Result().Code != 0 {
			t.Errorf("%s: %q, %+v", text, got, running.Result())
		}
	}
	if _, err := job.Start(b.plan("cat | cat"), job.Streams{Terminal: true}); !errors.Is(err, job.ErrTerminal) {
		t.Errorf("two programs: %v", err)
	}
}
