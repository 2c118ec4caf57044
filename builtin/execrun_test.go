package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/command/binding"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
)

// markedShell is a shell that leaves a mark beside it whenever it is started.
func markedShell(t *testing.T) (shell, mark string) {
	t.Helper()
	dir := t.TempDir()
	shell, mark = dir+"/sh", dir+"/started"
	if err := os.WriteFile(shell, []byte("#!/bin/sh\n: > '"+mark+"'\nexec /bin/sh \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return shell, mark
}

func TestShellRunsOnlyWhatIsNotUnderstood(t *testing.T) {
	for _, c := range []struct {
		command, want string
		shell         bool
	}{
		{`printf 'a\nb\n' | wc -l > out && cat out`, "2", false},
		{"mkdir -p d && cd d && pwd && touch x; ls", "/d\nx", false},
		{"env -- printf %s ok", "ok", false},
		{"nice -n 5 printf %s 'two words'", "two words", false},
		{"cat <<'E'\n$HOME\nE", "$HOME", false},
		{"LC_ALL=C printf '%s' {a,b}", "ab", false},
		{"ls nothing || echo 'there is none'", "there is none", false},
		{"ls nothing 2>/dev/null >&2; echo $?", "2", true},
		{"for i in 1 2; do printf $i; done", "12", true},
		{"export A=1; echo $A", "1", true},
		{"umask 077; umask", "0077", true},
		{"no-such-program || echo none", "none", true},
	} {
		t.Run(c.command, func(t *testing.T) {
			shell, mark := markedShell(t)
			w := newWorld(t, func(cfg *Config) { cfg.Shell = shell })
			if got := strings.TrimSpace(w.ok("exec", args{"command": c.command})); !strings.HasSuffix(got, c.want) {
				t.Errorf("got %q, want %q at the end", got, c.want)
			}
			if _, err := os.Stat(mark); (err == nil) != c.shell {
				t.Errorf("a shell was started: %t, want %t", err == nil, c.shell)
			}
		})
	}
}

// TestWhatChangedSinceTheDecisionDoesNotRun exchanges what a command starts from after its facts were found.
func TestWhatChangedSinceTheDecisionDoesNotRun(t *testing.T) {
	script := "#!/bin/sh\necho judged\n"
	for _, c := range []struct {
		name, command, code string
		change              func(w *world)
	}{
		{"script of a shell", "sh s.sh", binding.CodeFileDrift, func(w *world) { w.put("ws/s.sh", "echo swapped") }},
		{"script behind a wrapper", "nice sh s.sh", binding.CodeFileDrift, func(w *world) { w.put("ws/s.sh", "echo swapped") }},
		{"script in a chain", "true && sh s.sh", binding.CodeFileDrift, func(w *world) { w.put("ws/s.sh", "echo swapped") }},
		{"inner script", "sh -c 'sh s.sh'", binding.CodeFileDrift, func(w *world) { w.put("ws/s.sh", "echo swapped") }},
		{"carried program", "find . -name s.sh -exec ./p {} +", binding.CodeFileDrift, func(w *world) { w.put("ws/p", "#!/bin/sh\necho swapped") }},
		{"file of a program that nobody knows", "./p --conf=s.sh", binding.CodeFileDrift, func(w *world) { w.put("ws/s.sh", "echo swapped") }},
		{"piped into a shell", "cat s.sh | sh", binding.CodeFileDrift, func(w *world) { w.put("ws/s.sh", "echo swapped") }},
		{"input of a shell", "sh <s.sh", binding.CodeFileDrift, func(w *world) { w.put("ws/s.sh", "echo swapped") }},
		{"named by a text that only a shell understands", "for i in 1; do sh s.sh; done; X=$(id -u)", binding.CodeFileDrift, func(w *world) { w.put("ws/s.sh", "echo swapped") }},
		{"file of a directory", "./p d", binding.CodeFileDrift, func(w *world) { w.put("ws/d/new.conf", "swapped") }},
		{"what make finds by itself", "make -n x", binding.CodeFileDrift, func(w *world) { w.put("ws/Makefile", "x:\n\techo swapped") }},
		{"program", "./p", binding.CodeExecutableDrift, func(w *world) { w.put("ws/p", "#!/bin/sh\necho swapped") }},
		{"link to a program", "./l", binding.CodeExecutableDrift, func(w *world) {
			w.put("ws/q", script+"\n")
			w.must(os.Chmod(w.workspace+"/q", 0o755))
			w.must(os.Remove(w.workspace + "/l"))
			w.must(os.Symlink("q", w.workspace+"/l"))
		}},
		{"program that was missing", "later", "", func(w *world) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range []string{"ws/s.sh", "ws/p", "ws/d/a.conf"} {
				w.put(name, script)
				w.must(os.Chmod(w.root+"/"+name, 0o755))
			}
			w.must(os.Symlink("p", w.workspace+"/l"))
			r := w.facts("exec", args{"command": c.command})
			c.change(w)
			result := w.finish(r)
			if c.code == "" {
				return
			}
			if got := text(result); !result.IsError || !strings.Contains(got, c.code) || strings.Contains(got, "swapped\n") {
				t.Errorf("got %q", got)
			}
			again := w.facts("exec", args{"command": c.command})
			if again.Facts.Bound[2] == r.Facts.Bound[2] {
				t.Error("an approval of what was would hold for what is now")
			}
		})
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func TestUsesOfEntriesAreNoted(t *testing.T) {
	w := newWorld(t)
	r := w.facts("exec", args{"command": "uname -s"})
	if a := r.Facts.Analysis; a.Covered || len(a.Always) != 1 {
		t.Fatalf("%+v", a)
	}
	w.must(w.commands.Allow(t.Context(), w.agent, r.Facts.Analysis.Always))
	w.ok("exec", args{"command": "uname -s"})
	w.file.Close() // writes what is noted
	content, err := os.ReadFile(filepath.Join(w.home, ".toolward", allowlist.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), `"lastUsedCommand": "uname -s"`) {
		t.Errorf("%s", content)
	}
}

func TestFactsOfCommands(t *testing.T) {
	w := newWorld(t)
	if got := w.facts("exec", args{"command": "curl -s https://example.org/x | head -1"}).Facts.External; len(got) != 1 || !strings.Contains(got[0], "example.org") {
		t.Errorf("sources of content: %q", got)
	}
	if got := w.facts("exec", args{"command": "ls"}).Facts.External; got != nil {
		t.Errorf("sources of content: %q", got)
	}
	codes := func(command string) (codes []string) {
		for _, f := range w.facts("exec", args{"command": command}).Facts.Findings {
			codes = append(codes, f.Code)
		}
		return codes
	}
	for command, want := range map[string]string{
		"rm -rf /": "command_dangerous", "echo aGk= | base64 -d | sh": "command_hidden", "python3 -c 'print(1)'": "command_inline",
	} {
		if got := codes(command); len(got) == 0 || got[0] != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// TestCommandsThroughTheGateway: under the presets for coding agents everyday commands run, everything else waits.
func TestCommandsThroughTheGateway(t *testing.T) {
	w := newWorld(t)
	if _, err := w.commands.Configure(command.Configuration{Gateway: command.Config{Preset: command.Developer}, Writes: true}); err != nil {
		t.Fatal(err)
	}
	snapshot, _, err := policy.Compile(policy.Config{TEG: policy.TEG{Preset: policy.PresetWorkspace}}, w.box.Tools())
	if err != nil {
		t.Fatal(err)
	}
	w.put("ws/go.mod", "module x\n")
	for command, runs := range map[string]bool{
		"ls -l | wc -l": true, "mkdir -p a/b && touch a/b/c": true, "grep -n module go.mod > out": true,
		"python3 -c 'print(1)'": false, "cat ~/.ssh/id_rsa": false, "for i in 1; do ls; done": true, "while true; do ls; done": false, "for f in ~/.ssh/id_rsa; do cat $f; done": false, "curl https://example.org": false,
		"rm -rf ..": false, "sh -c 'ls; cat ~/.ssh/id_rsa'": false, "touch ~/.bashrc": false,
	} {
		gate := gatetest.New(t, toolward.Ask, w.box.Tools()...)
		gate.Policy.JudgeFunc = snapshot.Judge
		asked := false
		gate.Approver.AskFunc = func(context.Context, *toolward.Question) (toolward.Answer, error) {
			asked = true
			return toolward.Answer{ApprovalID: "1", Decision: toolward.DenyCall}, nil
		}
		_, err := gate.Call(t.Context(), w.call("exec", args{"command": command}))
		if runs != (err == nil) || runs == asked {
			t.Errorf("%s: asked %t, %v", command, asked, err)
		}
	}
}

// TestTextsOfSeveralCommandsRun: what they come to runs, as a shell would have run the text.
func TestTextsOfSeveralCommandsRun(t *testing.T) {
	w := newWorld(t)
	if _, err := w.commands.Configure(command.Configuration{Gateway: command.Config{Preset: command.Developer}, Writes: true}); err != nil {
		t.Fatal(err)
	}
	w.put("ws/a", "1\n")
	for text, want := range map[string]string{
		"for i in 1 2; do echo \"n$i\"; done | sort -r":         "n2\nn1\n",
		"X=a\ncat $X\necho \"$X-$(cat a)-$?\"":                  "1\na-1-0\n",
		"cat > b <<'E'\n$x\nE\ncat b":                           "$x\n",
		"if [ -f a ]; then echo yes; else echo no; fi":          "yes\n",
		"(mkdir -p d && cd d && pwd) >/dev/null; ls \\\n  -d d": "d\n",
	} {
		if got := w.ok("exec", args{"command": text}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestClientCommands(t *testing.T) {
	w := newWorld(t)
	r := w.facts("exec", args{"command": "true"})
	facts, err := w.box.ClientCommand(t.Context(), r, "ls *.go | wc -l", false)
	if err != nil || facts.Analysis == nil || !facts.Analysis.Understood || facts.Prepared == nil {
		t.Fatalf("%v %+v", err, facts)
	}
	// Only the client knows what its variables hold.
	facts, err = w.box.ClientCommand(t.Context(), r, "cat $FILE", false)
	if err != nil || facts.Analysis.Covered {
		t.Errorf("%v %+v", err, facts.Analysis)
	}
	if _, err := w.box.exec(t.Context(), &toolward.Request{Tool: r.Tool, Params: r.Params, Facts: facts}); err == nil {
		t.Error("a command that was judged for a client was run here")
	}
	if _, err := json.Marshal(Assessment(&toolward.Request{Facts: facts})); err != nil {
		t.Error(err)
	}
}

// TestCommandsKeepAwayFromTheGate: an agent cannot start, read or change what guards it, not even by asking.
func TestCommandsKeepAwayFromTheGate(t *testing.T) {
	w := newWorld(t)
	snapshot, _, err := policy.Compile(policy.Config{Tools: visible.Tools{Exec: visible.Exec{Security: "full", Ask: "off"}}}, w.box.Tools())
	if err != nil {
		t.Fatal(err)
	}
	for command, refused := range map[string]bool{
		"cat ~/.toolward/state.db": true, "echo x > " + w.home + "/.toolward/toolward.jsonc": true, "echo x > ~/.toolward/toolward.jsonc": false, "sh -c 'rm ~/.toolward/exec-approvals.json'": true,
		"find ~/.toolward -name state.db -delete": true, "ls | xargs rm -r ~/.toolward": true, "ls ~": false, "cat ws": false,
	} {
		j := snapshot.Judge(w.facts("exec", args{"command": command}))
		if (j.Verdict == toolward.Deny) != refused {
			t.Errorf("%s: %s %+v", command, j.Verdict, j.Reasons)
		}
	}
}
