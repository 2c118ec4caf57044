package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

func TestOtherPagesAndHelpAnswerNothing(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, question("one", "make"))
		d.press("end")
		d.reads()
		for _, keys := range [][]string{{"2", "a", "space", "enter", "1"}, {"3", "space", "enter", "1"}, {"?", "space"}, {"?", "enter"}} {
			d.press(keys...)
			d.press("space") // too soon after it came back to the screen
			d.answered()
			d.reads()
		}
		d.tell(tea.WindowSizeMsg{Width: 40, Height: 10})
		d.sees("at least 60 x 16")
		d.press("enter", "space")
		d.tell(tea.WindowSizeMsg{Width: 100, Height: 30})
		d.press("enter")
		d.answered()
		d.reads()
		d.press("enter")
		d.answered("one deny 0")
	})
}

func TestLists(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t)
		d.grants = []*approval.Grant{{ID: "g1", Agent: "coder", Text: "make in the shop"}, {ID: "g2", Agent: "coder", Text: "write docs/", Uses: 3, MaxUses: 5}}
		d.press("2")
		d.sees("Denied by owner (console)", "make⟦U+001B⟧[2J", "Allowed by policy")
		d.press("3")
		d.sees("elevated", "agent:coder:main", "content from outside, 1 source", "Anomalies within a day: 2")
		d.press("4", "down")
		d.sees("used 3 ×", "or after 2 more uses", "> coder        write docs/")
		d.press("x", "n", "x", "enter", "x", "space")
		if len(d.revoked) > 0 {
			t.Errorf("revoked %v without a yes", d.revoked)
		}
		// A list that changes below the question takes the question away.
		d.press("x")
		d.sees("Revoke this grant?")
		d.grants = d.grants[:1]
		time.Sleep(listRhythm)
		d.tell(tickMsg(time.Now()))
		d.seesNot("Revoke this grant?")
		d.press("y")
		d.press("x", "y")
		if want := []string{"g1"}; !slices.Equal(d.revoked, want) {
			t.Errorf("revoked %v, want %v", d.revoked, want)
		}
		d.sees("Revoked.", "There is nothing here.")
	})
}

func TestSandboxes(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t)
		d.sandboxes = []Sandbox{
			{Name: "one", Of: "agent:coder", State: "in use", Running: true, Sessions: []string{"agent:coder:\x1b[2Jmain"}, CPU: "52 % of 2 processors", Memory: "1.3 GiB of 4 GiB", Pids: "37 of 512", Facts: []string{"network none"}},
			{Name: "stuck", Of: "shared", State: "no answer", Odd: true, CPU: "–", Memory: "–", Pids: "–", Note: "no answer"},
		}
		d.press("5")
		d.sees("[5 Sandboxes]", "agent:coder", "1.3 GiB of 4 GiB", "52 % of 2 processors", "agent:coder:⟦U+001B⟧[2Jmain", "s: stop", "x: recreate")
		d.press("s", "n", "x", "enter", "s", "space", "s", "s")
		if len(d.ended) > 0 {
			t.Errorf("ended %v without a yes", d.ended)
		}
		d.press("s")
		d.sees("Stop one?", "Files stay", "y: yes")
		d.press("y")
		d.sees("Stopped; the next call starts it again: one")
		d.press("x")
		d.sees("Remove one, so that the next call makes it anew?")
		d.press("y")
		d.press("down", "x", "y")
		d.sees("Not ended: it does not answer")
		// A list that changes below the question takes the question away.
		d.press("x")
		d.sandboxes = d.sandboxes[:1]
		time.Sleep(listRhythm)
		d.tell(tickMsg(time.Now()))
		d.seesNot("Remove stuck")
		d.press("y")
		if want := []string{"one false", "one true", "stuck true"}; !slices.Equal(d.ended, want) {
			t.Errorf("ended %v, want %v", d.ended, want)
		}
		// The pages are named as far as the screen is wide, and each has its key.
		for width, want := range map[int]string{80: "Toolward  1 Queue  2 Decisions  3 Sessions  4 Grants [5 Sandboxes]", 60: "[5 Sandboxes]"} {
			d.tell(tea.WindowSizeMsg{Width: width, Height: 24})
			d.sees(want, "? help")
		}
	})
}

