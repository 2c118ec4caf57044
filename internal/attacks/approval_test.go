package attacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/identity"
)

// approvalPlay plays the steps of one case about approvals.
type approvalPlay struct {
	*world
	asked   map[string]admission // what became of each request, by its ref
	order   []string             // approvals in the order in which people were shown them
	agents  map[string]toolward.Caller
	started int    // calls of the last step that may start
	operand string // the script that the last command names
	deaf    string // who tried to overhear approvals in vain
}

func judgeApproval(t *testing.T, c *attack) (outcome, error) {
	if err := setupOnly(c, "profile", "approver"); err != nil {
		return outcome{}, err
	}
	if profile := c.Setup.text("profile"); profile != "none" {
		return outcome{}, unsupported{"profile " + profile}
	}
	p := &approvalPlay{world: newWorld(t, withPrograms, withScripts), asked: map[string]admission{}, agents: map[string]toolward.Caller{}}
	var last outcome
	for _, step := range c.Attempt.steps("steps") {
		o, err := p.step(step)
		if err != nil {
			return outcome{}, err
		}
		last = o
	}
	last.took = p.watch.longest
	if c.Want == string(contained) {
		return p.judgeEffect(c, last)
	}
	return last, nil
}

func (p *approvalPlay) step(s fields) (outcome, error) {
	switch op := s.text("op"); op {
	case "request":
		return p.request(s)
	case "resolve":
		return p.resolve(s)
	case "run":
		return p.run(s)
	case "wait":
		return p.wait(s)
	case "parallel":
		return p.parallel(s)
	case "clock":
		ms, _ := s["ms"].(float64)
		time.Sleep(time.Duration(ms) * time.Millisecond)
		return outcome{}, s.only(op, "op", "ms")
	case "restart":
		p.close()
		p.open()
		return outcome{}, s.only(op, "op")
	case "flood":
		return p.flood(s)
	case "fs":
		return p.changeFile(s)
	case "swap-under-cursor":
		return p.request(fields{"ref": s["ref"], "command": s["command"], "agent": "main", "session": "s1", "cwd": "/ws"})
	case "resolve-ui":
		return p.resolvePosition(s)
	case "set":
		return p.change(s)
	case "broadcast-check":
		return p.overhear(s)
	case "spawn":
		return p.spawn(s)
	case "call":
		return p.callTool(s)
	case "event":
		return p.forge(s)
	default:
		return outcome{}, unsupported{"approval " + op}
	}
}

// command is the call of exec that a request or a run describes.
func (p *approvalPlay) command(s fields) (toolward.Call, error) {
	if err := s.only(s.text("op")+" of a command", "op", "ref", "command", "cwd", "agent", "session", "env", "background", "host", "argv", "stdin", "shell", "profile"); err != nil {
		return toolward.Call{}, err
	}
	caller, err := p.caller(s.text("agent"), s.text("session"))
	if err != nil {
		return toolward.Call{}, err
	}
	if s.has("profile") {
		if err := p.list(caller.Agent, s.text("profile")); err != nil {
			return toolward.Call{}, err
		}
	}
	p.operand = operandOf(s.text("command"))
	args := map[string]any{"command": s["command"]}
	p.checkParameters(p.find(caller, "exec"), args)
	// What an agent adds to the call, whether exec knows such a parameter or refuses it.
	for _, name := range []string{"env", "background", "argv", "stdin", "shell"} {
		if s.has(name) {
			args[name] = s[name]
		}
	}
	call := p.newCall(caller, "exec", args)
	call.WorkDir = p.at(s.text("cwd"))
	if s.has("host") {
		call.Host = toolward.Host("node:" + s.text("host"))
	}
	return call, nil
}

// caller finds an agent of the case: "main", or one that was spawned.
func (p *approvalPlay) caller(name, session string) (toolward.Caller, error) {
	name = strings.TrimPrefix(name, "agent:")
	if name == "main" || name == "" {
		caller, _ := p.main(cmp.Or(session, "s1"))
		return caller, nil
	}
	if caller, ok := p.agents[name]; ok {
		return caller, nil
	}
	// Nobody spawned it: an agent of its own.
	caller, _ := p.main("s1")
	key, err := toolward.NewSessionKey(name, cmp.Or(session, "s1"))
	caller.Agent, caller.Owner, caller.Session, caller.Connection = strings.ToLower(name), false, key, "agent "+name
	return caller, err
}

// request asks for a command and does not wait. A second request under a ref is one under the id of the first.
func (p *approvalPlay) request(s fields) (outcome, error) {
	call, err := p.command(s)
	if err != nil {
		return outcome{}, err
	}
	ref := s.text("ref")
	call.Approval = p.asked[ref].approval
	a := p.admit(call)
	if _, again := p.asked[ref]; !again {
		p.asked[ref] = a
	}
	if a.approval != "" {
		p.order = append(p.order, a.approval)
	}
	return p.outcome(a), nil
}

