package builtin

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
)

// background starts a command in the background and returns its session.
func (w *world) background(command string, more ...args) string {
	w.Helper()
	a := args{"command": command, "background": true}
	for _, m := range more {
		for k, v := range m {
			a[k] = v
		}
	}
	d := details[runningDetails](w, w.run("exec", a))
	if d.Status != "running" || d.SessionID == "" || d.PID == 0 || d.Dir != w.workspace {
		w.Fatalf("details %+v", d)
	}
	return d.SessionID
}

func TestProcessLifeOfACommand(t *testing.T) {
	w := newWorld(t)
	id := w.background("while read -r line; do echo got $line; done; echo bye; exit 4")

	if got := w.ok("process", args{"action": "list"}); !strings.HasPrefix(got, id+"  running ") || !strings.Contains(got, "while read") {
		t.Errorf("list: %q", got)
	}
	if got := w.ok("process", args{"action": "poll", "sessionId": id}); got != "(no new output)\n\nThe command is still running; poll again in 5s." {
		t.Errorf("poll: %q", got)
	}
	if d := details[pollDetails](t, w.run("process", args{"action": "poll", "sessionId": id})); d.RetryInMs != 10_000 || d.Status != "running" {
		t.Errorf("second poll: %+v", d)
	}
	w.ok("process", args{"action": "submit", "sessionId": id, "data": "one"})
	w.ok("process", args{"action": "write", "sessionId": id, "data": "two\nthree\n"})
	w.fails("process", args{"action": "clear", "sessionId": id}, "still running")
	if got := w.ok("process", args{"action": "write", "sessionId": id, "eof": true}); !strings.Contains(got, "closed its input") {
		t.Errorf("eof: %q", got)
	}
	d := details[pollDetails](t, w.run("process", args{"action": "poll", "sessionId": id, "timeout": 60_000}))
	if d.Output != "got one\ngot two\ngot three\nbye\n" || d.Status != "failed" || d.ExitCode == nil || *d.ExitCode != 4 || d.RetryInMs != 0 {
		t.Errorf("end: %+v", d)
	}
	if got := w.ok("process", args{"action": "poll", "sessionId": id}); got != "(no new output)\n\n(Command exited with code 4)" {
		t.Errorf("poll after the end: %q", got)
	}
	if got := w.ok("process", args{"action": "log", "sessionId": id, "offset": 1, "limit": 2}); got != "got two\ngot three" {
		t.Errorf("log: %q", got)
	}
	w.fails("process", args{"action": "write", "sessionId": id, "data": "x"}, "has ended")
	w.ok("process", args{"action": "clear", "sessionId": id})
	w.fails("process", args{"action": "poll", "sessionId": id}, "There is no session")
	if got := w.ok("process", args{"action": "list"}); got != "No background commands.\n" {
		t.Errorf("list at the end: %q", got)
	}
}

func TestYieldToTheBackground(t *testing.T) {
	w := newWorld(t)
	result := w.run("exec", args{"command": "echo early; sleep 100", "yieldMs": 300})
	d := details[runningDetails](t, result)
	if d.Status != "running" || d.Tail != "early\n" || result.IsError {
		t.Errorf("%+v", d)
	}
	w.fails("process", args{"action": "write", "sessionId": d.SessionID, "data": "x"}, "its standard input is closed")
	if got := w.ok("process", args{"action": "kill", "sessionId": d.SessionID}); got != "Session "+d.SessionID+" was ended." {
		t.Errorf("got %q", got)
	}
	end := details[pollDetails](t, w.run("process", args{"action": "poll", "sessionId": d.SessionID}))
	if end.Status != "failed" || end.Signal != "SIGTERM" || end.ExitCode != nil {
		t.Errorf("%+v", end)
	}
	if got := w.ok("process", args{"action": "remove", "sessionId": d.SessionID}); !strings.Contains(got, "has ended already and is removed") {
		t.Errorf("got %q", got)
	}
}

func TestBackgroundIsNotAllowed(t *testing.T) {
	w := newWorld(t)
	w.box.deps.MayUse = func(_ toolward.Caller, tool string) bool { return tool != "process" }
	result := w.run("exec", args{"command": "echo done", "background": true})
	if d := details[finishedDetails](t, result); d.Status != "completed" || d.Warning != "background-disabled" || d.Aggregated != "done\n" {
		t.Errorf("%+v", d)
	}
}

func TestBackgroundTimeout(t *testing.T) {
	w := newWorld(t)
	id := w.background("sleep 100", args{"timeout": 0.2})
	d := details[pollDetails](t, w.run("process", args{"action": "poll", "sessionId": id, "timeout": "60000"}))
	if !d.TimedOut || d.Status != "failed" {
		t.Errorf("%+v", d)
	}
}

