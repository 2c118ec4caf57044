package live_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// BenchmarkHook runs toolward-hook as a client does, with a decision of a running daemon about a safe call, and
// beside it an empty Go program. Both are timed from the start of the process to its end, in turn, in one run; the
// figures are medians.
func BenchmarkHook(b *testing.B) {
	m := live.NewQuickMachine(b, "")
	m.Start()
	empty := buildEmpty(b)
	if err := os.WriteFile(filepath.Join(m.Workspace, "a.txt"), []byte("hello\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	var alone, decided []time.Duration
	for n := 0; b.Loop(); n++ {
		alone = append(alone, timed(b, exec.Command(empty)))
		hook := exec.Command(m.Program("toolward-hook"), "claude-code", "PreToolUse", "--home", m.State)
		hook.Env = append(m.Environment(), "CLAUDE_PROJECT_DIR="+m.Workspace)
		event, err := json.Marshal(map[string]any{
			"hook_event_name": "PreToolUse", "session_id": "bench", "cwd": m.Workspace, "tool_name": "Read",
			"tool_input": map[string]any{"file_path": filepath.Join(m.Workspace, "a.txt")}, "tool_use_id": "call" + strconv.Itoa(n),
		})
		if err != nil {
			b.Fatal(err)
		}
		hook.Stdin = bytes.NewReader(event)
		var answer bytes.Buffer
		hook.Stdout = &answer
		decided = append(decided, timed(b, hook))
		if !bytes.Contains(answer.Bytes(), []byte(`"permissionDecision":"allow"`)) {
			b.Fatalf("not allowed: %s", &answer)
		}
	}
	empties, hooks := median(alone), median(decided)
	b.ReportMetric(float64(empties.Microseconds()), "µs/empty")
	b.ReportMetric(float64(hooks.Microseconds()), "µs/hook")
	b.ReportMetric(float64(hooks)/float64(empties), "x-empty")
	b.ReportMetric(0, "ns/op")
}

func buildEmpty(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	program := filepath.Join(dir, "empty")
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return program
}

func timed(b *testing.B, command *exec.Cmd) time.Duration {
	b.Helper()
	start := time.Now()
	if err := command.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
