package live_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/internal/live/scriptedmodel"
)

// claudeCode is the client itself, never part of this repository.
var claudeCode = live.Package("claude-code", "@anthropic-ai/claude-code-linux-x64", "2.1.329")

// desk is the machine of somebody who works with Claude Code.
type desk struct {
	*live.Machine
	t *testing.T
}

func newDesk(t *testing.T, config string) *desk {
	t.Helper()
	m := &desk{live.NewMachine(t, config), t}
	m.Start()
	return m
}

// onlooker is somebody at a signed-in terminal that shows calls as they come.
type onlooker struct {
	*live.Terminal
	t *testing.T
}

func (m *desk) watches() *onlooker {
	m.t.Helper()
	p := &onlooker{m.SignedIn(), m.t}
	p.Type("toolward approvals watch --json &")
	p.See(`"approvals":`)
	return p
}

// allows lets commands of a program run without a question.
func (p *onlooker) allows(program string) {
	p.t.Helper()
	if out, status := p.Run("toolward approvals allowlist add --agent claude-code " + program); status != 0 {
		p.t.Fatalf("allowlist: %d\n%s", status, out)
	}
}

// claude runs the client once, headless, with a model that makes these calls, and returns what the model was told.
func (m *desk) claude(client string, replies []scriptedmodel.Reply, arguments ...string) *scriptedmodel.Server {
	m.t.Helper()
	model := scriptedmodel.Start(scriptedmodel.Steps(replies...))
	m.t.Cleanup(model.Close)
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Minute+time.Duration(len(replies))*6*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(client, "claude"), append([]string{"-p", "go", "--output-format", "json"}, arguments...)...)
	command.Env = append(m.Environment(), "ANTHROPIC_BASE_URL="+model.URL, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	command.Dir = m.Workspace
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		m.t.Errorf("claude: %v\n%s", err, &out)
	}
	return model
}

// install puts the hook into the client's settings as a person would.
func (m *desk) install() {
	m.t.Helper()
	if out, status := m.Run("install", "claude-code", "--yes"); status != 0 {
		m.t.Fatalf("install: %d\n%s", status, out)
	}
}

// call is a single tool call of the scripted model.
func call(id, tool string, input map[string]any) scriptedmodel.Reply {
	return scriptedmodel.Reply{Calls: []scriptedmodel.ToolUse{{ID: id, Name: tool, Input: input}}}
}

// touch is a command that leaves a marker file when it runs.
func touch(id, marker string) scriptedmodel.Reply {
	return call(id, "Bash", map[string]any{"command": "touch " + marker})
}

// ran reports whether the marker is there.
func (m *desk) ran(marker string) bool {
	_, err := os.Stat(filepath.Join(m.Workspace, marker))
	return err == nil
}

// refused checks that the call left no marker and that the model was told why.
func (m *desk) refused(model *scriptedmodel.Server, id, marker, why string) {
	m.t.Helper()
	if m.ran(marker) {
		m.t.Errorf("%s ran", marker)
	}
	if r, ok := model.Result(id); !ok || !r.IsError || !strings.Contains(r.Text, why) {
		m.t.Errorf("%s: the model's next request says %q, want an error with %q", marker, r.Text, why)
	}
}

const (
	quickQuestions   = `{"teg": {"approval": {"timeoutMs": 4000}}}`
	patientQuestions = `{"teg": {"approval": {"timeoutMs": 60000}}}`
)

