package transcript

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

const fixtures = "testdata/home"

func noVariables(string) string { return "" }

// read gives all calls below roots, and what was odd.
func read(t *testing.T, r Reader, roots ...Root) (calls []Call, seen Seen) {
	t.Helper()
	r.Visit = func(c *Call) error { calls = append(calls, *c); return nil }
	seen, err := r.Read(t.Context(), roots)
	if err != nil {
		t.Fatal(err)
	}
	return calls, seen
}

// lines of a golden file: what Toolward takes out of the transcripts of each client.
func golden(calls []Call, seen Seen) string {
	var b strings.Builder
	for _, c := range calls {
		if !strings.HasPrefix(c.Client, "opencode") && c.Time.IsZero() {
			b.WriteString("no time: ")
		}
		fmt.Fprintf(&b, "%s %.8s agent=%s project=%s dir=%s %s %s %s\n", c.Client, c.Session, c.Agent, c.Project, c.WorkDir, c.ID, c.Tool, c.Arguments)
	}
	fmt.Fprintf(&b, "%d files, %d repeated\n", seen.Files, seen.Repeated)
	for _, o := range seen.Odd {
		fmt.Fprintf(&b, "%s: %d, first %s\n", o.What, o.Count, filepath.Base(o.First))
	}
	return b.String()
}

// The transcripts of five real clients, in the homes where those keep them.
func TestTranscriptsOfRealClients(t *testing.T) {
	roots := Roots(fixtures, noVariables)
	if len(roots) != len(clients)+1 { // Copilot has an older directory, too
		t.Errorf("roots: %v", roots)
	}
	got := golden(read(t, Reader{}, roots...))
	const file = "testdata/calls.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%v, got\n%s", err, got)
	}
}

// In a directory that somebody names each file is recognized by itself: the same calls are found.
func TestTranscriptsAreRecognized(t *testing.T) {
	at, _ := read(t, Reader{}, Roots(fixtures, noVariables)...)
	found, _ := read(t, Reader{}, Root{"", fixtures})
	name := func(list []Call) (names []string) {
		for _, c := range list {
			names = append(names, c.Client+" "+c.ID+" "+c.Tool+" "+c.Project+" "+string(c.Arguments))
		}
		slices.Sort(names)
		return names
	}
	if !slices.Equal(name(at), name(found)) {
		t.Errorf("at home\n%s\nfound\n%s", strings.Join(name(at), "\n"), strings.Join(name(found), "\n"))
	}
	for _, client := range Clients() {
		only, _ := read(t, Reader{Client: client}, Root{"", fixtures})
		if len(only) == 0 || slices.ContainsFunc(only, func(c Call) bool { return c.Client != client }) {
			t.Errorf("--client %s: %d calls, or others among them", client, len(only))
		}
	}
	one, _ := read(t, Reader{}, Root{"", filepath.Join(fixtures, ".gemini/tmp/shop/chats/session-2026-11-23T03-38-46f2879d.jsonl")})
	if len(one) != 8 {
		t.Errorf("one file: %d calls", len(one))
	}
}

func TestVariablesMoveTheRoots(t *testing.T) {
	dir, _ := filepath.Abs(fixtures)
	moved := map[string]string{
		"CLAUDE_CONFIG_DIR": dir + "/.claude", "CODEX_HOME": dir + "/.codex", "COPILOT_HOME": dir + "/.copilot", "XDG_DATA_HOME": dir + "/.local/share",
	}
	var names []string
	for _, root := range Roots(t.TempDir(), func(name string) string { return moved[name] }) {
		names = append(names, root.Client)
	}
	if want := []string{"claude-code", "codex", "copilot", "copilot", "opencode"}; !slices.Equal(names, want) {
		t.Errorf("roots of %v", names)
	}
}

func TestOnlyCallsSince(t *testing.T) {
	all, _ := read(t, Reader{}, Roots(fixtures, noVariables)...)
	newer, _ := read(t, Reader{Since: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}, Roots(fixtures, noVariables)...)
	if len(newer) == 0 || len(newer) >= len(all) || slices.ContainsFunc(newer, func(c Call) bool { return strings.HasPrefix(c.Project, "/home/dev/old") }) {
		t.Errorf("%d of %d calls, or one of 2025 among them", len(newer), len(all))
	}
}

