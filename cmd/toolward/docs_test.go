package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
)

// TestReplayPageIsTrue runs the example of docs/replay.md: the cases hold with the candidate, and the table is what is
// printed.
func TestReplayPageIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```[a-z]+\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 3 {
		t.Fatalf("%d examples", len(blocks))
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	files := []string{filepath.Join(dir, "candidate.jsonc"), filepath.Join(dir, "cases.jsonc")}
	for i, file := range files {
		if err := os.WriteFile(file, []byte(blocks[i][1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs strings.Builder
	code := run(t.Context(), []string{"--home", filepath.Join(dir, ".toolward"), "policy", "test", files[1], "--with", files[0]}, strings.NewReader(""), &out, &errs)
	if code != exitOK || out.String() != blocks[2][1] {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

// commandExample is one line below an example of docs/commands.md: an agent, a command, and what becomes of it.
var commandExample = regexp.MustCompile("(?m)^- `(\\S+)` `(.*)` (runs|asks|is refused)$")

// TestCommandsPageIsTrue runs the examples of docs/commands.md.
func TestCommandsPageIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]toolward.Verdict{"runs": toolward.Allow, "asks": toolward.Ask, "is refused": toolward.Deny}
	checked := 0
	for _, example := range strings.Split(string(text), "```jsonc\n")[1:] {
		source, below, _ := strings.Cut(example, "```")
		l := newLab(t, map[string]string{config.FileName: source}, nil)
		for name, content := range map[string]string{"notes.txt": "TODO\n"} {
			if err := os.WriteFile(filepath.Join(l.workspace, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range commandExample.FindAllStringSubmatch(below, -1) {
			checked++
			arguments, err := json.Marshal(map[string]string{"command": m[2]})
			if err != nil {
				t.Fatal(err)
			}
			trace := l.gateway.Explain(t.Context(), toolward.Call{
				Tool: "exec", Arguments: arguments, Session: toolward.SessionKey("agent:" + m[1] + ":x"), Surface: toolward.SurfaceMCP,
				WorkDir: l.workspace, Host: toolward.HostGateway, Caller: toolward.Caller{Agent: m[1], Context: "main", Workspace: l.workspace},
			}, toolward.ExplainOptions{})
			if trace.Verdict != words[m[3]] {
				t.Errorf("%s: %s: %+v", m[0], trace.Verdict, trace)
			}
		}
		l.close()
	}
	if checked < 16 {
		t.Errorf("the page has %d commands", checked)
	}
}

// TestCommandsAreDocumented keeps docs/cli.md true: it names every command and exit code, and nothing else.
func TestCommandsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&commandLine{}, kong.Name("toolward"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*kong.Node{}
	for _, leaf := range parser.Model.Leaves(true) {
		path := strings.TrimPrefix(leaf.Path(), "toolward ")
		known[path] = leaf
		if !strings.Contains(string(text), "`toolward "+path) {
			t.Errorf("docs/cli.md does not have: toolward %s", path)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `toolward (.*)$").FindAllStringSubmatch(string(text), -1) {
		words := strings.Fields(strings.Trim(row[1], "`|"))
		var command *kong.Node
		for n := 1; n <= min(3, len(words)) && command == nil; n++ {
			command = known[strings.Trim(strings.Join(words[:n], " "), "`")]
		}
		if command == nil {
			t.Errorf("docs/cli.md has a command that does not exist: toolward %s", row[1])
			continue
		}
		for _, flag := range regexp.MustCompile("--([a-z-]+)").FindAllStringSubmatch(row[1], -1) {
			if !slices.ContainsFunc(command.AllFlags(true), func(group []*kong.Flag) bool {
				return slices.ContainsFunc(group, func(f *kong.Flag) bool { return f.Name == flag[1] })
			}) {
				t.Errorf("docs/cli.md: toolward %s has no flag --%s", command.Path(), flag[1])
			}
		}
	}
	for _, code := range []int{exitOK, exitError, exitRefused, exitUsage, exitUnsound, exitNoDaemon, exitNotPerson} {
		if !strings.Contains(string(text), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/cli.md does not have the exit code %d", code)
		}
	}
}
