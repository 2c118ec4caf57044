package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/gateway/trial"
)

// reportHome is a home with the transcripts of five clients, and nothing else.
func reportHome(t *testing.T) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(home, os.DirFS("../../transcript/testdata/home")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for _, name := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_DATA_HOME"} {
		t.Setenv(name, "")
	}
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
	return home
}

// reported is what "toolward report" prints there.
func reported(t *testing.T, home string, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	code := run(t.Context(), append([]string{"--home", filepath.Join(home, ".toolward"), "report"}, args...), strings.NewReader(""), &out, &errs)
	if code != exitOK || errs.Len() > 0 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	return strings.ReplaceAll(out.String(), home, "/home/dev")
}

// TestReportPageIsTrue runs the examples of docs/report.md on the transcripts of the tests.
func TestReportPageIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```[a-z]+\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d examples", len(blocks))
	}
	home := reportHome(t)
	if got := reported(t, home); got != blocks[0][1] {
		t.Errorf("toolward report prints\n%s", got)
	}
	with := filepath.Join(home, "candidate.jsonc")
	if err := os.WriteFile(with, []byte(blocks[1][1]), 0o600); err != nil {
		t.Fatal(err)
	}
	got := reported(t, home, "--with", with)
	if from := strings.Index(got, "CALLS  "); from < 0 || !strings.HasPrefix(got[from:], blocks[2][1]) {
		t.Errorf("with a candidate it prints\n%s", got)
	}
}

func TestReportChoosesSessions(t *testing.T) {
	home := reportHome(t)
	price := func(args ...string) (p trial.Price) {
		if err := json.Unmarshal([]byte(reported(t, home, append(args, "--json")...)), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := price()
	if all.Calls != 55 || all.Sessions != 7 || len(all.Clients) != 5 || len(all.Policies) != 1 {
		t.Errorf("%d calls of %d sessions, %d clients", all.Calls, all.Sessions, len(all.Clients))
	}
	if gemini := price("--client", "gemini"); gemini.Calls != 10 || len(gemini.Clients) != 1 || gemini.Clients[0].Client != "gemini" {
		t.Errorf("--client gemini: %+v", gemini.Clients)
	}
	if newer := price("--since", "2026-11-01"); newer.Calls != 52 {
		t.Errorf("--since: %d calls", newer.Calls)
	}
	if dir := price(filepath.Join(home, ".codex")); dir.Calls != 11 || dir.Clients[0].Client != "codex" {
		t.Errorf("a directory: %+v", dir.Clients)
	}
	for _, p := range all.Policies {
		if p.Ran.Inside+p.Ran.OnHost+p.Asked+p.Refused != all.Calls || p.Commands.Inside.Run+p.Commands.Inside.Asked+p.Commands.Inside.Refused != p.Commands.Total {
			t.Errorf("the numbers do not add up: %+v", p)
		}
		if p.Unknown != 2 {
			t.Errorf("%d unknown tools", p.Unknown)
		}
	}
	if text := reported(t, home, "--json"); strings.Contains(text, "ghp_") {
		t.Error("a token is shown")
	}
	var errs strings.Builder
	for _, wrong := range [][]string{{"--since", "soon"}, {"--limit", "0"}, {"--client", "nobody"}} {
		if code := run(t.Context(), append([]string{"--home", home, "report"}, wrong...), strings.NewReader(""), &errs, &errs); code != exitUsage {
			t.Errorf("%v: exit code %d", wrong, code)
		}
	}
}

// Without transcripts it says where it looked for them.
func TestReportWithoutTranscripts(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if got := reported(t, home); !strings.Contains(got, "No calls were found in transcripts of claude-code, codex, gemini, copilot, opencode.") {
		t.Errorf("it prints\n%s", got)
	}
}

// A report reads. Whatever stands in transcripts, nothing below the home changes: no file, no size, no time, not even of a
// home that Toolward does not have yet.
func TestReportChangesNothing(t *testing.T) {
	home := reportHome(t)
	list := func() (list string) {
		err := filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				list += path + info.Mode().String() + info.ModTime().Format(time.RFC3339Nano) + "\n"
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := list()
	reported(t, home)
	if after := list(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}
