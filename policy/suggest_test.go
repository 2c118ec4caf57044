package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

// known is for calls to recipients that owners used.
var known = Surroundings{Recipients: PastRecipients{}}

// ask is a call that the default policy asks about.
func ask(t *testing.T, tool string, facts toolward.Facts, change ...func(*toolward.Request)) Answered {
	t.Helper()
	s := compile(t, Config{Around: known}, coreTools()...)
	r := &toolward.Request{
		Call: toolward.Call{
			Tool: tool, Session: "agent:coder:x", WorkDir: "/ws", Host: toolward.HostGateway, Surface: toolward.SurfaceMCP,
			Caller: toolward.Caller{Agent: "coder", Context: "main", Workspace: "/ws"},
		},
		Level: toolward.Normal, Facts: facts,
	}
	for _, c := range change {
		c(r)
	}
	r.Tool = s.Tool(tool)
	j := s.Judge(r)
	if j.Verdict != toolward.Ask {
		t.Fatalf("%s: %s, not a question", tool, j.Verdict)
	}
	return Answered{Request: r, Judged: &j, Digest: "d", Decision: toolward.AllowOnce}
}

func writes(paths ...string) toolward.Facts {
	var f toolward.Facts
	for _, p := range paths {
		f.Targets = append(f.Targets, toolward.Target{Path: p, Real: p, Op: toolward.OpWrite, Zone: "workspace", Kind: "file", Links: 1})
	}
	return f
}

func times(n int, a Answered) []Answered {
	list := make([]Answered, n)
	for i := range list {
		list[i] = a
		list[i].Record = int64(i + 1)
	}
	return list
}

func TestSuggestWantsThreeAndNoDenial(t *testing.T) {
	yes := ask(t, "write", writes("/ws/a.go"))
	no := yes
	no.Decision = toolward.DenyCall
	other := ask(t, "write", writes("/ws/a.go"), func(r *toolward.Request) { r.Call.Caller.Agent = "other" })
	for _, c := range []struct {
		name  string
		calls []Answered
		want  int
	}{
		{"nothing", nil, 0},
		{"two", times(2, yes), 0},
		{"three", times(3, yes), 1},
		{"three and a denial", append(times(3, yes), no), 0},
		{"two and one of another agent", append(times(2, yes), other), 0},
		{"critical", times(5, ask(t, "read", toolward.Facts{Targets: []toolward.Target{{Real: "/root/.ssh/id_rsa", Op: toolward.OpRead, Zone: "secret", Kind: "file"}}})), 0},
		{"a finding asks", times(5, ask(t, "write", toolward.Facts{Targets: writes("/ws/a").Targets, Findings: []toolward.Finding{{Code: "invisible_text", Effect: toolward.EffectAsk}}})), 0},
		{"lockdown", times(5, ask(t, "write", writes("/ws/a"), func(r *toolward.Request) { r.Level = toolward.Lockdown })), 0},
		{"input of a process", times(5, ask(t, "process", toolward.Facts{Action: "submit", TargetID: "p1"})), 0},
	} {
		if got := Suggest(c.calls); len(got) != c.want {
			t.Errorf("%s: %d suggestions, want %d: %+v", c.name, len(got), c.want, got)
		}
	}
}

// Every suggested rule compiles, covers the calls that it was made of, and none that differs in anything.
func TestSuggestedRulesAreNotWider(t *testing.T) {
	browse := toolward.Facts{Action: "open", BrowserOn: "host", Hosts: []string{"https://example.org:443"}, URLs: []string{"https://example.org/"}}
	for name, call := range map[string]Answered{
		"a file":     ask(t, "write", writes("/ws/src/a.go")),
		"two files":  ask(t, "write", writes("/ws/src/a.go", "/ws/lib/b.go")),
		"odd names":  ask(t, "write", writes(`/ws/src/"a' \ü.go`)),
		"an address": ask(t, "browser", browse),
		"somebody":   ask(t, "message", toolward.Facts{Action: "send", Recipients: []string{"chat:acc:bob"}}),
		"a session":  ask(t, "sessions_send", toolward.Facts{TargetID: "agent:b:main"}),
		"a move": ask(t, "write", toolward.Facts{Targets: []toolward.Target{
			{Path: "/ws/a", Real: "/ws/a", Op: toolward.OpWrite, Zone: "workspace", Kind: "file", Links: 1},
			{Path: "/ws/b", Real: "/ws/b", Op: toolward.OpDelete, Zone: "workspace", Kind: "file", Links: 1},
		}}),
		"a message with a file": ask(t, "message", toolward.Facts{Action: "send", Recipients: []string{"chat:acc:bob"}, Targets: writes("/ws/a.pdf").Targets}),
		"nobody's context":      ask(t, "write", writes("/ws/src/a.go"), func(r *toolward.Request) { r.Call.Caller.Context = "" }),
		"the owner":             ask(t, "write", writes("/ws/src/a.go"), func(r *toolward.Request) { r.Call.Caller.Owner = true }),
	} {
		t.Run(name, func(t *testing.T) {
			got := Suggest(times(3, call))
			if len(got) != 1 || got[0].Rule == nil || !slices.Equal(got[0].Records, []int64{1, 2, 3}) {
				t.Fatalf("%+v", got)
			}
			s := compile(t, Config{Around: known, TEG: TEG{Rules: []Rule{*got[0].Rule}}}, coreTools()...)
			if j := s.Judge(call.Request); j.Verdict != toolward.Allow {
				t.Errorf("%s\ndoes not cover its own calls: %s %v", got[0].Rule.When, j.Verdict, j.Reasons)
			}
			for how, change := range changes() {
				other := *call.Request
				change(&other)
				if j := s.Judge(&other); j.Verdict == toolward.Allow && how != "proven owner" {
					t.Errorf("%s\ncovers a call with %s", got[0].Rule.When, how)
				}
			}
		})
	}
}