// TestScope: another agent's command and one that does not exist look exactly alike.
func TestScope(t *testing.T) {
	w := newWorld(t)
	id := w.background("cat")
	w.agent = "stranger"
	for _, action := range []string{"poll", "log", "write", "submit", "kill", "remove", "clear"} {
		foreign := w.run("process", args{"action": action, "sessionId": id, "data": "x"})
		unknown := w.run("process", args{"action": action, "sessionId": "no-such", "data": "x"})
		if diff := cmp.Diff(strings.ReplaceAll(text(unknown), "no-such", id), text(foreign)); diff != "" || !foreign.IsError {
			t.Errorf("%s: %s", action, diff)
		}
	}
	if got := w.ok("process", args{"action": "list"}); got != "No background commands.\n" {
		t.Errorf("list: %q", got)
	}
	w.agent = "coder"
	if d := details[pollDetails](t, w.run("process", args{"action": "poll", "sessionId": id})); d.Status != "running" {
		t.Errorf("%+v", d)
	}
}

func TestFactsOfProcess(t *testing.T) {
	w := newWorld(t)
	id := w.background("cat")
	r := w.facts("process", args{"action": "write", "sessionId": id, "data": "rm -rf x\n"})
	if f := r.Facts; f.Action != "write" || f.TargetID != id || !f.Mutates || len(f.Bound) != 1 {
		t.Errorf("%+v", f)
	}
	diff, err := r.Tool.Diff(t.Context(), r)
	if err != nil || diff != fmt.Sprintf("Session %s runs in %s:\n  cat\nInput:\n+rm -rf x\n", id, w.workspace) {
		t.Errorf("%v %q", err, diff)
	}
	if r := w.facts("process", args{"action": "poll", "sessionId": id}); r.Facts.Mutates {
		t.Error("poll mutates")
	}
	if _, err := w.request("process", args{"action": "poll"}); err == nil || !strings.Contains(err.Error(), "sessionId: is missing") {
		t.Errorf("got %v", err)
	}
	// A later command of the same name is another process: the approval does not fit it.
	old := w.facts("process", args{"action": "kill", "sessionId": id})
	s := w.box.sessions.byID[id]
	w.ok("process", args{"action": "remove", "sessionId": id})
	again := w.background("cat")
	next := w.box.sessions.byID[again]
	delete(w.box.sessions.byID, again)
	next.id = s.id
	w.box.sessions.byID[s.id] = next
	if r := w.facts("process", args{"action": "kill", "sessionId": id}); cmp.Equal(r.Facts.Bound, old.Facts.Bound) {
		t.Error("two commands of the same name are bound alike")
	}
}

// TestInputThatNobodyReads must not block for ever.
func TestInputThatNobodyReads(t *testing.T) {
	w := newWorld(t)
	id := w.background("sleep 100")
	s := w.box.sessions.byID[id]
	err := s.input(make([]byte, 1<<20), 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "does not read its input") {
		t.Errorf("got %v", err)
	}
}

func TestPollIsCanceled(t *testing.T) {
	w := newWorld(t)
	id := w.background("sleep 100")
	r := w.facts("process", args{"action": "poll", "sessionId": id, "timeout": 100_000})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Tool.Run(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if !w.box.sessions.byID[id].running() {
		t.Error("cancelling a poll ended the command")
	}
}

func TestPollShowsNewOutputOnly(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.UnreadChars = 1000; c.OutputChars = 2000 })
	id := w.background("cat")
	say := func(data string) { w.ok("process", args{"action": "write", "sessionId": id, "data": data}) }
	poll := func() string {
		return details[pollDetails](t, w.run("process", args{"action": "poll", "sessionId": id})).Output
	}
	expect := func(chars int64) {
		for deadline := time.Now().Add(time.Minute); total(w.box.sessions.byID[id]) < chars; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("the output does not come")
			}
		}
	}
	say("one\n")
	expect(4)
	if got := poll(); got != "one\n" {
		t.Errorf("got %q", got)
	}
	if got := poll(); got != "" {
		t.Errorf("got %q", got)
	}
	say(strings.Repeat("x", 2999) + "\n")
	expect(3004)
	if got := poll(); len(got) > 1100 || !strings.HasPrefix(got, "[… 2000 characters left out …]\nx") {
		t.Errorf("%d: %.60q", len(got), got)
	}
	if got := w.ok("process", args{"action": "log", "sessionId": id}); !strings.HasPrefix(got, "[the first 1004 characters are no longer kept]\nx") {
		t.Errorf("%.60q", got)
	}
}