// id is the approval that a ref names. A ref of nothing is taken for an id itself.
func (p *approvalPlay) id(ref string) string {
	if start, ok := strings.CutPrefix(ref, "prefix:"); ok {
		for name, a := range p.asked {
			if strings.HasPrefix(name, start) {
				return a.approval[:min(len(start), len(a.approval))]
			}
		}
	}
	if a, ok := p.asked[ref]; ok {
		return a.approval
	}
	return ref
}

// resolve answers, as op1 would after reading, or as somebody else who tries to.
func (p *approvalPlay) resolve(s fields) (outcome, error) {
	if err := s.only("resolve", "op", "ref", "decision", "by"); err != nil {
		return outcome{}, err
	}
	return p.answer(p.id(s.text("ref")), s["decision"], s.text("by"))
}

func (p *approvalPlay) answer(id string, decision any, by string) (outcome, error) {
	word, ok := decision.(string)
	if !ok {
		// What is not a text never gets through the decoding of an answer; the closest to it that does is its text.
		word = fmt.Sprint(decision)
	}
	authority, connection, err := authorityOf(by)
	if err != nil {
		return outcome{}, err
	}
	shown := p.approver.MarkShown(p.looked(id), authority)
	time.Sleep(time.Second) // to read
	p.watch.time(func() {
		_, err = p.approver.Resolve(context.Background(), approval.Response{
			ID: id, Decision: word, By: authority, Connection: connection, Shown: shown,
		})
	})
	if err != nil {
		return outcome{answer: denied, why: err.Error()}, nil
	}
	return outcome{answer: allowed}, nil
}

// looked is what a person is shown under an id; of none, nothing but the id.
func (p *approvalPlay) looked(id string) *approval.Record {
	person, err := op1()
	if err == nil {
		if r, err := p.approver.Get(context.Background(), person, id); err == nil {
			return r
		}
	}
	return &approval.Record{ID: id}
}

// authorityOf is what somebody can prove. Only op1 has signed in; whatever name others give themselves, they are
// requesters.
func authorityOf(by string) (approval.Authority, string, error) {
	switch {
	case by == "op1":
		person, err := op1()
		return person, "console", err
	case strings.HasPrefix(by, "op"):
		return nil, "", unsupported{"a second person"}
	case by == "anonymous" || by == "":
		return nil, "somewhere", nil
	}
	return identity.Requester(), by, nil
}

// resolvePosition answers what op1 saw at a place of the list: the page sends the id that it showed there.
func (p *approvalPlay) resolvePosition(s fields) (outcome, error) {
	if err := s.only("resolve-ui", "op", "position", "decision", "by"); err != nil {
		return outcome{}, err
	}
	position, _ := s["position"].(float64)
	if int(position) >= len(p.order) {
		return outcome{}, errors.New("nothing is shown there")
	}
	return p.answer(p.order[int(position)], s["decision"], s.text("by"))
}

// run uses an approval and waits for its answer, if there is none yet, to the end of its life.
func (p *approvalPlay) run(s fields) (outcome, error) {
	call, err := p.command(s)
	if err != nil {
		return outcome{}, err
	}
	call.Approval = p.id(s.text("ref"))
	return p.outcome(p.runCall(call)), nil
}

func (p *approvalPlay) runCall(call toolward.Call) admission {
	call.Detach = false
	a := p.admit(call)
	if a.answer == allowed {
		if err := a.pass.Start(); err != nil {
			return admission{answer: denied, err: err}
		}
		if err := a.pass.Close(context.Background(), toolward.OutcomeRecord{Status: toolward.StatusOK}); err != nil {
			p.t.Error(err)
		}
	}
	return a
}

// wait comes back for the answer of a request with the very call.
func (p *approvalPlay) wait(s fields) (outcome, error) {
	if err := s.only("wait", "op", "ref"); err != nil {
		return outcome{}, err
	}
	a, ok := p.asked[s.text("ref")]
	if !ok || a.answer != asked {
		return p.outcome(a), nil
	}
	person, err := op1()
	if err != nil {
		return outcome{}, err
	}
	r, err := p.approver.Get(context.Background(), person, a.approval)
	if err != nil {
		return outcome{}, err
	}
	return p.run(fields{
		"op": "run", "ref": s["ref"], "command": r.Request.Command, "cwd": strings.TrimPrefix(r.Request.WorkDir, p.root),
		"agent": r.Request.Agent, "session": strings.TrimPrefix(string(r.Request.Session), "agent:main:"),
	})
}

