package live_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// freeWrites is the configuration under which writes inside the workspace run without asking, so that a bad call
// that got through would leave its marker.
const freeWrites = `{"teg": {"preset": "workspace", "approval": {"timeoutMs": 30000}}}`

// TestBadMessages sends what no client should. Every message is answered with what is wrong with it, nothing runs,
// and the connection goes on. What got as far as being a call is in the record.
func TestBadMessages(t *testing.T) {
	t.Parallel()
	g := newGuardedMachine(t, freeWrites)
	marker := filepath.Join(g.Workspace, "marker")
	deep := strings.Repeat("[", 80) + strings.Repeat("]", 80)
	abyss := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	write := func(arguments string) string { return toolCall("write", arguments) }
	cases := []struct {
		name, message, said string
		code                string // of the record; "" for what is no call
	}{
		{"cut off", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"marker"`, "-32700 parse error", ""},
		{"no JSON", `write marker`, "-32700 parse error", ""},
		{"two values", `{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}`, "-32700 parse error", ""},
		{"a batch", `[` + write(`{"path":"marker","content":"x"}`) + `]`, "batches are not supported", ""},
		{"a text", `"write"`, "must be one JSON object", ""},
		{"no version", `{"id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"marker","content":"x"}}}`, "-32600", ""},
		{"key twice in the message", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"write","arguments":{"path":"marker","content":"x"}}}`, `key "method" appears twice`, ""},
		{"name twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"write","arguments":{"path":"marker","content":"x"}}}`, `key "name" appears twice`, ""},
		{"longer than a message may be", write(`{"path":"marker","content":"` + strings.Repeat("x", 5<<20) + `"}`), "message is longer than 4194304 bytes", ""},
		{"deeper than any reader goes", write(`{"path":"marker","content":` + abyss + `}`), "-32700 parse error", ""},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"tools/steal","params":{}}`, "tools/steal", ""},
		{"unknown tool", toolCall("format_disk", `{}`), "unknown_tool", "unknown_tool"},
		{"tool without a name", toolCall("", `{}`), "unknown_tool", "unknown_tool"},
		{"arguments too large", write(`{"path":"marker","content":"` + strings.Repeat("x", 1<<20) + `"}`), "invalid_args", "invalid_args"},
		{"arguments too deep", write(`{"path":"marker","content":"x","more":` + deep + `}`), "invalid_args", "invalid_args"},
		{"arguments in a list", write(`["marker","x"]`), "invalid_args", "invalid_args"},
		{"arguments in a text", write(`"{\"path\":\"marker\",\"content\":\"x\"}"`), "invalid_args", "invalid_args"},
		{"wrong type", write(`{"path":["marker"],"content":"x"}`), "path", "invalid_args"},
		{"number for a text", write(`{"path":"marker","content":5}`), "content", "invalid_args"},
		{"missing", write(`{"path":"marker"}`), "content", "invalid_args"},
		{"undeclared", write(`{"path":"marker","content":"x","force":true}`), "force", "invalid_args"},
		{"declared in other letters", write(`{"path":"other","Path":"marker","content":"x"}`), "Path", "invalid_args"},
		{"key twice", write(`{"path":"other","path":"marker","content":"x"}`), "invalid_args", "invalid_args"},
		{"key twice, once escaped", write(`{"path":"other","p\u0061th":"marker","content":"x"}`), "invalid_args", "invalid_args"},
		{"NUL", write(`{"path":"marker\u0000.txt","content":"x"}`), "invalid_args", "invalid_args"},
		{"NUL in a command", toolCall("exec", `{"command":"touch marker\u0000"}`), "invalid_args", "invalid_args"},
		{"half a surrogate pair", write(`{"path":"marker","content":"\ud83d"}`), "invalid_args", "invalid_args"},
		{"half a surrogate pair in a key", write(`{"path":"marker","content":"x","\udc00":1}`), "invalid_args", "invalid_args"},
		{"no UTF-8", write("{\"path\":\"marker\",\"content\":\"\xff\xfe\"}"), "invalid_args", "invalid_args"},
		{"blank path", write(`{"path":" ","content":"x"}`), "path", "invalid_args"},
		{"prototype", write(`{"path":"marker","content":"x","__proto__":{}}`), "invalid_args", "invalid_args"},
	}
	wires := map[string]wire{"stdio": dialStdio(t, g.Machine, "coder"), "http": dialHTTP(t, g.URL, g.token)}
	recorded := len(g.records(t))
	for _, c := range cases {
		for face, w := range wires {
			t.Run(c.name+" over "+face, func(t *testing.T) {
				r, err := w.send(t.Context(), c.message)
				if err != nil {
					t.Fatal(err)
				}
				if !r.refused() || !strings.Contains(r.said(), c.said) {
					t.Errorf("answered %.300q, want a refusal with %q", r.said(), c.said)
				}
				mustNotExist(t, marker)
				if ping, err := w.send(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil || ping.Error != nil {
					t.Fatalf("the connection does not go on: %v %+v", err, ping)
				}
			})
		}
	}
	var want []string
	for _, c := range cases {
		if c.code != "" {
			want = append(want, c.code, c.code) // over each face
		}
	}
	var got []string
	for _, r := range g.records(t)[recorded:] {
		if r.Type == "decision" {
			got = append(got, r.Code)
			if r.Verdict != "deny" {
				t.Errorf("a bad call has the record %+v", r)
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the record has\n%v, want\n%v", got, want)
	}
}

// answered is how a call ended.
type answered struct {
	*reply
	err error
}

// asking runs a call that waits for people.
func asking(ctx context.Context, w wire, tool, arguments string) <-chan answered {
	done := make(chan answered, 1)
	go func() {
		r, err := w.send(ctx, toolCall(tool, arguments))
		done <- answered{r, err}
	}()
	return done
}

// answer waits for the end of a call.
func answer(t *testing.T, call <-chan answered) *reply {
	t.Helper()
	select {
	case a := <-call:
		if a.err != nil {
			t.Fatal(a.err)
		}
		return a.reply
	case <-time.After(time.Minute):
		t.Fatal("the call does not end")
	}
	return nil
}

// touching is the argument of an exec that leaves a marker.
func touching(marker string) string { return `{"command":"touch ` + marker + `"}` }

// TestVanishingClients: the question of a client that goes away is taken back, and an answer to it changes nothing.
func TestVanishingClients(t *testing.T) {
	t.Parallel()
	g := newGuardedMachine(t, freeWrites)
	g.terminal.Watch()
	for _, face := range []string{"stdio", "http", "http, newest protocol"} {
		t.Run(face, func(t *testing.T) {
			ctx, vanish := context.WithCancel(t.Context())
			defer vanish()
			gone := make(chan error, 1)
			marker := strings.ReplaceAll(strings.ReplaceAll(face, " ", "-"), ",", "")
			switch face {
			case "stdio":
				w := dialStdio(t, g.Machine, "coder")
				go func() { _, err := w.send(ctx, toolCall("exec", touching(marker))); gone <- err }()
			case "http":
				w := dialHTTP(t, g.URL, g.token)
				go func() { _, err := w.send(ctx, toolCall("exec", touching(marker))); gone <- err }()
			default:
				// The first round leaves the question open; the second waits, and its client goes.
				w := newestHTTP(t, g.URL, g.token)
				first, err := w.call(ctx, "exec", touching(marker), "")
				if err != nil || first.Result.RequestState == "" {
					t.Fatalf("first round: %v, %+v", err, first)
				}
				go func() { _, err := w.call(ctx, "exec", touching(marker), first.Result.RequestState); gone <- err }()
				time.Sleep(300 * time.Millisecond) // until the second round has arrived
			}
			id := g.pending(t)
			vanish()
			if err := <-gone; err == nil {
				t.Fatal("the client got an answer")
			}
			g.mustEnd(t)
			out, status := g.terminal.Run("toolward approvals allow " + id)
			if status != 1 || !strings.Contains(out, "toolward:") {
				t.Errorf("allow after the end: %d\n%s", status, out)
			}
			mustNotExist(t, filepath.Join(g.Workspace, marker))
		})
	}
	for _, r := range decisions(g.records(t), "exec") {
		if r.Verdict != "deny" {
			t.Errorf("the call of a client that had gone has the record %+v", r)
		}
	}
}

// TestTwoApprovers: of two people who answer at once one counts, the other is told, and the call runs at most once.
func TestTwoApprovers(t *testing.T) {
	t.Parallel()
	g := newGuardedMachine(t, freeWrites)
	g.terminal.Watch()
	second := g.SignedIn()
	w := dialStdio(t, g.Machine, "coder")
	for i, answers := range [][2]string{{"allow", "deny"}, {"allow", "allow"}, {"deny", "allow"}} {
		name := fmt.Sprintf("runs-%d", i)
		wait := asking(t.Context(), w, "exec", `{"command":"echo x >> `+name+`"}`)
		id := g.pending(t)
		time.Sleep(unread)
		g.terminal.Type("toolward approvals " + answers[0] + " " + id + "; echo done=$?")
		second.Type("toolward approvals " + answers[1] + " " + id + "; echo done=$?")
		a, b := g.terminal.See(`(?s)(.*)done=(\d+)\n`), second.See(`(?s)(.*)done=(\d+)\n`)
		r := answer(t, wait)
		winner, loser := a, b
		won := answers[0]
		if a[2] != "0" {
			winner, loser, won = b, a, answers[1]
		}
		if winner[2] != "0" || loser[2] != "1" || !strings.Contains(loser[1], "toolward: ") {
			t.Errorf("%v: the answers ended with %q and %q; want one that counts and one that is told so", answers, a, b)
		}
		runs, _ := os.ReadFile(filepath.Join(g.Workspace, name))
		if ran := len(runs) / 2; ran != map[string]int{"allow": 1, "deny": 0}[won] || r.Result.IsError != (won == "deny") {
			t.Errorf("%v: %s came first, the call ran %d times and was answered %q", answers, won, ran, r.said())
		}
	}
	g.records(t)
}

// TestForeignApprovals: what was approved for one client, session or call is worth nothing for another.
func TestForeignApprovals(t *testing.T) {
	t.Parallel()
	g := newGuardedMachine(t, freeWrites)
	g.terminal.Watch()
	other, status := g.terminal.Run("toolward token create --agent coder --workspace " + g.Workspace + " 2> /dev/null")
	if status != 0 {
		t.Fatalf("token create: %d\n%s", status, other)
	}
	mine, theirs := newestHTTP(t, g.URL, g.token), newestHTTP(t, g.URL, other)
	first, err := mine.call(t.Context(), "exec", touching("mine"), "")
	if err != nil || first.Result.RequestState == "" {
		t.Fatalf("first round: %v, %+v", err, first)
	}
	state := first.Result.RequestState
	id := g.pending(t)
	time.Sleep(unread)
	if out, status := g.terminal.Run("toolward approvals allow " + id[:8]); status != 0 {
		t.Fatalf("allow: %d\n%s", status, out)
	}
	for _, c := range []struct {
		name             string
		wire             *httpWire
		arguments, state string
		said             string
	}{
		{"another token", theirs, touching("mine"), state, "it belongs to another client"},
		{"another command", mine, touching("yours"), state, "the call is not the one that was asked about"},
		{"a changed state", mine, touching("mine"), "A" + state[1:], "it was not made here"},
		{"the id alone", mine, touching("mine"), id, "it was not made here"},
	} {
		r, err := c.wire.call(t.Context(), "exec", c.arguments, c.state)
		if err != nil || !r.refused() || !strings.Contains(r.said(), c.said) {
			t.Errorf("%s: %v, %+v; want a refusal with %q", c.name, err, r, c.said)
		}
		mustNotExist(t, filepath.Join(g.Workspace, "mine"))
		mustNotExist(t, filepath.Join(g.Workspace, "yours"))
	}
	if r, err := mine.call(t.Context(), "exec", touching("mine"), state); err != nil || r.refused() {
		t.Errorf("the right call: %v, %+v", err, r)
	}
	if _, err := os.Stat(filepath.Join(g.Workspace, "mine")); err != nil {
		t.Error(err)
	}
	// Once is once: the same state does not run it again.
	if err := os.Remove(filepath.Join(g.Workspace, "mine")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if r, err := mine.call(ctx, "exec", touching("mine"), state); err == nil && !r.refused() {
		t.Errorf("a used answer: %+v", r)
	}
	mustNotExist(t, filepath.Join(g.Workspace, "mine"))
	g.records(t)
}

// TestAgentsAnswerNothing: an agent that may run commands, even one started from the signed-in terminal, can neither
// answer nor sign in.
func TestAgentsAnswerNothing(t *testing.T) {
	t.Parallel()
	g := newGuardedMachine(t, freeWrites)
	g.terminal.Watch()
	w := dialStdio(t, g.Machine, "coder")
	wait := asking(t.Context(), w, "exec", touching("forbidden"))
	id := g.pending(t)
	time.Sleep(unread)
	for _, command := range []string{
		"bash -c 'toolward approvals allow " + id + "; exit $?'",
		"sh -c 'toolward approvals allow " + id + "; exit $?'",
		"perl -e 'exit system(qw(toolward approvals allow " + id + ")) >> 8'", // perl is in every Debian
		"setsid --wait toolward approvals allow " + id,
		"bash -c 'toolward login --passphrase-stdin <<< \"" + live.Passphrase + "\"; exit $?'",
		"bash -c 'toolward token create --agent x --workspace /usr; exit $?'",
		"bash -c 'toolward config apply --yes; exit $?'",
		"bash -c 'toolward approvals watch; exit $?'",
	} {
		if out, status := g.terminal.Run(command); status != 77 && !strings.Contains(out, "sign") {
			t.Errorf("%s: %d\n%s", command, status, out)
		}
	}
	if out, status := g.Run("approvals", "allow", id); status != 77 {
		t.Errorf("without a terminal: %d\n%s", status, out)
	}
	mustNotExist(t, filepath.Join(g.Workspace, "forbidden"))

	// The agent asks for the very command: it is refused unasked. Where analysis does not see it, a person who says yes
	// still gives nothing away.
	answers := []string{"toolward approvals allow " + id, "echo '" + live.Passphrase + "' | toolward login --passphrase-stdin"}
	for _, command := range answers {
		call := asking(t.Context(), dialStdio(t, g.Machine, "coder"), "exec", `{"command":"`+command+`"}`)
		if r := answer(t, call); !r.refused() {
			t.Errorf("%s: %q", command, r.said())
		}
	}
	for _, command := range answers {
		call := asking(t.Context(), dialStdio(t, g.Machine, "coder"), "exec", `{"command":"for once in 1; do `+command+`; done"}`)
		other := g.pending(t, id)
		time.Sleep(unread)
		if out, status := g.terminal.Run("toolward approvals allow " + other); status != 0 {
			t.Errorf("allow: %d\n%s", status, out)
		}
		if r := answer(t, call); !strings.Contains(r.said(), "sign") {
			t.Errorf("%s: %q", command, r.said())
		}
		mustNotExist(t, filepath.Join(g.Workspace, "forbidden"))
	}
	if out, status := g.terminal.Run("toolward approvals deny " + id + " --reason no"); status != 0 {
		t.Errorf("deny: %d\n%s", status, out)
	}
	if r := answer(t, wait); !r.refused() {
		t.Errorf("denied: %q", r.said())
	}
	g.records(t)
}