// changes make another call of a call. That of a proven owner may pass where anybody's did.
func changes() map[string]func(*toolward.Request) {
	facts := func(change func(*toolward.Facts)) func(*toolward.Request) {
		return func(r *toolward.Request) {
			r.Facts.Targets, r.Facts.Hosts, r.Facts.Recipients = slices.Clone(r.Facts.Targets), slices.Clone(r.Facts.Hosts), slices.Clone(r.Facts.Recipients)
			change(&r.Facts)
		}
	}
	return map[string]func(*toolward.Request){
		"another agent":     func(r *toolward.Request) { r.Call.Caller.Agent = "other" },
		"a sub-agent":       func(r *toolward.Request) { r.Call.Caller.Depth = 1 },
		"another workspace": func(r *toolward.Request) { r.Call.Caller.Workspace = "/other" },
		"another host":      func(r *toolward.Request) { r.Call.Host = "node:x" },
		"another context":   func(r *toolward.Request) { r.Call.Caller.Context = "group" },
		"a chat":            func(r *toolward.Request) { r.Call.Caller.Channel, r.Call.Caller.Sender = "chat", "eve" },
		"a tense session":   func(r *toolward.Request) { r.Level = toolward.Elevated },
		"one target more": facts(func(f *toolward.Facts) {
			f.Targets = append(f.Targets, writes("/ws/zzz").Targets...)
			f.Hosts, f.Recipients = append(f.Hosts, "https://evil.example:443"), append(f.Recipients, "chat:acc:eve")
			f.TargetID += "x"
		}),
		"another target": facts(func(f *toolward.Facts) {
			for i := range f.Targets {
				f.Targets[i].Real += "x"
			}
			for i := range f.Hosts {
				f.Hosts[i] = "https://sub.example.org:443"
			}
			for i := range f.Recipients {
				f.Recipients[i] += "x"
			}
			f.TargetID += "x"
		}),
		"no target": facts(func(f *toolward.Facts) { f.Targets, f.Hosts, f.Recipients, f.TargetID = nil, nil, nil, "" }),
		"another operation": facts(func(f *toolward.Facts) {
			for i := range f.Targets {
				f.Targets[i].Op = toolward.OpDelete
			}
			if f.Targets == nil {
				f.Action += "x"
			}
		}),
		"operations exchanged": facts(func(f *toolward.Facts) {
			if len(f.Targets) != 2 || f.Targets[0].Op == f.Targets[1].Op {
				f.Action += "x" // there is nothing to exchange
				return
			}
			f.Targets[0].Real, f.Targets[1].Real = f.Targets[1].Real, f.Targets[0].Real
		}),
		"another file beside": facts(func(f *toolward.Facts) { f.Targets = append(f.Targets, writes("/ws/keys").Targets...) }),
		"another action":      facts(func(f *toolward.Facts) { f.Action += "x" }),
	}
}

func TestDirectoriesAreSuggestedForSeveralFiles(t *testing.T) {
	var calls []Answered
	for i, file := range []string{"a", "b", "c", "a", "a"} {
		call := ask(t, "write", writes("/ws/src/"+file))
		call.Record = int64(i + 1)
		calls = append(calls, call)
	}
	got := Suggest(calls)
	if len(got) != 1 || !strings.Contains(got[0].Rule.When, `pathUnder(t.real, "/ws/src")`) || len(got[0].Records) != 5 {
		t.Fatalf("%+v", got)
	}
	if n := got[0].Narrower; len(n) != 1 || !strings.Contains(n[0].Rule.When, `["/ws/src/a"]`) || len(n[0].Records) != 3 {
		t.Errorf("narrower: %+v", n)
	}
	if j := compile(t, Config{Around: known, TEG: TEG{Rules: []Rule{*got[0].Rule}}}, coreTools()...).Judge(ask(t, "write", writes("/ws/srcs/a")).Request); j.Verdict == toolward.Allow {
		t.Error("a sibling whose name begins alike is covered")
	}
	for name, files := range map[string][]string{
		"the workspace itself": {"/ws/a", "/ws/b", "/ws/c"}, "two files": {"/ws/src/a", "/ws/src/b", "/other/c"}, "two directories": {"/ws/x/a", "/ws/x/b", "/ws/y/c"},
	} {
		var calls []Answered
		for _, file := range files {
			calls = append(calls, ask(t, "write", writes(file)))
		}
		if got := Suggest(calls); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Commands, and what asks only because the session is tense, are for remembered answers: no rule can say just that.
func TestSuggestionsWithoutARule(t *testing.T) {
	for name, call := range map[string]Answered{
		"a command": ask(t, "exec", toolward.Facts{Command: "make test"}),
		"tense":     ask(t, "write", writes("/ws/a"), func(r *toolward.Request) { r.Level = toolward.Elevated }),
	} {
		got := Suggest(times(3, call))
		if len(got) != 1 || got[0].Rule != nil || !strings.Contains(got[0].Text, "exactly the same call") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
