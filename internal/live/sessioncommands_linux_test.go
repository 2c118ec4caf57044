package live_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// sessionList says of each command what is compared.
const sessionList = "testdata/sessioncommands.txt"

type sessionCommand struct{ text, expect, reason string }

type sessionResult struct {
	status int
	said   string
}

// ofTheMoment is what is another each time, besides tookTime and hashes.
var ofTheMoment = regexp.MustCompile(`duration_ms:? [\d.]+|\b[\d.]+m?s\b|\d{4}-\d\d-\d\d[T ][\d:_]+|\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}|_logs/\S+`)

var sessionLine = regexp.MustCompile(`^(same|status|differs \(([^)]+)\)) (.+)$`)

func sessionCommands(t *testing.T) (list []sessionCommand) {
	t.Helper()
	known, err := os.ReadFile("../../command/testdata/sessions.txt")
	raw, err2 := os.ReadFile(sessionList)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		m := sessionLine.FindStringSubmatch(line)
		if m == nil || !regexp.MustCompile(`(?m)^(allow|ask) `+regexp.QuoteMeta(m[3])+`$`).Match(known) {
			t.Fatalf("not a line, or not in sessions.txt: %s", line)
		}
		expect, _, _ := strings.Cut(m[1], " ")
		list = append(list, sessionCommand{strings.ReplaceAll(m[3], "␤", "\n"), expect, m[2]})
	}
	return list
}

// sessionDesk is a machine with the project of these commands.
type sessionDesk struct {
	*live.Machine
	t *testing.T
	n int
}

func newSessionDesk(t *testing.T, config string) *sessionDesk {
	t.Helper()
	m := &sessionDesk{Machine: live.NewQuickMachine(t, config), t: t} // each of hundreds of hooks would wait a second at its end
	(&desk{m.Machine, t}).lendGoCache()
	own := filepath.Join(m.Home, ".local", "bin")
	python, err := exec.LookPath("python3")
	if err := errors.Join(err, os.MkdirAll(own, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(python, filepath.Join(own, "python")); err != nil {
		t.Fatal(err)
	}
	m.Extra = append(m.Extra, "PATH="+own+":"+filepath.Dir(m.Program("toolward"))+":"+os.Getenv("PATH"), "GOTOOLCHAIN=local", "GOPROXY=off",
		"npm_config_offline=true", "npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false", "PYTHONDONTWRITEBYTECODE=1")
	writeFile(t, filepath.Join(m.Home, ".gitconfig"), "[user]\n\tname = A Person\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n[core]\n\tpager = cat\n")
	if err := os.Mkdir(filepath.Join(m.Home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(m.Home, ".ssh", "config"), "Host x\n")
	script, err := filepath.Abs("testdata/sessionproject.sh")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := m.Command("bash", script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return m
}

// told is what a client's shell shows of a command, and its status. Both are without what is of this home and this moment.
func (m *sessionDesk) told(command string) sessionResult {
	c := m.Command("/bin/bash", "-c", command)
	c.SysProcAttr.Setpgid = true
	var out bytes.Buffer
	c.Stdout, c.Stderr, c.WaitDelay = &out, &out, 10*time.Second
	if err := c.Start(); err != nil {
		return sessionResult{-1, err.Error()}
	}
	late := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }) // of our own group only
	defer late.Stop()
	_ = c.Wait() // its status says it
	said := strings.ReplaceAll(out.String(), m.Home, "HOME")
	said = ofTheMoment.ReplaceAllString(tookTime.ReplaceAllString(said, "TIME"), "TIME")
	return sessionResult{c.ProcessState.ExitCode(), hashes.ReplaceAllString(said, "HASH")}
}

// hook tells the hook program of an event and returns its answer.
func (m *sessionDesk) hook(event string, input, response any) (answer []byte) {
	m.t.Helper()
	raw, err := json.Marshal(map[string]any{
		"hook_event_name": event, "session_id": "day", "cwd": m.Workspace, "tool_name": "Bash", "tool_input": input, "tool_use_id": "call" + strconv.Itoa(m.n),
		"tool_response": response,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	c := m.Command("toolward-hook", "claude-code", event, "--home", m.State)
	c.Env, c.Stdin = append(c.Env, "CLAUDE_PROJECT_DIR="+m.Workspace), bytes.NewReader(raw)
	if answer, err = c.Output(); err != nil {
		m.t.Fatalf("%v: %s", err, answer)
	}
	return answer
}

// confined has a command decided, runs what the client is told to run in its place, and reports that it did.
func (m *sessionDesk) confined(command string) sessionResult {
	m.t.Helper()
	m.n++
	var answer struct {
		HookSpecificOutput struct {
			PermissionDecisionReason string
			UpdatedInput             struct{ Command string }
		}
	}
	raw := m.hook("PreToolUse", map[string]any{"command": command}, nil)
	if err := json.Unmarshal(raw, &answer); err != nil {
		m.t.Fatalf("%v: %s", err, raw)
	}
	run := answer.HookSpecificOutput.UpdatedInput.Command
	if !strings.Contains(run, "toolward-run") {
		return sessionResult{-1, answer.HookSpecificOutput.PermissionDecisionReason}
	}
	r := m.told(run)
	m.hook("PostToolUse", map[string]any{"command": run}, map[string]any{"stdout": r.said, "stderr": "", "interrupted": false})
	return r
}

// left are the names and modes of the project's files, but for what git keeps to itself, and its history.
func (m *sessionDesk) left() []string {
	m.t.Helper()
	return strings.Split(m.told(`find . -path ./.git -prune -o -printf '%M %p %l\n' | sort; git log --all --format='%s %an'; git status --short --branch; git stash list`).said, "\n")
}

// TestSessionCommands runs what coding agents send in sessions on the machine and, through hook, ticket and sandbox, in an equal
// project: none fails that succeeds on the machine, but for a reason that the list names.
func TestSessionCommands(t *testing.T) {
	for _, program := range []string{"git", "go", "jq", "make", "node", "npm", "python3"} {
		live.Need(t, live.Program(program))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	// What lies in the home of who tests is in neither of the two homes.
	t.Setenv("PATH", strings.Join(slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool { return strings.HasPrefix(dir, home+"/") }), ":"))
	bare, m := newSessionDesk(t, ""), newSessionDesk(t, strings.Replace(confinedAgent, "60000", "1000", 1))
	needNative(t, m.Machine)
	m.Start()
	list := sessionCommands(t)
	onMachine := make(chan sessionResult, len(list))
	go func() {
		defer close(onMachine)
		for _, c := range list {
			onMachine <- bare.told(c.text)
		}
	}()
	succeeded := 0
	for _, c := range list {
		got := m.confined(c.text)
		want, ok := <-onMachine
		if !ok {
			t.Fatal("the machine's run broke off")
		}
		if want.status == 0 {
			succeeded++
		}
		same := got.status == want.status && (c.expect == "status" || got.said == want.said)
		switch {
		case c.expect == "differs" && same:
			t.Errorf("%q is the same inside; it is listed as: %s", c.text, c.reason)
		case c.expect != "differs" && !same:
			t.Errorf("%q\n inside %d %q\nmachine %d %q", c.text, got.status, got.said, want.status, want.said)
		}
	}
	t.Logf("%d succeed on the machine", succeeded)
	have, want := m.left(), bare.left()
	for _, line := range have {
		if !slices.Contains(want, line) {
			t.Errorf("left only inside: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(have, line) {
			t.Errorf("left only on the machine: %s", line)
		}
	}
}
