package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
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

// TestCommandsAreDocumented keeps docs/cli.md true: it names every command and exit code, and nothing else.
func TestCommandsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := newParser(&commandLine{})
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
