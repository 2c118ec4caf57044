package approval

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

// gate is a real gateway that asks a real manager about every call of its one tool.
type gate struct {
	*toolward.Gateway
	manager *Manager
	policy  *gatetest.Policy
	// analysis is what is known of every command; nil for nothing.
	analysis *toolward.CommandAnalysis
	ran      atomic.Int64
}

func newGate(t *testing.T, store Store, change func(*Options)) *gate {
	t.Helper()
	g := &gate{manager: open(t, store, change)}
	tool := &toolward.Tool{Name: "exec", Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
		g.ran.Add(1)
		return toolward.TextResult("ran"), nil
	}}
	tool.Facts = func(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
		return toolward.Facts{Command: r.Params.Text("command"), Mutates: true, Analysis: g.analysis}, nil
	}
	h := gatetest.New(t, toolward.Ask, tool)
	g.policy = h.Policy
	g.Gateway = h.With(t, func(c *toolward.Config) { c.Approver = g.manager })
	return g
}

func command(text string, change func(*toolward.Call)) toolward.Call {
	raw, _ := json.Marshal(map[string]any{"command": text})
	c := toolward.Call{
		ID: "1", Run: "run", Tool: "exec", Arguments: raw, Session: "agent:main:s1", WorkDir: "/ws", Host: toolward.HostGateway,
		Caller: toolward.Caller{Agent: "main", Context: "main", Connection: "agent", Device: "token"},
	}
	if change != nil {
		change(&c)
	}
	return c
}

// TestApproveOneRunAnother is the heart of the matter: what was approved is what runs, once, for the one who asked.
func TestApproveOneRunAnother(t *testing.T) {
	const asked = "deploy.sh --prod"
	tests := map[string]struct {
		decision string
		between  func(*testing.T, *gate, string)
		text     string
		change   func(*toolward.Call)
		wants    int // runs
	}{
		"the plain approved run":   {"allow-once", nil, asked, nil, 1},
		"denied":                   {"deny", nil, asked, nil, 0},
		"appended command":         {"allow-once", nil, asked + "; id", nil, 0},
		"trailing space":           {"allow-once", nil, asked + " ", nil, 0},
		"invisible suffix":         {"allow-once", nil, asked + "\u200b", nil, 0},
		"other directory":          {"allow-once", nil, asked, func(c *toolward.Call) { c.WorkDir = "/tmp/evil" }, 0},
		"other session":            {"allow-once", nil, asked, func(c *toolward.Call) { c.Session = "agent:main:s2" }, 0},
		"other host":               {"allow-once", nil, asked, func(c *toolward.Call) { c.Host = "node:b" }, 0},
		"other device":             {"allow-once", nil, asked, func(c *toolward.Call) { c.Caller.Device = "token-2" }, 0},
		"other agent":              {"allow-once", nil, asked, func(c *toolward.Call) { c.Caller.Agent, c.Session = "sub", "agent:sub:s1" }, 0},
		"a deny is not overturned": {"deny", func(_ *testing.T, g *gate, id string) { _, _ = answer(g.manager, alice, id, "allow-once") }, asked, nil, 0},
		"answer after the deadline": {"", func(_ *testing.T, g *gate, id string) {
			time.Sleep(2 * time.Minute)
			_, _ = answer(g.manager, alice, id, "allow-once")
		}, asked, nil, 0},
		"used after the deadline": {"allow-once", func(*testing.T, *gate, string) { time.Sleep(2 * time.Minute) }, asked, nil, 0},
		"nobody answered":         {"", func(*testing.T, *gate, string) { time.Sleep(2 * time.Minute) }, asked, nil, 0},
		"answered by its requester": {"", func(_ *testing.T, g *gate, id string) {
			answerAs(g.manager, id, "agent", "")
			time.Sleep(2 * time.Minute)
		}, asked, nil, 0},
		"answered by its own device": {"", func(_ *testing.T, g *gate, id string) {
			answerAs(g.manager, id, "x", "token")
			time.Sleep(2 * time.Minute)
		}, asked, nil, 0},
		"near-miss word": {"", func(_ *testing.T, g *gate, id string) {
			_, _ = answer(g.manager, alice, id, "allow_once")
			time.Sleep(2 * time.Minute)
		}, asked, nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, newMemory(), nil)
				attach(t, g.manager, alice)
				_, err := g.Admit(t.Context(), command(asked, func(c *toolward.Call) { c.Detach = true }))
				var p *toolward.Pending
				if !errors.As(err, &p) {
					t.Fatal(err)
				}
				if tt.decision != "" {
					if _, err := answer(g.manager, alice, p.ID, tt.decision); err != nil {
						t.Fatal(err)
					}
				}
				if tt.between != nil {
					tt.between(t, g, p.ID)
				}
				for range 2 { // also as a replay
					_, err = g.Call(t.Context(), command(tt.text, func(c *toolward.Call) {
						c.Approval, c.Detach = p.ID, true
						if tt.change != nil {
							tt.change(c)
						}
					}))
				}
				if g.ran.Load() != int64(tt.wants) {
					t.Errorf("ran %d times, want %d (last: %v)", g.ran.Load(), tt.wants, err)
				}
			})
		})
	}
}

func answerAs(m *Manager, id, connection, device string) {
	stamp := m.MarkShown(looked(m, alice, id), alice)
	time.Sleep(time.Second)
	_, _ = m.Resolve(context.Background(), Response{ID: id, Decision: "allow-once", By: alice, Shown: stamp, Connection: connection, Device: device})
}

