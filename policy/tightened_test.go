package policy_test

import (
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
)

func TestTightened(t *testing.T) {
	tools := []*toolward.Tool{
		{Name: "write", Schema: []byte(`{"type":"object"}`)}, {Name: "exec", Schema: []byte(`{"type":"object"}`)},
	}
	for _, c := range []struct {
		name          string
		before, after string
		tool          string
		want          bool
	}{
		{"nothing changed", `{}`, `{}`, "write", false},
		{"row tightened", `{}`, `{"teg":{"tools":{"write":"needs_approval"}}}`, "write", true},
		{"action tightened", `{}`, `{"teg":{"tools":{"process.kill":"blocked"}}}`, "process", true},
		{"glob tightened", `{}`, `{"teg":{"tools":{"ex*":"blocked"}}}`, "exec", true},
		{"another row tightened", `{}`, `{"teg":{"tools":{"read":"needs_approval"}}}`, "write", false},
		{"row loosened", `{"teg":{"tools":{"write":"needs_approval"}}}`, `{"teg":{"tools":{"write":"safe"}}}`, "write", false},
		{"denied by name", `{}`, `{"tools":{"deny":["exec"]}}`, "exec", true},
		{"agent's own row", `{"agents":{"list":[{"id":"coder"}]}}`, `{"agents":{"list":[{"id":"coder","teg":{"tools":{"exec":"blocked"}}}]}}`, "exec", true},
		{"agent of another spelling", `{"agents":{"list":[{"id":"Coder"}]}}`, `{"agents":{"list":[{"id":"Coder","teg":{"tools":{"write":"blocked"}}}]}}`, "write", true},
		{"preset left out", `{"teg":{"preset":"workspace"}}`, `{}`, "write", true},
		{"preset back to strict", `{"teg":{"preset":"workspace"}}`, `{"teg":{"preset":"strict"}}`, "write", true},
		{"commands: nothing changed", `{"tools":{"exec":{"preset":"developer"}}}`, `{"tools":{"exec":{"preset":"developer"}}}`, "exec", false},
		{"commands: preset back to strict", `{"tools":{"exec":{"preset":"developer"}}}`, `{}`, "exec", true},
		{"commands: preset loosened", `{}`, `{"tools":{"exec":{"preset":"developer"}}}`, "exec", false},
		{"commands: a rule asks", `{}`, `{"tools":{"exec":{"rules":[{"prefix":["git"],"decision":"prompt"}]}}}`, "exec", true},
		{"commands: a rule asks about another tool", `{}`, `{"tools":{"exec":{"rules":[{"prefix":["git"],"decision":"prompt"}]}}}`, "write", false},
		{"commands: ask always", `{}`, `{"tools":{"exec":{"ask":"always"}}}`, "exec", true},
		{"commands: ask less", `{"tools":{"exec":{"ask":"always"}}}`, `{}`, "exec", false},
		{"commands: less security", `{}`, `{"tools":{"exec":{"security":"full"}}}`, "exec", false},
		{
			"commands: the agent's own security", `{"tools":{"exec":{"security":"full"}}}`,
			`{"tools":{"exec":{"security":"full"}},"agents":{"list":[{"id":"Coder","tools":{"exec":{"security":"deny"}}}]}}`, "exec", true,
		},
		{"commands: another agent's preset", `{"agents":{"list":[{"id":"x","tools":{"exec":{"preset":"developer"}}}]}}`, `{}`, "exec", false},
		{"commands: writes ask again", `{"teg":{"preset":"workspace"}}`, `{}`, "exec", true},
		{"tool of a client", `{}`, `{}`, "mcp__mail__send", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := parsed(t, c.before), parsed(t, c.after)
			withProcess := append(tools, &toolward.Tool{Name: "process", Schema: []byte(`{"type":"object"}`)})
			snapshot, _, err := policy.Compile(after.Policy(), withProcess)
			if err != nil {
				t.Fatal(err)
			}
			was, is := before.Commands(), after.Commands()
			commands := func(agent string) bool { return is.Stricter(&was, agent) }
			if got := policy.Tightened(before.Policy(), after.Policy(), snapshot, commands)("coder", c.tool); got != c.want {
				t.Errorf("taken back: %v, want %v", got, c.want)
			}
		})
	}
}

func parsed(t *testing.T, text string) config.File {
	t.Helper()
	loaded, err := config.Parse("toolward.jsonc", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return loaded.File
}