// TestClaudeCode runs the real client behind the real hook and the real daemon. Marker files prove what ran, and the
// scripted model's next request proves what the model was told.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	client := live.Need(t, claudeCode)

	t.Run("doctor", func(t *testing.T) {
		m := newDesk(t, "")
		m.install()
		out, status := m.Run("doctor", "--json")
		if status != 0 || !strings.Contains(out, "the hook blocks") {
			t.Errorf("status %d\n%s", status, out)
		}
		if out, status := m.Run("uninstall", "claude-code", "--yes"); status != 0 {
			t.Errorf("uninstall: %d\n%s", status, out)
		}
		if _, err := os.Stat(filepath.Join(m.Home, ".claude", "settings.json")); !os.IsNotExist(err) {
			t.Errorf("the settings file that install made is still there: %v", err)
		}
	})

	t.Run("allow and deny by policy", func(t *testing.T) {
		m := newDesk(t, "")
		m.install()
		m.write("a.txt", "hello from the workspace\n")
		m.write("key.txt", "token "+exampleKey+"\n")
		model := m.claude(client, []scriptedmodel.Reply{
			call("toolu_read", "Read", map[string]any{"file_path": "a.txt"}),
			call("toolu_self", "Read", map[string]any{"file_path": filepath.Join(m.State, "notes.txt")}),
			touch("toolu_exec", "marker"),
			call("toolu_secret", "Read", map[string]any{"file_path": "key.txt"}),
			call("toolu_list", "ListAgents", map[string]any{}),
		})
		if r, _ := model.Result("toolu_read"); r.IsError || !strings.Contains(r.Text, "hello from the workspace") {
			t.Errorf("a safe read: %+v", r)
		}
		if r, _ := model.Result("toolu_list"); r.IsError {
			t.Errorf("a tool of the client itself: %+v", r)
		}
		if r, _ := model.Result("toolu_self"); !r.IsError || !strings.Contains(r.Text, "did not run") {
			t.Errorf("a read of Toolward's own state: %+v", r)
		}
		if r, _ := model.Result("toolu_secret"); r.IsError || strings.Contains(r.Text, exampleKey) || !strings.Contains(r.Text, "token") {
			t.Errorf("a secret in a result: %+v", r)
		}
		m.refused(model, "toolu_exec", "marker", "nobody can approve it now")

		outcomes := map[string]string{}
		for _, r := range recordsIn(t, m.Machine, m.SignedIn()) {
			if r.Type == "outcome" || r.Status != "" {
				outcomes[r.CallID] = r.Status
			}
		}
		for id, want := range map[string]string{"toolu_read": "ok", "toolu_self": "denied", "toolu_exec": "denied", "toolu_secret": "ok", "toolu_list": "ok"} {
			if outcomes[id] != want {
				t.Errorf("the record says %q of %s, want %q", outcomes[id], id, want)
			}
		}
	})

	t.Run("asked and answered", func(t *testing.T) {
		m := newDesk(t, patientQuestions)
		m.install()
		p := m.watches()
		done := make(chan *scriptedmodel.Server)
		go func() {
			done <- m.claude(client, []scriptedmodel.Reply{touch("toolu_1", "allowed"), touch("toolu_2", "declined")})
		}()
		p.answers("touch allowed", "allow")
		p.answers("touch declined", "deny", "--reason", "'not today'")
		model := <-done
		if r, _ := model.Result("toolu_1"); r.IsError || !m.ran("allowed") {
			t.Errorf("an allowed call: %+v, ran %t", r, m.ran("allowed"))
		}
		m.refused(model, "toolu_2", "declined", "not today")
	})

	t.Run("asked and timed out", func(t *testing.T) {
		m := newDesk(t, quickQuestions)
		m.install()
		m.watches()
		model := m.claude(client, []scriptedmodel.Reply{touch("toolu_1", "marker")})
		m.refused(model, "toolu_1", "marker", "nobody answered in time")
	})

	t.Run("gateway stopped", func(t *testing.T) {
		m := newDesk(t, "")
		m.install()
		m.Stop()
		// The client itself would allow both.
		model := m.claude(client, []scriptedmodel.Reply{touch("toolu_1", "marker"), call("toolu_2", "Read", map[string]any{"file_path": "a.txt"})}, "--allowedTools", "Bash,Read")
		m.refused(model, "toolu_1", "marker", "toolward up")
		m.refused(model, "toolu_2", "marker", "toolward up")
	})

	t.Run("gateway killed while a call waits", func(t *testing.T) {
		m := newDesk(t, patientQuestions)
		m.install()
		p := m.watches()
		done := make(chan *scriptedmodel.Server)
		go func() { done <- m.claude(client, []scriptedmodel.Reply{touch("toolu_1", "marker")}) }()
		p.See(`touch marker`)
		m.Kill()
		m.refused(<-done, "toolu_1", "marker", "daemon stopped")
	})

	t.Run("hook killed while a call waits", func(t *testing.T) {
		m := newDesk(t, patientQuestions)
		m.install()
		p := m.watches()
		done := make(chan *scriptedmodel.Server)
		go func() { done <- m.claude(client, []scriptedmodel.Reply{touch("toolu_1", "marker")}) }()
		p.See(`touch marker`)
		m.killHook()
		m.refused(<-done, "toolu_1", "marker", "onFailure")
	})

	t.Run("the agent answers its own question", func(t *testing.T) {
		m := newDesk(t, quickQuestions)
		m.install()
		p := m.watches()
		// The agent runs in the very terminal that its person signed in to, has been allowed a script once, and even
		// knows the id of the question.
		script := "for n in 1 2 3 4 5; do toolward approvals list; toolward approvals allow $(cat id); sleep 1; done > cheat.log 2>&1\n"
		m.write("cheat.sh", script)
		model := scriptedmodel.Start(scriptedmodel.Steps(
			call("toolu_1", "Bash", map[string]any{"command": "bash cheat.sh", "run_in_background": true}),
			touch("toolu_2", "marker"),
		))
		defer model.Close()
		p.Type("cd " + m.Workspace + "; ANTHROPIC_BASE_URL=" + model.URL + " ANTHROPIC_API_KEY=none CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 " +
			filepath.Join(client, "claude") + " -p go --output-format json > claude.log 2>&1 < /dev/null &")
		p.answers("bash cheat.sh", "allow")
		m.write("id", p.asked("touch marker"))
		p.Type("wait %2; echo claude en''ded")
		p.See(`claude ended`)
		m.refused(model, "toolu_2", "marker", "did not run")
		log, err := os.ReadFile(filepath.Join(m.Workspace, "cheat.log"))
		if err != nil || bytes.Count(log, []byte("not signed in")) < 2 {
			t.Errorf("the agent did not try, or was not refused: %v\n%s", err, log)
		}
	})
}

// killHook kills the hook that waits for an answer.
func (m *desk) killHook() {
	m.t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		m.t.Fatal(err)
	}
	for _, path := range processes {
		line, _ := os.ReadFile(path)
		if !bytes.Contains(line, []byte("toolward-hook\x00claude-code\x00PreToolUse\x00--home\x00"+m.State+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			m.t.Fatal(err)
		}
		return
	}
	m.t.Fatal("no hook waits")
}

func (m *desk) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.Workspace, name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// exampleKey has the shape of a secret and is none.
const exampleKey = "AKIAIOSFODNN7EXAMPLE"

// asked waits for the question about this command and returns its id.
func (p *onlooker) asked(command string) string {
	p.t.Helper()
	return p.See(`"id": ?"([^"]+)","kind":[^\n]*"command":"` + regexp.QuoteMeta(command))[1]
}

// answers waits for the question about this command and answers it.
func (p *onlooker) answers(command, how string, more ...string) {
	p.t.Helper()
	id := p.asked(command)
	time.Sleep(600 * time.Millisecond) // an answer within half a second of the question does not count
	p.Type("toolward approvals " + how + " " + id + " " + strings.Join(more, " "))
}