// TestModelIsToldWhatAPersonSaid checks the answer that reaches the model.
func TestModelIsToldWhatAPersonSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, newMemory(), nil)
		attach(t, g.manager, alice)
		errs := make(chan error, 1)
		go func() {
			_, err := g.Call(t.Context(), command("rm -r build", nil))
			errs <- err
		}()
		synctest.Wait()
		r := only(t, g.manager)
		stamp := g.manager.MarkShown(r, alice)
		time.Sleep(time.Second)
		if _, err := g.manager.Resolve(t.Context(), Response{ID: r.ID, Decision: "deny", Reason: "keep the build", By: alice, Shown: stamp}); err != nil {
			t.Fatal(err)
		}
		err := <-errs
		raw, _ := json.Marshal(err)
		if code(t, err) != toolward.CodeDeniedByUser || !strings.Contains(string(raw), "keep the build") || g.ran.Load() != 0 {
			t.Errorf("%s, ran %d", raw, g.ran.Load())
		}
	})
}

// TestAlwaysRunsLaterCallsOfTheSameKindOnly goes through the gateway: exactly this command, and nothing near it.
func TestAlwaysRunsLaterCallsOfTheSameKindOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, newMemory(), nil)
		presence := attach(t, g.manager, alice)
		done := make(chan error, 1)
		go func() {
			_, err := g.Call(t.Context(), command("git status", nil))
			done <- err
		}()
		synctest.Wait()
		if _, err := answer(g.manager, alice, only(t, g.manager).ID, "allow-always"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || g.ran.Load() != 1 {
			t.Fatalf("%v, ran %d", err, g.ran.Load())
		}
		presence.Close() // from here on whatever asks is refused at once
		if _, err := g.Call(t.Context(), command("git status", nil)); err != nil || g.ran.Load() != 2 {
			t.Errorf("the same command: %v, ran %d", err, g.ran.Load())
		}
		for _, text := range []string{"git -c core.pager=id log", "git status ", "git  status", "id", "sh -c 'git status'"} {
			if _, err := g.Call(t.Context(), command(text, nil)); code(t, err) != toolward.CodeNoApprovalChannel {
				t.Errorf("%q: %v", text, err)
			}
		}
		if g.ran.Load() != 2 {
			t.Errorf("ran %d", g.ran.Load())
		}
	})
}

// TestAlwaysForCommandsCoversTheCallsThatWaitedWithIt: what "always" has added to the allowlist lets the identical calls run
// that shared its prompt; what it has not is asked about once more.
func TestAlwaysForCommandsCoversTheCallsThatWaitedWithIt(t *testing.T) {
	for _, tt := range []struct {
		name      string
		decision  string
		uncovered bool // by what was saved
		ran       int
		asks      int // once more
	}{
		{"always", "allow-always", false, 3, 0},
		{"always, of something else", "allow-always", true, 1, 1},
		{"once", "allow-once", false, 1, 1},
		{"deny", "deny", false, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				list := &allowlist{}
				g := newGate(t, newMemory(), func(o *Options) { o.Remember = list.remember })
				g.analysis = &toolward.CommandAnalysis{Understood: true, Always: []toolward.CommandEntry{gitReads}}
				g.policy.JudgeFunc = func(r *toolward.Request) toolward.Judgment {
					list.mu.Lock()
					defer list.mu.Unlock()
					j := toolward.Judgment{Verdict: toolward.Ask, GrantOK: true, AllowAlways: true}
					j.Class.Grant, j.Class.Severity = toolward.GrantExec, toolward.Info
					if len(list.saved) > 0 && !tt.uncovered {
						j.Verdict, j.Listed = toolward.Allow, true
					}
					return j
				}
				attach(t, g.manager, alice)
				done := make(chan error, 3)
				for range 3 {
					go func() {
						_, err := g.Call(t.Context(), command("git status", nil))
						done <- err
					}()
				}
				synctest.Wait()
				r := only(t, g.manager)
				if _, err := answer(g.manager, alice, r.ID, tt.decision); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if g.ran.Load() != int64(tt.ran) || g.manager.Count() != tt.asks {
					t.Errorf("ran %d, %d ask once more; want %d, %d", g.ran.Load(), g.manager.Count(), tt.ran, tt.asks)
				}
				for range tt.ran {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestOnlyWhatPeopleLeftUnansweredRunsUnanswered: the operator's word about questions that nobody answers does not count for
// one that was taken back, nor for one that was never put.
func TestOnlyWhatPeopleLeftUnansweredRunsUnanswered(t *testing.T) {
	for name, tt := range map[string]struct {
		approval string // that the call comes back for
		between  func(*gate)
		ran      int64
	}{
		"the deadline passed":      {"", func(*gate) { time.Sleep(2 * time.Minute) }, 1},
		"a person took it back":    {"", func(g *gate) { g.manager.Expire(onlyID(t, g), ByCanceled) }, 0},
		"its asker is gone":        {"", func(g *gate) { g.manager.Expire(onlyID(t, g), ByRequesterGone) }, 0},
		"an approval nobody knows": {"0123456789abcdef", func(*gate) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, newMemory(), nil)
				g.policy.JudgeFunc = func(*toolward.Request) toolward.Judgment {
					return toolward.Judgment{Verdict: toolward.Ask, Unanswered: true}
				}
				attach(t, g.manager, alice)
				done := make(chan error, 1)
				go func() {
					_, err := g.Call(t.Context(), command("git status", func(c *toolward.Call) { c.Approval = tt.approval }))
					done <- err
				}()
				synctest.Wait()
				tt.between(g)
				if err := <-done; g.ran.Load() != tt.ran || (err == nil) != (tt.ran == 1) {
					t.Errorf("ran %d, %v", g.ran.Load(), err)
				}
			})
		})
	}
}

func onlyID(t *testing.T, g *gate) string { return only(t, g.manager).ID }
