package bridge_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy"
)

// A search tells one character of a secret file with each call, by which files match, how many lines do, or how full the result is:
// where such a file would be searched, a person is asked. Patterns that leave it out for certain ask nobody.
func TestSearchesAreNoOracle(t *testing.T) {
	snapshot, _, err := policy.Compile(policy.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, toolward.Deny)
	r.useGateway(r.With(t, func(c *toolward.Config) { c.Policy = policy.NewLive(snapshot) }), false)
	for _, name := range []string{".env", "main.go", "clean/a.txt", "deep/er/id_rsa", "deep/er/b.txt", "certs/server.pem", "certs/notes.md"} {
		at := filepath.Join(r.project, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("KEY=1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked := false
	r.Approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) {
		asked = true
		return toolward.Answer{}, nil
	}
	for input, want := range map[string]bool{
		`{"pattern":"^KEY=s","output_mode":"files_with_matches"}`:   true,
		`{"pattern":"^KEY=s","output_mode":"count"}`:                true,
		`{"pattern":"^KEY=s","output_mode":"content"}`:              true,
		`{"pattern":"^KEY=s","head_limit":1}`:                       true,
		`{"pattern":"x","path":"{{project}}"}`:                      true,
		`{"pattern":"x","path":"deep"}`:                             true,
		`{"pattern":"x","path":"deep/er","glob":"id_*"}`:            true,
		`{"pattern":"x","glob":"*"}`:                                true,
		`{"pattern":"x","glob":"**/*"}`:                             true,
		`{"pattern":"x","glob":".*"}`:                               true,
		`{"pattern":"x","glob":"*.{go,env}"}`:                       true,
		`{"pattern":"x","glob":"*.go, .env"}`:                       true,
		`{"pattern":"x","glob":"*.[e]nv"}`:                          true,
		`{"pattern":"x","glob":"!.env *"}`:                          true,
		`{"pattern":"x","glob":"!.env"}`:                            true, // the others are searched
		`{"pattern":"x","path":"certs","type":"pem"}`:               true, // nobody here knows the kind
		`{"pattern":"x","glob":"!*.go"}`:                            true,
		`{"pattern":"x","path":"clean"}`:                            false,
		`{"pattern":"x","glob":"*.go"}`:                             false,
		`{"pattern":"x","glob":"**/*.{ts,tsx}"}`:                    false,
		`{"pattern":"x","type":"go"}`:                               false,
		`{"pattern":"x","path":"certs","glob":"!*.pem"}`:            false,
		`{"pattern":"x","path":"deep","glob":"!id_rsa"}`:            false,
		`{"pattern":"x","glob":"!.env,!id_rsa,!**/server.pem"}`:     false,
		`{"pattern":"x","path":"certs/notes.md"}`:                   false,
		`{"pattern":"x","path":"certs/server.pem"}`:                 true,
		`{"pattern":"x","path":"deep","glob":"*.txt","type":"txt"}`: false,
	} {
		asked = false
		d := r.decided("Grep", input)
		if asked != want || !want && d.Verdict != toolward.Allow {
			t.Errorf("%s: asked %v, %v %+v", input, asked, d.Verdict, d.Judgment.Reasons)
		}
	}
	asked = false
	if d := r.decided("Glob", `{"pattern":"**/*"}`); asked || d.Verdict != toolward.Allow {
		t.Errorf("names of files: %v", d.Judgment.Reasons)
	}
}

// The searches of every client are judged alike.
func TestSearchesOfEachClient(t *testing.T) {
	r := newPastRig(t)
	r.project = t.TempDir()
	dir := filepath.Join(r.project, "sub")
	for _, name := range []string{"a.go", ".npmrc", ".env.local", "deep/credentials"} {
		if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		client, tool, arguments string
		secret                  bool
	}{
		{"claude-code", "Grep", `{"pattern":"x"}`, true},
		{"gemini", "grep_search", `{"pattern":"x","names_only":true}`, true},
		{"gemini", "grep_search", `{"pattern":"x","include_pattern":"*.go"}`, false},
		{"opencode", "grep", `{"pattern":"x"}`, true},
		{"opencode", "grep", `{"pattern":"x","include":"*.{go,mod}"}`, false},
		{"copilot", "rg", `{"pattern":"x"}`, true},
		{"copilot", "grep", `{"pattern":"x","paths":["a.go","."]}`, true},
		{"copilot", "grep", `{"pattern":"x","paths":["a.go"]}`, false},
		{"copilot", "glob", `{"pattern":"*","paths":["."]}`, false},
	} {
		call, _, facts := r.facts(c.client, c.tool, c.arguments)
		found := slices.ContainsFunc(facts.Findings, func(f toolward.Finding) bool { return f.Code == "search_secret" })
		if found != c.secret {
			t.Errorf("%s %s %s: %s", c.client, c.tool, c.arguments, r.words(&call, &facts))
		}
	}
}

func BenchmarkSearchedTree(b *testing.B) {
	root := b.TempDir()
	for i := range 400 {
		dir := filepath.Join(root, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for j := range 50 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(j, ".go")), nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	r := newRig(b, toolward.Deny)
	for b.Loop() {
		r.decided("Grep", `{"pattern":"x","path":"`+root+`"}`)
	}
}
