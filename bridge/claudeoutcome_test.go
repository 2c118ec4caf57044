package bridge_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

func TestContextUse(t *testing.T) {
	r := newRig(t, toolward.Allow)
	transcript := filepath.Join(r.project, "transcript.jsonl")
	body := func(extra string) []byte {
		return r.event("PreToolUse-Bash.json", map[string]any{"transcript_path": transcript, "tool_use_id": extra})
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(transcript, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recorded := string(r.recorded("transcript.jsonl"))
	answer := `{"type":"assistant","message":{"model":"claude-haiku-4","usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":170000,"output_tokens":3}}}` + "\n"

	for i, step := range []struct {
		name           string
		text           string
		tokens, window int64
		compacted      int
	}{
		{"recorded", recorded, 1002, 1_000_000, 0},
		{"cache counts, unknown model", recorded + answer, 170_030, 200_000, 0},
		{"a long result after the last answer", answer + `{"type":"user","x":"` + strings.Repeat("a", 300<<10) + `"}` + "\n", 170_030, 200_000, 0},
		{"compacted after the last answer", answer + `{"type":"system","subtype":"compact_boundary"}` + "\n", 170_030, 200_000, 1},
		{"an answer without a number", strings.Replace(answer, "170000", "1e30", 1), -1, 200_000, 1},
		{"an answer that is being written", answer + `{"type":"assistant","message":{"usage":{"input_tokens":1`, 170_030, 200_000, 1},
		{"so much that the last answer is not found", answer + strings.Repeat("{\"type\":\"user\"}\n", 300<<10), -1, 200_000, 1},
		{"negative", strings.Replace(answer, "170000", "-5", 1), -1, 200_000, 1},
		{"an answer quoted in a tool's result", answer + `{"type":"user","message":{"usage":{"input_tokens":1},"role":"assistant"}}` + "\n", 170_030, 200_000, 1},
	} {
		t.Run(step.name, func(t *testing.T) {
			write(step.text)
			r.post("PreToolUse", body("toolu_use_"+string(rune('a'+i))))
			last := len(r.reports.tokens) - 1
			if last < 0 || r.reports.tokens[last] != step.tokens || r.reports.windows[last] != step.window || r.reports.compacted != step.compacted {
				t.Errorf("tokens %v of %v, compacted %d", r.reports.tokens, r.reports.windows, r.reports.compacted)
			}
		})
	}
	r.post("PreCompact", r.event("Stop.json", map[string]any{"hook_event_name": "PreCompact", "trigger": "auto"}))
	r.post("SessionStart", r.event("SessionStart.json", map[string]any{"source": "compact"}))
	if r.reports.compacted != 3 {
		t.Errorf("compacted %d times, want 3", r.reports.compacted)
	}
}

// TestFirstCall: the client writes its transcript behind, and a session must not be tense for that.
func TestFirstCall(t *testing.T) {
	r := newRig(t, toolward.Allow)
	transcript := filepath.Join(r.project, "t.jsonl")
	for _, text := range []string{"", `{"type":"user","message":{"role":"user","content":"go"}}` + "\n"} {
		if err := os.WriteFile(transcript, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.post("PreToolUse", r.event("PreToolUse-Bash.json", map[string]any{"transcript_path": transcript}))
	}
	if len(r.reports.tokens) != 0 {
		t.Errorf("reported %v", r.reports.tokens)
	}
}

func TestSessionThatCannotBeNotedRefuses(t *testing.T) {
	r := newRig(t, toolward.Allow)
	r.reports.err = errors.New("disk full")
	transcript := filepath.Join(r.project, "t.jsonl")
	if err := os.WriteFile(transcript, r.recorded("transcript.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, _ := said(t, r.post("PreToolUse", r.event("PreToolUse-Bash.json", map[string]any{"transcript_path": transcript}))); d != "deny" {
		t.Errorf("decision %q", d)
	}
	if a := r.post("PreCompact", r.event("Stop.json", map[string]any{"hook_event_name": "PreCompact"})); a.Exit != 2 || len(a.Stderr) == 0 {
		t.Errorf("compaction went on unnoted: %+v", a)
	}
}

func TestRedaction(t *testing.T) {
	for _, test := range []struct {
		name   string
		body   string
		change map[string]any
		want   string // the answer, or a part if it begins with …
	}{
		{"command", "PostToolUse-Bash.json", nil, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{"stdout":"token [hidden]","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}}}`},
		{"file", "PostToolUse-Read.json", nil, `…"content":"token [hidden]\n","numLines":2`},
		{"MCP", "PostToolUse-mcp.json", nil, `…"updatedToolOutput":[{"type":"text","text":"the secret is [hidden]"}]`},
		{"search", "PostToolUse-Grep.json", nil, `…a.txt:1:token [hidden]`},
		{"nothing to hide", "PostToolUse-Edit.json", nil, ""},
		{"keys and numbers stay", "PostToolUse-Bash.json", map[string]any{"tool_response": map[string]any{secret: 1, "b": []any{secret, nil, true}}}, `…{"b":["[hidden]",null,true],"` + secret + `":1}`},
		{"an image is left alone", "PostToolUse-Read.json", map[string]any{"tool_response": map[string]any{"base64": secret}}, ""},
		{"a tool whose answer is unknown", "PostToolUse-Agent.json", map[string]any{"tool_response": map[string]any{"x": secret}}, `{"systemMessage":"Toolward: the result of Agent holds a secret, and it is not known whether the client lets it be hidden."}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			a := r.post("PostToolUse", r.event(test.body, test.change))
			part, isPart := strings.CutPrefix(test.want, "…")
			if a.Exit != 0 || (isPart && !strings.Contains(string(a.Stdout), part)) || (!isPart && string(a.Stdout) != test.want && !sameJSON(string(a.Stdout), test.want)) {
				t.Errorf("got  %s\nwant %s", a.Stdout, test.want)
			}
		})
	}
}

func TestSearchHidesLinesOfSecretFiles(t *testing.T) {
	r := newRig(t, toolward.Allow)
	if err := os.WriteFile(filepath.Join(r.project, ".env"), []byte("KEY=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	content := "main.go:3:KEY\n.env:1:KEY=1\n.env-2-OTHER=2\nREADME.md:9:see .env:1:KEY\n"
	a := r.post("PostToolUse", r.event("PostToolUse-Grep.json", map[string]any{"tool_response": map[string]any{"mode": "content", "content": content}}))
	for _, hidden := range []string{"KEY=1", "OTHER=2"} {
		if strings.Contains(string(a.Stdout), hidden) {
			t.Errorf("%s is shown: %s", hidden, a.Stdout)
		}
	}
	for _, shown := range []string{"main.go:3:KEY", "README.md:9:see .env:1:KEY"} {
		if !strings.Contains(string(a.Stdout), shown) {
			t.Errorf("%s is hidden: %s", shown, a.Stdout)
		}
	}
}
