package config

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
)

// TestPolicyPageIsTrue runs the examples of docs/policy.md: each is accepted, and the callers listed below it see what
// the page says. A caller is an agent and, in any order, a provider or provider/model, the rest of a session key, and
// a sender.
func TestPolicyPageIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	var tools []*toolward.Tool
	for _, name := range strings.Fields("read write edit apply_patch list search exec process image sessions_spawn web_search tts") {
		tools = append(tools, &toolward.Tool{Name: name, Schema: json.RawMessage(`{"type":"object"}`)})
	}
	for _, name := range []string{"github__issues", "github__merge"} {
		tools = append(tools, &toolward.Tool{Name: name, Plugin: "github", Optional: name == "github__merge", Schema: json.RawMessage(`{"type":"object"}`)})
	}
	examples := strings.Split(string(raw), "```jsonc\n")[1:]
	checked := 0
	for _, example := range examples {
		source, after, _ := strings.Cut(example, "```")
		loaded, err := Parse("docs/policy.md", []byte(source), CheckPolicy(tools, policy.Surroundings{}))
		if err != nil {
			t.Fatal(err)
		}
		snapshot, _, err := policy.Compile(loaded.File.Policy(), tools)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(after) {
			who, sees, ok := strings.Cut(strings.TrimPrefix(line, "- `"), "` sees ")
			if !ok {
				continue
			}
			checked++
			var got []string
			for _, tool := range snapshot.Tools(exampleCaller(who)) {
				got = append(got, tool.Name)
			}
			want := strings.Fields(strings.ReplaceAll(sees, "`", ""))
			if slices.Equal(want, []string{"nothing"}) {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s sees %q, the page says %q", who, got, want)
			}
		}
	}
	if len(examples) != 4 || checked != 14 {
		t.Errorf("%d examples with %d callers were checked", len(examples), checked)
	}
}

func exampleCaller(who string) toolward.Caller {
	words := strings.Fields(who)
	c := toolward.Caller{Agent: words[0], Owner: true, Session: toolward.SessionKey("agent:" + words[0] + ":main")}
	for _, word := range words[1:] {
		switch {
		case strings.Contains(word, ":"):
			c.Session = toolward.SessionKey("agent:" + words[0] + ":" + word)
		case strings.HasPrefix(word, "openai"):
			c.Provider, c.Model, _ = strings.Cut(word, "/")
		default:
			c.Sender = word
		}
	}
	return c
}
