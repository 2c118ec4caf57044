package main_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolward/toolward/internal/live"
)

func TestMain(m *testing.M) {
	code := m.Run()
	live.RemovePrograms()
	os.Exit(code)
}

// TestScripts runs the real program as testdata/script/*.txtar say. "exec toolward" runs it as an agent could:
// without a terminal. Besides testscript's own commands there are
//
//	up                   start the gateway, with a passphrase set, and wait until it serves
//	down                 stop it
//	person COMMAND       type a command, or a quoted line, in a signed-in terminal; what it prints, errors too, is
//	                     in the file "typed"
//	exits CODE COMMAND   run a command that must end with this exit code; "exits CODE person COMMAND" types it;
//	                     what it prints is in the file "typed", too
//	soon COMMAND         type a command again and again until it succeeds
//	grab NAME PATTERN    set the variable to the first group of the pattern in "typed"
//	fetch STATUS PATH [TOKEN]  get a path of the console's address, with a bearer token; the answer is in "typed"
//	ask TOOL ARGUMENTS   make a call that needs a person; the question's id is in $ID, its first characters in $SLUG
//
// and the console's address in $URL.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			t.Parallel()
			s := &stage{Machine: live.NewQuickMachine(t, "")}
			testscript.Run(t, testscript.Params{
				Files: []string{script},
				Setup: func(env *testscript.Env) error {
					for _, pair := range s.Environment() {
						name, value, _ := strings.Cut(pair, "=")
						env.Setenv(name, value)
					}
					env.Setenv("WORKSPACE", s.Workspace)
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"up": s.up, "down": s.down, "person": s.person, "exits": s.exits, "soon": s.soon, "grab": s.grab, "ask": s.ask,
					"fetch": s.fetch,
				},
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
			})
		})
	}
}

// stage is the machine of one script.
type stage struct {
	*live.Machine
	terminal *live.Terminal
}

func (s *stage) up(ts *testscript.TestScript, neg bool, arguments []string) {
	if neg || len(arguments) > 0 {
		ts.Fatalf("usage: up")
	}
	ts.Check(s.TryStart())
	ts.Setenv("URL", s.URL)
	s.terminal = s.SignedIn()
	s.terminal.Run("cd " + ts.MkAbs("."))
	s.terminal.Watch()
}

func (s *stage) down(ts *testscript.TestScript, neg bool, _ []string) {
	if code := s.Stop(); neg || code != 0 {
		ts.Fatalf("the gateway ended with %d", code)
	}
}

// typed types a command, keeps what it printed, and returns its exit code.
func (s *stage) typed(ts *testscript.TestScript, words []string) int {
	if s.terminal == nil || len(words) == 0 {
		ts.Fatalf("usage: up, then person COMMAND")
	}
	out, status := s.terminal.Run(quoted(words))
	ts.Logf("%s\n[exit code %d]", out, status)
	ts.Check(os.WriteFile(ts.MkAbs("typed"), []byte(out+"\n"), 0o600))
	return status
}

// quoted makes one line for a shell. A single word is a line already.
func quoted(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	line := make([]string, len(words))
	for i, word := range words {
		line[i] = word
		if strings.ContainsAny(word, " {}\"'$*()|&;<>#~") {
			line[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(line, " ")
}

func (s *stage) person(ts *testscript.TestScript, neg bool, words []string) {
	if neg {
		ts.Fatalf("use exits CODE person COMMAND")
	}
	if code := s.typed(ts, words); code != 0 {
		ts.Fatalf("exit code %d", code)
	}
}

func (s *stage) soon(ts *testscript.TestScript, neg bool, words []string) {
	for end := time.Now().Add(20 * time.Second); s.typed(ts, words) != 0; time.Sleep(50 * time.Millisecond) {
		if neg || time.Now().After(end) {
			ts.Fatalf("it never succeeds")
		}
	}
}

func (s *stage) grab(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) != 2 {
		ts.Fatalf("usage: grab NAME PATTERN")
	}
	groups := regexp.MustCompile(words[1]).FindStringSubmatch(ts.ReadFile("typed"))
	if len(groups) != 2 {
		ts.Fatalf("%s is not in typed", words[1])
	}
	ts.Setenv(words[0], groups[1])
}

// exits runs a command that must end with an exit code.
func (s *stage) exits(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND, or exits CODE person COMMAND")
	}
	want, err := strconv.Atoi(words[0])
	ts.Check(err)
	var got int
	if words[1] == "person" {
		got = s.typed(ts, words[2:])
	} else {
		command := s.Command(words[1], words[2:]...)
		command.Dir = ts.MkAbs(".")
		out, _ := command.CombinedOutput() // how it ended is looked at next
		got = command.ProcessState.ExitCode()
		ts.Logf("%s[exit code %d]", out, got)
		ts.Check(os.WriteFile(ts.MkAbs("typed"), out, 0o600))
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// fetch gets a path over HTTP, which must answer with a status.
func (s *stage) fetch(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) < 2 || len(words) > 3 {
		ts.Fatalf("usage: fetch STATUS PATH [TOKEN]")
	}
	request, err := http.NewRequest(http.MethodGet, s.URL+words[1], nil)
	ts.Check(err)
	if len(words) == 3 {
		request.Header.Set("Authorization", "Bearer "+words[2])
	}
	response, err := http.DefaultClient.Do(request)
	ts.Check(err)
	answer, err := io.ReadAll(response.Body)
	response.Body.Close()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("typed"), answer, 0o600))
	if strconv.Itoa(response.StatusCode) != words[0] {
		ts.Fatalf("%s: status %d\n%s", words[1], response.StatusCode, answer)
	}
}

// ask makes a call that needs a person, and puts the id of its question into $ID.
func (s *stage) ask(ts *testscript.TestScript, neg bool, words []string) {
	if neg || len(words) != 2 || s.terminal == nil {
		ts.Fatalf("usage: up, then ask TOOL ARGUMENTS")
	}
	token, status := s.terminal.Run("toolward token create --agent coder --workspace " + s.Workspace + " 2> /dev/null")
	if status != 0 {
		ts.Fatalf("token create: %d %s", status, token)
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": words[0], "arguments": json.RawMessage(words[1]),
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    protocol,
			"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{"url": struct{}{}}},
		},
	}})
	ts.Check(err)
	request, err := http.NewRequest(http.MethodPost, s.URL+"/mcp", bytes.NewReader(body))
	ts.Check(err)
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": protocol, "Mcp-Method": "tools/call", "Mcp-Name": words[0],
	} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	ts.Check(err)
	answer, err := io.ReadAll(response.Body)
	response.Body.Close()
	ts.Check(err)
	id := regexp.MustCompile(`/approvals/([-0-9a-f]{36})`).FindSubmatch(answer)
	if id == nil {
		ts.Fatalf("nothing waits: %s", answer)
	}
	ts.Setenv("ID", string(id[1]))
	ts.Setenv("SLUG", string(id[1][:8]))
	time.Sleep(600 * time.Millisecond) // an answer that comes sooner was not thought over, and is not taken
}

// protocol is the version in which a call that waits comes back at once.
const protocol = "2026-07-28"