// TestHostileCall: whatever a caller writes, the screen keeps its rows and columns (check looks at each), and nothing of
// the caller's stands where the console speaks.
func TestHostileCall(t *testing.T) {
	for name, command := range map[string]string{
		"escapes":      "x\x1b[2J\x1b]0;title\x07\x1b[1;1H[ Deny ]\rAllow\b\b\u009b2J",
		"bidi":         "x \u202e dlrow \u2066 \u200b\u200d zero",
		"rows of ours": "x\n[ Deny ]     Allow once\n> 2 min 0 s\nDigest 000000000000\n" + strings.Repeat("z", 78) + "Digest 1",
		"wide":         strings.Repeat("漢字かな🔥ñ", 800),
		"marks":        "x" + strings.Repeat("\u0301", 400),
		"tabs":         strings.Repeat("a\tb", 3000),
		"no text":      "\xff\xfe\xc3(",
		"one line":     strings.Repeat("y", 16<<10),
		"many lines":   strings.Repeat("\n", 8<<10) + "rm -rf /",
	} {
		t.Run(name, func(t *testing.T) {
			at(t, func(t *testing.T) {
				one := question("one", command)
				d := one.Request
				d.Agent, d.Reasons, d.Session = command, []string{command}, toolward.SessionKey(command)
				d.Outline.Lines[0].Text, d.Variables, d.Targets = command, []string{command}, []string{command}
				d.Diff, d.WorkDir, d.Proposals[0].Text, one.Client = "+"+command, command, command, command
				p := newDesk(t, one, question("two", "ls"))
				for _, size := range [][2]int{{80, 24}, {60, 16}, {200, 60}} {
					p.tell(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
					p.press("home")
					for range 8 {
						p.press("pgdown")
					}
					p.press("end")
					p.reads()
					p.press("w", "space", "down", "down", "esc", "tab")
					if n := strings.Count(p.screen(), "\n"); n != size[1]-1 {
						t.Errorf("%d rows on a screen of %v", n+1, size)
					}
				}
				for _, text := range strings.Split(p.screen(), "\n")[5:] {
					if strings.HasPrefix(text, "> ") || strings.HasPrefix(text, "Digest 0000") || strings.HasPrefix(text, "Digest 1") {
						t.Errorf("a row of ours was forged: %q", text)
					}
				}
				p.answered()
			})
		})
	}
}

func TestQueueOrder(t *testing.T) {
	var q queue
	ids := func() (out []string) {
		for _, c := range q.calls {
			out = append(out, c.ID)
		}
		return out
	}
	for i, id := range []string{"c", "b", "a"} {
		call := question(id, id)
		call.CreatedMs = int64(10 - i)
		q.put(call)
	}
	if got := ids(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("order %v", got)
	}
	again := question("b", "other")
	again.CreatedMs = 9
	q.put(again)
	if got := ids(); !slices.Equal(got, []string{"a", "b", "c"}) || q.calls[1].Request.Command != "other" {
		t.Errorf("after a replacement: %v", got)
	}
	if !q.drop("a") || q.drop("a") || q.index("b") != 0 {
		t.Errorf("after dropping: %v", ids())
	}
}

// TestFollow: the follower tries again by itself, and waits for a sign-in where there is none.
func TestFollow(t *testing.T) {
	at(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ends := []error{errors.New("gone"), errors.New("gone"), ErrNotSignedIn, errors.New("gone")}
		g := &followed{ends: ends}
		again := make(chan struct{}, 1)
		var got []string
		go follow(ctx, g, again, func(m tea.Msg) { got = append(got, fmt.Sprintf("%T", m)) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if g.calls != 3 {
			t.Errorf("followed %d times while signed out, want 3", g.calls)
		}
		again <- struct{}{}
		time.Sleep(time.Minute)
		synctest.Wait()
		if g.calls != 5 {
			t.Errorf("followed %d times in all, want 5", g.calls)
		}
		want := "tui.awayMsg tui.awayMsg tui.signedOutMsg tui.awayMsg tui.newsMsg"
		if text := strings.Join(got, " "); text != want {
			t.Errorf("told %s, want %s", text, want)
		}
	})
}

type followed struct {
	desk
	ends  []error
	calls int
}

func (f *followed) Follow(ctx context.Context, tell func(Event)) error {
	f.calls++
	if f.calls <= len(f.ends) {
		return f.ends[f.calls-1]
	}
	tell(Event{Sync: true})
	<-ctx.Done()
	return ctx.Err()
}
