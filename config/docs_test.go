package config

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/policy"
)

// limitsPage is docs/limits.md as the tables say it.
func limitsPage() string {
	var b strings.Builder
	b.WriteString("# Limits\n\nEverything that could grow has a bound. Each row is a key of the configuration file; a value out of range is\n" +
		"refused with its place. This page is written from the program's own tables, and a test compares them.\n\n" +
		"| key | default | least | most | what |\n|---|--:|--:|--:|---|\n")
	for _, l := range Table() {
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %s, %s |\n", l.Key, l.Default, l.Least, l.Most, l.Unit, l.Meaning)
	}
	b.WriteString("\n## The built-in tools\n\nWhat each one bounds is told in [tools](tools.md). Keys begin with `limits.tools.`\n\n" +
		"| key | default | least | most |\n|---|--:|--:|--:|\n")
	for _, l := range builtin.Limits() {
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d |\n", l.Key, l.Default, l.Least, l.Most)
	}
	b.WriteString("\n## Fixed\n\nArguments of one call: 1 MiB, 64 levels deep. A hook event: 64 MiB. A configuration file: 1 MiB, 200 levels deep.\n\n" +
		"[Plug-ins](hooks.md): one answer 1 MiB, 64 levels deep; 256 open questions to one program; 600 s for an answer; a result in an\n" +
		"event 64 KiB of text; 16 events at once and 1,024 waiting; 64 calls of one handler that never ended; 1 KiB of its\n" +
		"words for the model.\n\n" +
		"[Connections out of a sandbox](sandbox.md#egress): 256 at once of each, more wait; 15 s for a request to the proxy, 64 KiB for its\n" +
		"head, 8 MiB for a plain one; 3 addresses tried of at most 32, 10 s each; 1 minute for one direction after the other has ended; 1,024\n" +
		"sessions that use one sandbox; 16,384 agents and hosts whose bytes are counted.\n\n" +
		"[Rules](rules.md): 10,000; an expression 8,192 characters, 1,000 parts, 64 levels, two loops inside each other, patterns of\n" +
		"500 instructions, 2,000,000 units of cost for a call of 4 KiB; a larger call is stopped at 5,000,000 units for one rule and\n" +
		"20,000,000 for all.\n")
	return b.String()
}

func TestLimitsPageIsTrue(t *testing.T) {
	const path = "../docs/limits.md"
	want := limitsPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/limits.md is not what the tables say: go test ./config -update")
	}
}

// The example of the documentation is accepted, and every key that the page names exists.
func TestConfigurationPageIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "```jsonc\n")
	example, table, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("the page has no example")
	}
	loaded, err := Parse("docs/configuration.md", []byte(example), CheckPolicy(nil, policy.Surroundings{}), CheckPlugins(nil), CheckSandbox(settings.Surroundings{}))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.File.TEG.Preset != policy.PresetWorkspace || len(loaded.File.Agents.List) != 2 {
		t.Errorf("the example means something else: %+v", loaded.File)
	}
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(table) {
		cell, isRow := strings.CutPrefix(line, "| `")
		if !isRow {
			continue
		}
		key, _, _ := strings.Cut(cell, "`")
		last := key[strings.LastIndexByte(key, '.')+1:]
		if last != "*" && !strings.Contains(string(schema), fmt.Sprintf("%q:", last)) {
			t.Errorf("the page names %s, which the schema does not know", key)
		}
	}
}