// parallel makes several runs at the same time.
func (p *approvalPlay) parallel(s fields) (outcome, error) {
	if err := s.only("parallel", "op", "runs"); err != nil {
		return outcome{}, err
	}
	var calls []toolward.Call
	for _, run := range s.steps("runs") {
		call, err := p.command(run)
		if err != nil {
			return outcome{}, err
		}
		call.Approval = p.id(run.text("ref"))
		calls = append(calls, call)
	}
	answers := make([]admission, len(calls))
	var group sync.WaitGroup
	for i := range calls {
		group.Go(func() { answers[i] = p.runCall(calls[i]) })
	}
	group.Wait()
	last := denied
	for _, a := range answers {
		if a.answer == allowed {
			p.started++
			last = allowed
		}
	}
	return outcome{answer: last}, nil
}

// flood asks many different questions in one session.
func (p *approvalPlay) flood(s fields) (outcome, error) {
	if err := s.only("flood", "op", "n", "session"); err != nil {
		return outcome{}, err
	}
	n, _ := s["n"].(float64)
	for i := range int(n) {
		call, err := p.command(fields{"op": "request", "command": fmt.Sprintf("echo %d", i), "cwd": "/ws", "agent": "main", "session": s["session"]})
		if err != nil {
			return outcome{}, err
		}
		p.admit(call)
	}
	return outcome{}, nil
}

// overhear is somebody without the right to answer who tries to see what waits.
func (p *approvalPlay) overhear(s fields) (outcome, error) {
	if err := s.only("broadcast-check", "op", "to"); err != nil {
		return outcome{}, err
	}
	authority, _, err := authorityOf(s.text("to"))
	if err != nil {
		return outcome{}, err
	}
	if _, err := p.approver.Subscribe(authority, 1); err == nil {
		return outcome{answer: allowed, why: "it may listen"}, nil
	}
	if list, err := p.approver.Pending(context.Background(), authority); err == nil {
		return outcome{answer: allowed, why: fmt.Sprintf("it may look at %d approvals", len(list))}, nil
	}
	p.deaf = s.text("to")
	return outcome{answer: denied}, nil
}

// change changes settings of the gateway.
func (p *approvalPlay) change(s fields) (outcome, error) {
	if err := s.only("set", "op", "approvalChannel", "security", "ask", "allow", "deny", "maxSpawnDepth", "securityLevel"); err != nil {
		return outcome{}, err
	}
	if s.has("approvalChannel") {
		if s.text("approvalChannel") != "none" {
			return outcome{}, unsupported{"approval channel " + s.text("approvalChannel")}
		}
		p.presence.Close()
	}
	for _, key := range []string{"security", "ask"} {
		if s.has(key) {
			p.set(s[key], "tools", "exec", key)
		}
	}
	for _, key := range []string{"allow", "deny"} {
		if s.has(key) {
			p.set(s[key], "tools", key)
		}
	}
	if s.has("maxSpawnDepth") {
		p.set(s["maxSpawnDepth"], "agents", "defaults", "subagents", "maxSpawnDepth")
	}
	p.compile()
	return outcome{}, p.tense(s)
}

// tense sets the level of the usual session.
func (p *approvalPlay) tense(s fields) error {
	if !s.has("securityLevel") {
		return nil
	}
	var level toolward.Level
	if err := level.UnmarshalText([]byte(s.text("securityLevel"))); err != nil {
		return err
	}
	_, key := p.main("s1")
	return p.sessions.SetFloor(context.Background(), key, level, "op1")
}

// judgeEffect compares what came of a case with its check.
func (p *approvalPlay) judgeEffect(c *attack, o outcome) (outcome, error) {
	if err := c.Check.only("check", "starts", "pending_cap_per_session", "r1", "not_received", "documented_limit"); err != nil {
		return outcome{}, err
	}
	person, err := op1()
	if err != nil {
		return outcome{}, err
	}
	list, err := p.approver.Pending(context.Background(), person)
	if err != nil {
		return outcome{}, err
	}
	perSession, pending := map[toolward.SessionKey]int{}, map[string]bool{}
	for _, r := range list {
		perSession[r.Request.Session]++
		pending[r.ID] = true
	}
	o.answer = contained
	if c.Check.flag("documented_limit") && !p.documented() {
		o.answer, o.why = harmful, "SECURITY.md does not state the limit"
	}
	if c.Check.has("not_received") && c.Check.text("not_received") != p.deaf {
		o.answer = harmful
	}
	if starts, ok := c.Check["starts"].(float64); ok && int(starts) != p.started {
		o.answer, o.why = harmful, fmt.Sprintf("%d calls started", p.started)
	}
	if c.Check.flag("pending_cap_per_session") && perSession["agent:main:s1"] > 20 {
		o.answer, o.why = harmful, fmt.Sprintf("%d approvals of one session wait", perSession["agent:main:s1"])
	}
	if c.Check.text("r1") == "pending" && !pending[p.asked["r1"].approval] {
		o.answer, o.why = harmful, "the other session's request does not wait: "+p.asked["r1"].why()
	}
	return o, nil
}
