package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/client"
)

// A question outlives the gateway that it was put to.
func TestWaitOutlivesTheGateway(t *testing.T) {
	g, ctx := newGateway(t)
	desk, agent := connect(t, g.desk("desk")), connect(t, g.dial("agent"))
	news := desk.Watch(ctx)
	asked, err := agent.AskCommand(ctx, client.Command{Text: "make"})
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan client.Answer, 1)
	go func() {
		a, err := asked.Wait(ctx)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	waiting(ctx, t, desk)
	g.restart()
	answerNext(ctx, t, desk, toolward.AllowOnce)
	if a := <-answers; a.Decision != toolward.AllowOnce || a.ID != asked.ID {
		t.Errorf("%+v", a)
	}
	for e := range news { // whoever watched is told that something was missed
		if e.Name == client.Missed {
			break
		}
	}
	if a, err := asked.Wait(ctx); err != nil || a.Decision != toolward.AllowOnce {
		t.Errorf("asked again: %+v, %v", a, err)
	}
}

// The same question under the same key is one question, also for a program that was started again; another question
// under that key is another one, so that nothing runs which nobody allowed.
func TestKey(t *testing.T) {
	g, ctx := newGateway(t)
	desk, agent := connect(t, g.desk("desk")), g.dial("agent")
	q := client.Command{Common: client.Common{Key: "nightly"}, Text: "make"}
	first, err := agent.AskCommand(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	must(agent.Close())
	agent = connect(t, g.dial("agent"))
	second, err := agent.AskCommand(ctx, q)
	if err != nil || second.ID != first.ID || len(waiting(ctx, t, desk)) != 1 {
		t.Fatalf("the same question: %+v, %v", second, err)
	}
	q.WorkDir = "/elsewhere"
	other, err := agent.AskCommand(ctx, q)
	if err != nil || other.ID == first.ID || len(waiting(ctx, t, desk)) != 2 {
		t.Fatalf("another question: %+v, %v", other, err)
	}
	shown, err := desk.Approval(ctx, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	must(resolve(ctx, desk, shown, client.Response{Decision: toolward.AllowOnce}))
	if a, err := second.Wait(ctx); err != nil || !a.Decision.Allows() {
		t.Errorf("%+v, %v", a, err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if a, err := other.Wait(short); !errors.Is(err, context.DeadlineExceeded) || a.Decision.Allows() {
		t.Errorf("the other one: %+v, %v", a, err)
	}
	if err := other.Cancel(ctx); err != nil {
		t.Error(err)
	}
	if a, err := other.Wait(ctx); err != nil || a.Decision != toolward.NoDecision {
		t.Errorf("taken back: %+v, %v", a, err)
	}
	// Another device does not get the answer, even with the same words.
	stranger := connect(t, g.dial("stranger"))
	if a, err := stranger.AskCommand(ctx, client.Command{Common: client.Common{Key: "nightly"}, Text: "make"}); err != nil || a.ID == first.ID {
		t.Errorf("%+v, %v", a, err)
	}
}

// The connection breaks while the gateway takes a question: it is put once.
func TestAskOverABrokenConnection(t *testing.T) {
	g, ctx := newGateway(t)
	desk := connect(t, g.desk("desk"))
	w := newWire(g.Address)
	t.Cleanup(w.Close)
	agent := connect(t, g.dial("agent", func(o *client.Options) { o.Address = w.Address }))
	w.lose(true, false)
	answers := make(chan client.Answer, 1)
	go func() {
		asked, err := agent.AskCommand(ctx, client.Command{Text: "make"})
		if err != nil {
			t.Error(err)
			close(answers)
			return
		}
		a, err := asked.Wait(ctx)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}()
	waiting(ctx, t, desk)
	w.mend()
	answerNext(ctx, t, desk, toolward.AllowOnce)
	if a := <-answers; a.Decision != toolward.AllowOnce {
		t.Errorf("%+v", a)
	}
	if list, err := desk.Pending(ctx); err != nil || len(list) > 0 {
		t.Errorf("it was put twice: %v, %v", list, err)
	}
}

// The connection breaks around an answer: it counts once, or the program is told that it may have.
func TestResolveOverABrokenConnection(t *testing.T) {
	g, ctx := newGateway(t)
	g.approve(connect(t, g.dial("desk")).Device())
	w := newWire(g.Address)
	t.Cleanup(w.Close)
	desk := connect(t, g.dial("desk", func(o *client.Options) { o.Address = w.Address }))
	agent := connect(t, g.dial("agent"))
	for _, arrives := range []bool{false, true} {
		asked, err := agent.AskCommand(ctx, client.Command{Text: fmt.Sprint("make ", arrives)})
		if err != nil {
			t.Fatal(err)
		}
		shown := waiting(ctx, t, desk)[0]
		time.Sleep(time.Until(shown.Created.Add(time.Second)))
		w.lose(arrives, !arrives)
		done := make(chan error, 1)
		go func() { done <- desk.Resolve(ctx, &shown, client.Response{Decision: toolward.AllowOnce}) }()
		if arrives {
			if a, err := asked.Wait(ctx); err != nil || !a.Decision.Allows() {
				t.Fatalf("%+v, %v", a, err)
			}
		} else {
			time.Sleep(50 * time.Millisecond) // for the answer to be on its way
		}
		w.mend()
		err = <-done
		if arrives {
			wants(t, "an answer that arrived", err, client.ErrLost)
		} else if err != nil {
			t.Errorf("an answer that did not arrive: %v", err)
		}
		if a, err := asked.Wait(ctx); err != nil || a.Decision != toolward.AllowOnce {
			t.Errorf("%+v, %v", a, err)
		}
		if now, err := desk.Approval(ctx, asked.ID); err != nil || now.State != approval.StateResolved || now.Decision != toolward.AllowOnce {
			t.Errorf("%+v, %v", now, err)
		}
	}
}

// Without a device a question belongs to its connection.
func TestAskWithoutADevice(t *testing.T) {
	g, ctx := newGateway(t)
	connect(t, g.desk("desk"))
	agent := connect(t, g.dial("agent", func(o *client.Options) { o.Identity = nil }))
	asked, err := agent.AskCommand(ctx, client.Command{Text: "make"})
	if err != nil {
		t.Fatal(err)
	}
	g.restart()
	a, err := asked.Wait(ctx)
	wants(t, "after the connection", err, client.ErrLost)
	if a.Decision.Allows() {
		t.Errorf("%+v", a)
	}
}