func total(s *session) int64 {
	_, _, n := s.output.aggregated()
	return n
}

// finishedSession is a background command that has ended, without a process.
func finishedSession(s *sessions, scope string, chars int) *session {
	done := make(chan struct{})
	close(done)
	out := newTranscript(0, 200_000, 10)
	fmt.Fprint(out, strings.Repeat("x", chars))
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := &session{id: s.freshID(), scope: scope, output: out, background: true, execution: &execution{done: done, ended: true, exit: exit{at: time.Now()}}}
	s.byID[gone.id] = gone
	s.tidy()
	return gone
}

func TestFinishedCommandsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSessions(sessionLimits{finished: 50, finishedBytes: 1 << 20, finishedFor: 30 * time.Minute})
		finishedSession(s, "a", 1)
		time.Sleep(29 * time.Minute)
		if n := len(s.list("a")); n != 1 {
			t.Fatalf("%d after 29 minutes", n)
		}
		time.Sleep(7 * time.Minute) // the sweep comes every five minutes
		if n := len(s.list("a")); n != 0 {
			t.Errorf("%d after 36 minutes", n)
		}
		if s.sweep != nil {
			t.Error("a timer is left although nothing is kept")
		}
	})
}

func TestFinishedCommandsAreBounded(t *testing.T) {
	s := newSessions(sessionLimits{finished: 5, finishedBytes: 10_000, finishedFor: time.Hour})
	defer s.close()
	for range 20 {
		finishedSession(s, "a", 10)
	}
	if n := len(s.byID); n != 5 {
		t.Errorf("%d are kept", n)
	}
	last := finishedSession(s, "a", 20_000)
	if n := len(s.byID); n != 1 || s.byID[last.id] == nil {
		t.Errorf("%d are kept beside one that is over the limit alone", n)
	}
}

func TestFreshIDsNeverCollide(t *testing.T) {
	s := newSessions(sessionLimits{})
	for range 5000 {
		id := s.freshID()
		if s.byID[id] != nil {
			t.Fatalf("%s twice", id)
		}
		s.byID[id] = &session{}
	}
}

func TestBackgroundLeavesNothing(t *testing.T) {
	needProc(t)
	w := newWorld(t)
	sleep, left := marked(t)
	id := w.background("trap '' TERM; " + sleep + " & " + sleep + "; " + sleep)
	for deadline := time.Now().Add(time.Minute); len(left()) < 2 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	w.ok("process", args{"action": "remove", "sessionId": id})
	noneLeft(t, left)
}

func TestTerminal(t *testing.T) {
	needProc(t)
	w := newWorld(t)
	if got := w.ok("exec", args{"command": "{ test -t 0 && test -t 1 && test -t 2 && echo $TERM; stty size; }", "pty": true}); got != "xterm-256color\r\n40 120\r\n" {
		t.Errorf("got %q", got)
	}
	// One program gets the terminal without a shell; several cannot share one.
	if got := w.ok("exec", args{"command": "cd . && stty size", "pty": true}); got != "40 120\r\n" {
		t.Errorf("got %q", got)
	}
	result := w.run("exec", args{"command": "stty size | cat", "pty": true})
	if d := details[finishedDetails](t, result); d.Warning != warnNoTerminal {
		t.Errorf("%+v", d)
	}
	// A program that asks for the cursor gets an answer.
	if got := w.ok("exec", args{"command": `{ stty -echo raw; printf '\033[6n'; head -c 6 | tr -d '\033'; }`, "pty": true}); got != "[1;1R" {
		t.Errorf("got %q", got)
	}
	id := w.background("while read -r line; do echo got $line; done; echo bye", args{"pty": true})
	w.ok("process", args{"action": "submit", "sessionId": id, "data": "one"})
	w.ok("process", args{"action": "write", "sessionId": id, "eof": true})
	d := details[pollDetails](t, w.run("process", args{"action": "poll", "sessionId": id, "timeout": 60_000}))
	if d.Status != "completed" || !strings.HasSuffix(d.Output, "got one\r\nbye\r\n") {
		t.Errorf("%+v", d)
	}
	sleep, left := marked(t)
	result = w.run("exec", args{"command": "trap '' HUP TERM; " + sleep + " & " + sleep, "pty": true, "timeout": 0.3})
	if d := details[finishedDetails](t, result); !d.TimedOut {
		t.Errorf("%+v", d)
	}
	noneLeft(t, left)
}
