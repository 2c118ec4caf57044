package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/gatetest"
)

func TestCommandTextVectors(t *testing.T) {
	gatetest.RunAsserted(t, "exec.json", "systemRunCommand", func(t *testing.T, input json.RawMessage) map[string]any {
		var in struct {
			Command    []string
			RawCommand string
		}
		gatetest.Decode(t, input, &in)
		text, err := TextOf(in.Command, in.RawCommand)
		if refused, ok := errors.AsType[*CommandTextError](err); ok {
			return map[string]any{"ok": false, "code": refused.Code}
		}
		out := map[string]any{"ok": true, "cmdText": text.Text, "shellCommand": nil}
		if text.Shell != "" {
			out["shellCommand"] = text.Shell
		}
		return out
	})
}

func TestTextOf(t *testing.T) {
	for argv, want := range map[string]struct{ text, shell string }{
		"bash|-x|-c|echo hi":               {"echo hi", "echo hi"},
		"bash|-ec|echo hi":                 {"echo hi", "echo hi"},
		"bash|-ce|echo hi":                 {"echo hi", "echo hi"},
		"bash|-c|-e|echo hi":               {"echo hi", "echo hi"},
		"bash|-o|errexit|-c|echo hi":       {"echo hi", "echo hi"},
		"bash|-c|--|echo hi":               {"echo hi", "echo hi"},
		"bash|--norc|-c|echo hi|arg":       {`bash --norc -c "echo hi" arg`, "echo hi"},
		"bash|script.sh|-c|echo hi":        {`bash script.sh -c "echo hi"`, ""},
		"bash|-c":                          {"bash -c", ""},
		"bash|-c|":                         {`bash -c ""`, ""},
		"timeout|5|bash|-lc|echo hi":       {"echo hi", "echo hi"},
		"nice|-n|3|env|sh|-c|echo hi":      {"echo hi", "echo hi"},
		"env|-u|X|sh|-c|echo hi":           {`env -u X sh -c "echo hi"`, "echo hi"},
		"env|-S|sh -c id":                  {`env -S "sh -c id"`, ""},
		"sudo|bash|-c|echo hi":             {`sudo bash -c "echo hi"`, ""},
		"busybox|sh|-c|echo hi":            {"echo hi", "echo hi"},
		"fish|-c|echo hi|x":                {`fish -c "echo hi" x`, "echo hi"},
		`C:\Windows\cmd.exe|/K|dir|a b`:    {"dir a b", "dir a b"},
		"pwsh|-NoProfile|-Com|Get-Date|x":  {"pwsh -NoProfile -Com Get-Date x", "Get-Date"},
		"pwsh|-EncodedCommand|QQ":          {"pwsh -EncodedCommand QQ", ""},
		"echo|a\u00a0b|c\u3000|\ufeff":     {"echo \"a\u00a0b\" \"c\u3000\" \"\ufeff\"", ""},
		`say|"`:                            {`say "\""`, ""},
		"env|env|env|env|env|env|sh|-c|id": {"env env env env env env sh -c id", ""},
	} {
		text, err := TextOf(strings.Split(argv, "|"), "")
		if err != nil || text.Text != want.text || text.Shell != want.shell {
			t.Errorf("%s: got %+v %v, want %+v", argv, text, err, want)
		}
	}
}

// Words that begin with none name no program: what they would start is not what people read.
func TestTextOfNoProgram(t *testing.T) {
	for _, argv := range [][]string{nil, {""}, {"", "-c", "id"}, {" \t", "id"}, {"\ufeff"}} {
		if text, err := TextOf(argv, ""); err == nil {
			t.Errorf("%q is shown as %q", argv, text.Text)
		}
	}
}

func FuzzTextOf(f *testing.F) {
	f.Add("bash|-c|echo", "echo")
	f.Add("env|A=1|timeout|5|sh|-lc|x y|z", "")
	f.Fuzz(func(t *testing.T, joined, raw string) {
		argv := strings.Split(joined, "|")
		text, err := TextOf(argv, "")
		if names := trimSpace(argv[0]) != ""; (err == nil) != names {
			t.Fatalf("%q: %v", argv, err)
		}
		if err != nil {
			return
		}
		if text.Text != joinArgv(argv) && (text.Shell == "" || text.Text != text.Shell) {
			t.Fatalf("%q is shown as %q", argv, text.Text)
		}
		if again, err := TextOf(argv, raw); err == nil && trimSpace(raw) != "" && again.Text != trimSpace(raw) {
			t.Fatalf("%q is shown as %q although the caller says %q", argv, again.Text, raw)
		}
	})
}
