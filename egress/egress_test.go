package egress

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/sandbox/settings"
)

func TestManyConnectionsAreOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, hosts())
		w.enter(t, "agent:coder:a")
		leaves := make(chan netguard.Leave, 20)
		for range 20 {
			go func() {
				l, err := w.connect(t.Context(), "a.example")
				if err != nil {
					t.Error(err)
				}
				leaves <- l
			}()
		}
		q := <-w.people.asked
		r := q.Request
		if r.Facts.Hosts[0] != "tcp://a.example:443" || r.Call.Surface != toolward.SurfaceSandbox || q.Judgment.Class.Severity != toolward.Warning ||
			q.Judgment.Class.Grant != toolward.GrantHost || !q.Judgment.AllowAlways || r.Call.Caller.Connection != "c" || r.Call.Run != "r" {
			t.Errorf("%+v %+v", r.Call, q.Judgment)
		}
		w.people.none(t)
		q.allow()
		for i := range 20 {
			l := <-leaves
			if err := l.Spend(10); err != nil {
				t.Error(err)
			}
			if _, over := w.audit.Outcome(1); over {
				t.Error("the call is over, and connections of it are open")
			}
			c := netguard.Connection{Sent: 10, Received: 100}
			if i == 19 {
				c = netguard.Connection{Err: errors.New("connect_error")}
			}
			l.End(c)
		}
		w.people.none(t)
		outcome, _ := w.audit.Outcome(1)
		if len(w.audit.Decisions()) != 1 || outcome.SentBytes != 190 || outcome.ResultBytes != 1900 || outcome.Status != toolward.StatusError {
			t.Errorf("%d decisions, %+v", len(w.audit.Decisions()), outcome)
		}
		// What comes later is another call, with another question.
		go func() { _, _ = w.connect(t.Context(), "a.example") }()
		(<-w.people.asked).answer <- toolward.Answer{ApprovalID: "a2", Decision: toolward.DenyCall, Reason: "not that one"}
	})
}

func TestADenialIsOneForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, hosts())
		w.enter(t, "agent:coder:a")
		failed := make(chan error, 5)
		for range 5 {
			go func() { _, err := w.connect(t.Context(), "a.example"); failed <- err }()
		}
		synctest.Wait()
		(<-w.people.asked).answer <- toolward.Answer{ApprovalID: "a1", Decision: toolward.DenyCall, Reason: "not that one"}
		for range 5 {
			refused, ok := errors.AsType[*netguard.Error](<-failed)
			if !ok || !strings.Contains(refused.Why, "a person declined it") || !strings.Contains(refused.Why, "not that one") {
				t.Errorf("%+v", refused)
			}
		}
		w.people.none(t)
	})
}

func TestTheLastWhoHangsUpWithdrawsTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, hosts())
		w.enter(t, "agent:coder:a")
		one, hangUpOne := context.WithCancel(t.Context())
		two, hangUpTwo := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{one, two} {
			go func() {
				if _, err := w.connect(ctx, "a.example"); err == nil {
					t.Error("permitted")
				}
			}()
		}
		q := <-w.people.asked
		synctest.Wait() // both wait
		withdrawn := func() bool {
			synctest.Wait()
			select {
			case <-q.ended:
				return true
			default:
				return false
			}
		}
		hangUpOne()
		if withdrawn() {
			t.Error("taken back, and somebody waits for it")
		}
		hangUpTwo()
		if !withdrawn() {
			t.Error("people are asked for nobody")
		}
		if n := len(w.way.flights); n != 0 {
			t.Errorf("%d calls are kept", n)
		}
		go func() { _, _ = w.connect(t.Context(), "a.example") }()
		(<-w.people.asked).allow()
		// Who hangs up between the yes and the connection leaves no call that goes on, whichever of the two is seen first.
		three, hangUpThree := context.WithCancel(t.Context())
		go func() {
			l, err := w.connect(three, "b.example")
			if err == nil {
				l.End(netguard.Connection{})
			}
		}()
		q = <-w.people.asked
		q.allow()
		hangUpThree()
		synctest.Wait()
		for i, decision := range w.audit.Decisions() {
			_, over := w.audit.Outcome(toolward.RecordID(i + 1))
			if decision.Facts.Hosts[0] == "tcp://b.example:443" && decision.Verdict == toolward.Allow && !over {
				t.Error("a call without connections goes on")
			}
		}
	})
}

func TestListedHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, hosts("*.example.org", "b.example:443"))
		w.enter(t, "agent:coder:a")
		for _, host := range []string{"api.example.org", "b.example"} {
			l, err := w.connect(t.Context(), host)
			if err != nil {
				t.Fatalf("%s: %v", host, err)
			}
			decision := w.audit.Decisions()[len(w.audit.Decisions())-1]
			if !slices.ContainsFunc(decision.Judgment.Reasons, func(r toolward.Reason) bool { return r.Rule == "agents.defaults.sandbox.egress.hosts" }) {
				t.Errorf("%s: the key is not named: %v", host, decision.Judgment.Reasons)
			}
			if host == "b.example" {
				w.configure(t, hosts("*.example.org")) // at once, also for what is open
				if err := l.Spend(1); err == nil {
					t.Error("bytes leave to a host that is not listed any more")
				}
			}
			l.End(netguard.Connection{})
		}
		w.configure(t, settings.Config{Network: new("egress"), Egress: settings.EgressConfig{Hosts: []string{"*.example.org"}, Unlisted: "deny"}})
		_, err := w.connect(t.Context(), "b.example")
		if refused, ok := errors.AsType[*netguard.Error](err); !ok || !strings.Contains(refused.Why, "not among the hosts") {
			t.Errorf("unlisted: %v", err)
		}
		w.people.none(t)
		w.levels.set("agent:coder:a", toolward.Elevated)
		if l, err := w.connect(t.Context(), "api.example.org"); err != nil {
			t.Errorf("elevated: %v", err)
		} else {
			l.End(netguard.Connection{})
		}
		w.levels.set("agent:coder:a", toolward.Lockdown)
		go func() { _, _ = w.connect(t.Context(), "api.example.org") }()
		if q := <-w.people.asked; q.Judgment.AllowAlways || q.Judgment.GrantOK {
			t.Error("in lockdown an answer is for ever")
		}
	})
}

func TestTheTensestSessionCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, hosts("a.example"))
		if _, err := w.connect(t.Context(), "a.example"); err == nil {
			t.Error("permitted for nobody")
		}
		calm, tense := w.enter(t, "agent:coder:calm"), w.enter(t, "agent:coder:tense")
		w.levels.set("agent:coder:tense", toolward.Lockdown)
		asked := func(when string) {
			t.Helper()
			go func() { _, _ = w.connect(t.Context(), "a.example") }()
			q := <-w.people.asked
			if q.Request.Call.Session != "agent:coder:tense" || q.Request.Level != toolward.Lockdown {
				t.Errorf("%s: in the name of %s", when, q.Request.Call.Session)
			}
			q.answer <- toolward.Answer{Decision: toolward.DenyCall}
			synctest.Wait()
		}
		asked("both at work")
		tense.Leave()
		asked("it has let go, what it started may run on")
		time.Sleep(3 * forgetAfter)
		asked("much later")
		w.levels.set("agent:coder:tense", toolward.Normal)
		if _, err := w.connect(t.Context(), "a.example"); err != nil {
			t.Error(err)
		}
		w.levels.set("agent:coder:tense", toolward.Lockdown) // it was calm when it was looked at, and is not there any more
		if _, err := w.connect(t.Context(), "a.example"); err != nil {
			t.Error(err)
		}
		w.enter(t, "agent:coder:tense").Leave()
		asked("again")
		calm.Leave()
		// Another life of the sandbox: nothing of the tense session is there.
		use, err := w.Enter(box, &toolward.Call{Session: "agent:coder:calm", Caller: toolward.Caller{Agent: "coder"}}, "")
		if err != nil {
			t.Fatal(err)
		}
		use.Started(2)
		if _, err := w.connect(t.Context(), "a.example"); err != nil {
			t.Error(err)
		}
		w.people.none(t)
	})
}

func TestEveryAgentOfASharedSandboxIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, settings.Config{Network: new("egress"), Scope: "shared", Egress: settings.EgressConfig{Hosts: []string{"a.example"}}})
		w.build(t, policy.Config{Agents: []policy.Agent{{ID: "other", Tools: visible.Tools{Deny: []string{"egress"}}}}})
		use := w.enter(t, "agent:coder:a")
		l, err := w.connect(t.Context(), "a.example")
		if err != nil {
			t.Fatal(err)
		}
		l.End(netguard.Connection{})
		w.enter(t, "agent:other:b")
		if _, err := w.connect(t.Context(), "a.example"); err == nil {
			t.Error("an agent connects by what another one may")
		}
		synctest.Wait()
		outcome, _ := w.audit.Outcome(2)
		if outcome.Status != toolward.StatusUnused {
			t.Errorf("the other agent's pass: %+v", outcome)
		}
		use.Leave()
	})
}

func TestSentLimitAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := hosts("a.example")
		c.Egress.MaxSent = "1000"
		w := newWorld(t, c)
		w.enter(t, "agent:coder:a")
		connect := func() netguard.Leave {
			t.Helper()
			l, err := w.connect(t.Context(), "a.example")
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		one, two := connect(), connect()
		if err := errors.Join(one.Spend(600), two.Spend(300)); err != nil {
			t.Fatal(err)
		}
		if err := one.Spend(200); err == nil { // it is cut, and what would still fit is not for the next one
			t.Error("more leaves than may")
		}
		one.End(netguard.Connection{Sent: 600, Err: &netguard.Error{Code: netguard.CodeSentLimit}})
		answered := make(chan netguard.Leave)
		go func() { l, _ := w.connect(t.Context(), "a.example"); answered <- l }()
		q := <-w.people.asked
		if q.Judgment.AllowAlways || q.Judgment.Findings[0].Code != findLimit {
			t.Errorf("%+v", q.Judgment)
		}
		q.allow()
		l := <-answered
		if err := l.Spend(1000); err != nil {
			t.Error(err)
		}
		if err := l.Spend(1); err == nil {
			t.Error("a person's word is for any number of bytes")
		}
		time.Sleep(spendingTime)
		if err := connect().Spend(1000); err != nil {
			t.Errorf("the next day: %v", err)
		}
	})
}

// An agent that knows the tool's name has no use of it.
func TestNobodyElseCallsTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, hosts("a.example"))
		forged := *w.Tool()
		for name, change := range map[string]func(*toolward.Call){
			"by its name": func(c *toolward.Call) {}, "as a client's": func(c *toolward.Call) { c.ByClient = true },
			"with a form like it": func(c *toolward.Call) { c.ByClient, c.Form = true, &forged },
			"without the client":  func(c *toolward.Call) { c.Form = w.Tool() },
		} {
			c := toolward.Call{
				Tool: ToolName, Arguments: []byte(`{"host":"a.example","port":443}`), Session: "agent:coder:a",
				Caller: toolward.Caller{Agent: "coder", Owner: true}, Surface: toolward.SurfaceMCP,
			}
			change(&c)
			_, err := w.gateway.Admit(t.Context(), c)
			if refusal, ok := errors.AsType[*toolward.Refusal](err); !ok || refusal.Code != toolward.CodeUnknownTool {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.people.none(t)
		if tools := w.gateway.Tools(toolward.Caller{Agent: "coder", Owner: true}); len(tools) != 0 {
			t.Errorf("%d tools are shown", len(tools))
		}
	})
}

// An answer that was given to one agent is not spent by another, which came into the sandbox while people were thinking.
func TestWhoComesWhilePeopleThinkIsAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, settings.Config{})
		w.enter(t, "agent:coder:a")
		errs := make(chan error, 2)
		connect := func() {
			leave, err := w.connect(t.Context(), "b.example")
			if leave != nil {
				leave.End(netguard.Connection{})
			}
			errs <- err
		}
		go connect()
		first := <-w.people.asked
		w.enter(t, "agent:other:x")
		go connect()
		synctest.Wait()
		first.answer <- toolward.Answer{Decision: toolward.AllowOnce, ApprovalID: "1"}
		synctest.Wait()
		select {
		case second := <-w.people.asked:
			if agent := second.Request.Call.Caller.Agent; agent != "other" {
				t.Errorf("asked for %s", agent)
			}
			second.answer <- toolward.Answer{Decision: toolward.DenyCall}
		default:
			t.Error("the other agent connects by an answer that was not about it")
		}
		for range 2 {
			if err := <-errs; err == nil {
				t.Error("it is connected")
			}
		}
	})
}