// claude writes a transcript of Claude Code with these lines into an otherwise empty home.
func claude(t *testing.T, lines ...string) (home, file string) {
	t.Helper()
	home = t.TempDir()
	file = filepath.Join(home, ".claude", "projects", "p", "s.jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return home, file
}

func claudeCall(id, command string) string {
	return fmt.Sprintf(`{"type":"assistant","cwd":"/w","sessionId":"s","timestamp":"2026-01-02T03:04:05Z","message":{"content":[{"type":"tool_use","id":%q,"name":"Bash","input":{"command":%q}}]}}`, id, command)
}

// What cannot be read is counted and named, and everything else is read.
func TestOddLines(t *testing.T) {
	home, file := claude(t,
		claudeCall("1", "ls"),
		"no JSON at all",
		`{"type":"assistant","message":{"content":"a text that says \"tool_use\""}}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"2","name":"","input":{}}]}}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"3","name":"Bash"}]}}`,
		`{"type":17,"cwd":{"no":"text"},"message":{"content":[{"type":"tool_use"}]}}`,
		"", "\x00\x00\x00",
		`{"type":"user","long":"`+strings.Repeat("x", 10<<20)+`"}`,
		claudeCall("4", "pwd"),
		claudeCall("1", "ls"),
		claudeCall("5", "half")[:120],
	)
	calls, seen := read(t, Reader{}, Roots(home, noVariables)...)
	if len(calls) != 2 || calls[0].ID != "1" || calls[1].ID != "4" || seen.Repeated != 1 {
		t.Errorf("calls %+v, repeated %d", calls, seen.Repeated)
	}
	want := map[string]Odd{
		oddLine:     {oddLine, 3, file + ":2"},
		oddCall:     {oddCall, 2, file + ":4"},
		oddLongLine: {oddLongLine, 1, file + ":9"},
	}
	for _, o := range seen.Odd {
		if want[o.What] != o {
			t.Errorf("odd: %+v, want %+v", o, want[o.What])
		}
		delete(want, o.What)
	}
	if len(want) > 0 {
		t.Errorf("not seen as odd: %v", want)
	}
}

// Links, also of directories, and what is no file are named, and not followed or opened: a pipe would wait for ever.
func TestLinksAndPipesAreLeftAlone(t *testing.T) {
	home, file := claude(t, claudeCall("1", "ls"))
	elsewhere, _ := claude(t, claudeCall("2", "stolen"))
	projects := filepath.Join(home, ".claude", "projects")
	for _, err := range []error{
		os.Symlink(filepath.Join(elsewhere, ".claude", "projects", "p"), filepath.Join(projects, "q")),
		os.Symlink(file, filepath.Join(projects, "p", "t.jsonl")),
		syscall.Mkfifo(filepath.Join(projects, "p", "u.jsonl"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	calls, seen := read(t, Reader{}, Roots(home, noVariables)...)
	odd := map[string]int{}
	for _, o := range seen.Odd {
		odd[o.What] = o.Count
	}
	if len(calls) != 1 || odd[oddLink] != 2 || odd[oddSpecial] != 1 {
		t.Errorf("%d calls, odd %v", len(calls), odd)
	}
	if _, seen := read(t, Reader{}, Root{"", filepath.Join(home, "nowhere")}); len(seen.Odd) != 1 || seen.Odd[0].What != oddUnreadable {
		t.Errorf("a directory that is not there: %+v", seen)
	}
}

// A large transcript is read as a stream.
func TestLargeTranscriptIsNotKeptInMemory(t *testing.T) {
	home, file := claude(t)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(f)
	filler := `{"type":"user","message":"` + strings.Repeat("y", 1<<20) + `"}` + "\n"
	for range 200 {
		_, _ = out.WriteString(filler) // the error stays with the writer
	}
	_, _ = out.WriteString(claudeCall("last", "ls"))
	if err := errors.Join(out.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	calls, seen := read(t, Reader{}, Roots(home, noVariables)...)
	runtime.ReadMemStats(&after)
	if len(calls) != 1 || seen.Bytes < 200<<20 {
		t.Errorf("%d calls of %d bytes", len(calls), seen.Bytes)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func TestVisitorEndsTheReading(t *testing.T) {
	enough := errors.New("enough")
	n := 0
	r := Reader{Visit: func(*Call) error {
		if n++; n == 3 {
			return enough
		}
		return nil
	}}
	if _, err := r.Read(t.Context(), Roots(fixtures, noVariables)); !errors.Is(err, enough) || n != 3 {
		t.Errorf("%v after %d calls", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx, Roots(fixtures, noVariables)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// Whatever stands in a file, reading it neither fails nor panics, as whosever transcript it is taken.
func FuzzTranscript(f *testing.F) {
	for _, seed := range []string{
		claudeCall("1", "ls"), `{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls\"]}"}}`,
		`{"toolCalls":[{"name":"x","args":{}}],"$set":{"messages":[]}}`, `{"sessionId":"s","messages":[{"toolCalls":[{}]}]}`,
		`{"type":"tool.execution_start","data":{"toolName":"bash","arguments":{}}}`, "SQLite format 3\x00",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, name := range []string{
			"a/projects/p/s.jsonl", "a/codex/rollout-1.jsonl", "a/.gemini/tmp/p/chats/s.jsonl", "a/.gemini/tmp/p/chats/s.json", "a/copilot/events.jsonl",
			"a/oc/opencode.db", "a/oc/opencode.db-wal", "a/oc/storage/session/g/s.json",
		} {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := Reader{Visit: func(*Call) error { return nil }}
		roots := []Root{
			{"claude-code", dir + "/a/projects"}, {"codex", dir + "/a/codex"}, {"gemini", dir + "/a/.gemini"}, {"copilot", dir + "/a/copilot"}, {"opencode", dir + "/a/oc"}, {"", dir},
		}
		if _, err := r.Read(t.Context(), roots); err != nil {
			t.Error(err)
		}
	})
}
