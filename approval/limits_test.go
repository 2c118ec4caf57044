package approval

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
)

func TestNoApprover(t *testing.T) {
	expired := &person{name: "eve", err: errors.New("signed out")}
	tests := map[string]struct {
		options func(*Options)
		people  func(*testing.T, *Manager)
		want    toolward.Code // "": waits until the deadline
	}{
		"none":                    {nil, nil, toolward.CodeNoApprovalChannel},
		"absent wait":             {func(o *Options) { o.Settings.Absent = AbsentWait }, nil, ""},
		"chat did not accept":     {func(o *Options) { o.Channels = []Channel{chatOf(false)} }, nil, toolward.CodeNoApprovalChannel},
		"chat accepted":           {func(o *Options) { o.Channels = []Channel{chatOf(false), chatOf(true)} }, nil, ""},
		"approver has left":       {nil, func(t *testing.T, m *Manager) { attach(t, m, alice).Close() }, toolward.CodeNoApprovalChannel},
		"only the requester":      {nil, func(t *testing.T, m *Manager) { attachAs(t, m, "agent-conn", "") }, toolward.CodeNoApprovalChannel},
		"requester's device":      {nil, func(t *testing.T, m *Manager) { attachAs(t, m, "c", "token-1") }, toolward.CodeNoApprovalChannel},
		"somebody else":           {nil, func(t *testing.T, m *Manager) { attachAs(t, m, "c", "d") }, ""},
		"sign-in ended meanwhile": {nil, func(t *testing.T, m *Manager) { leaveSignedIn(t, m) }, toolward.CodeNoApprovalChannel},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := open(t, newMemory(), tt.options)
				if tt.people != nil {
					tt.people(t, m)
				}
				start := time.Now()
				a, err := m.Ask(t.Context(), question(nil))
				if tt.want != "" {
					if code(t, err) != tt.want || time.Since(start) > 100*time.Millisecond {
						t.Errorf("%v after %s, want %s at once", err, time.Since(start), tt.want)
					}
				} else if err != nil || a.Decision != toolward.NoDecision || time.Since(start) != 2*time.Minute {
					t.Errorf("%+v %v after %s, want no decision at the deadline", a, err, time.Since(start))
				}
				if m.Count() != 0 {
					t.Errorf("%d pending", m.Count())
				}
			})
		})
	}
	m := open(t, newMemory(), nil)
	if _, err := m.Attach(Approver{By: expired}); err == nil {
		t.Error("somebody who may not answer was attached as an approver")
	}
	if _, err := m.Attach(Approver{}); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("nobody was attached: %v", err)
	}
}

func attachAs(t *testing.T, m *Manager, connection, device string) {
	p, err := m.Attach(Approver{By: alice, Connection: connection, Device: device})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
}

func leaveSignedIn(t *testing.T, m *Manager) {
	p := &person{name: "carol"}
	attach(t, m, p)
	p.err = errors.New("expired")
}

// Programs that name no session do not take room from each other: each has that of its connection.
func TestLimitsWithoutASession(t *testing.T) {
	m := open(t, newMemory(), nil)
	attach(t, m, alice)
	submit := func(i int, connection string) error {
		_, err := m.Submit(t.Context(), Submission{
			Kind: KindExec, Details: Details{Tool: "exec", Title: "exec", Command: fmt.Sprint("echo ", i)}, Binding: fmt.Sprint(i), Connection: connection,
		})
		return err
	}
	for i := range 50 {
		if err := submit(i, "first"); err != nil {
			t.Fatalf("%d of one connection: %v", i, err)
		}
	}
	if err := submit(50, "first"); !errors.Is(err, ErrTooMany) {
		t.Errorf("one too many of a connection: %v", err)
	}
	if err := submit(51, "second"); err != nil {
		t.Errorf("another connection: %v", err)
	}
}

// A question may end while it is still being put to people. Nothing is read then that the end writes, which -race would see.
func TestQuestionsThatEndAtOnce(t *testing.T) {
	m := open(t, newMemory(), func(o *Options) { o.Socket, o.Settings.Socket = socketOf{true, "deny"}, true })
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			_, err := m.Submit(t.Context(), Submission{
				Kind: KindExec, Details: Details{Tool: "exec", Title: "exec", Command: fmt.Sprint("echo ", i), Severity: toolward.Warning},
				Binding: fmt.Sprint(i), Connection: fmt.Sprint(i), Timeout: time.Millisecond,
			})
			if err != nil && !errors.Is(err, ErrTooMany) && !errors.Is(err, ErrUnknown) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestLimits(t *testing.T) {
	var n int
	in := func(session toolward.SessionKey, connection string) *toolward.Question {
		n++
		return question(func(r *toolward.Request, _ *toolward.Judgment) {
			r.Call.Session, r.Call.Caller.Connection, r.Facts.Bound = session, connection, []string{fmt.Sprint(n)}
			r.Call.Detach = true
		})
	}
	pose := func(m *Manager, q *toolward.Question) error {
		_, err := m.Ask(t.Context(), q)
		var p *toolward.Pending
		if errors.As(err, &p) {
			return nil
		}
		return err
	}
	tests := map[string]struct {
		settings Settings
		fill     func(i int) *toolward.Question
		count    int
		refused  func() *toolward.Question
		allowed  func() *toolward.Question
	}{
		"per session": {
			Settings{},
			func(i int) *toolward.Question { return in("agent:coder:a", fmt.Sprint("c", i)) }, 20,
			func() *toolward.Question { return in("agent:coder:a", "new") }, func() *toolward.Question { return in("agent:coder:b", "new") },
		},
		"per connection": {
			Settings{},
			func(i int) *toolward.Question { return in(toolward.SessionKey(fmt.Sprint("agent:coder:", i)), "c") }, 50,
			func() *toolward.Question { return in("agent:coder:b", "c") }, func() *toolward.Question { return in("agent:coder:b", "d") },
		},
		"altogether": {
			Settings{Total: 5},
			func(i int) *toolward.Question {
				return in(toolward.SessionKey(fmt.Sprint("agent:coder:", i)), fmt.Sprint(i))
			}, 5,
			func() *toolward.Question { return in("agent:coder:b", "c") }, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := open(t, newMemory(), func(o *Options) { o.Settings = tt.settings })
			attach(t, m, alice)
			for i := range tt.count {
				if err := pose(m, tt.fill(i)); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
			}
			err := pose(m, tt.refused())
			if code(t, err) != toolward.CodeNoApprovalChannel || !errors.Is(err, ErrTooMany) {
				t.Errorf("one too many: %v", err)
			}
			if tt.allowed != nil {
				if err := pose(m, tt.allowed()); err != nil {
					t.Errorf("a flood takes room from others: %v", err)
				}
			}
		})
	}
}

func TestCommandTooLongToShow(t *testing.T) {
	m := open(t, newMemory(), nil)
	attach(t, m, alice)
	q := question(func(r *toolward.Request, _ *toolward.Judgment) { r.Facts.Command = strings.Repeat("x", maxCommand+1) })
	if _, err := m.Ask(t.Context(), q); code(t, err) != toolward.CodeNoApprovalChannel && code(t, err) != toolward.CodeValidation {
		t.Errorf("%v", err)
	}
	if m.Count() != 0 {
		t.Error("asked about a command nobody can read to its end")
	}
}
