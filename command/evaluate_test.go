package command

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
)

func TestDeveloper(t *testing.T) {
	w := newWorld(t, map[string]string{
		"/ws/scripts/test.sh": "x", "/ws/.env": "f", "/tmp/evil/Makefile": "f", "/ws/src/a.go": "f", "/ws/.git/config": "f",
	})
	for command, want := range map[string]struct {
		outcome toolward.Verdict
		code    Code
	}{
		"git status":                               {toolward.Allow, ""},
		"go test ./... > out.txt 2>&1":             {toolward.Allow, ""},
		"grep -rn TODO src | head -n 5":            {toolward.Allow, ""},
		"cat README.md && ls src":                  {toolward.Allow, ""},
		"./scripts/test.sh --fast":                 {toolward.Allow, ""},
		"bash scripts/test.sh":                     {toolward.Allow, ""},
		"cd src && go vet ./...":                   {toolward.Allow, ""},
		"find . -name '*.go' -exec grep -l x {} +": {toolward.Allow, ""},
		"cat .env":                      {toolward.Ask, ArgumentRead},
		"cat ~/.ssh/id_ed25519":         {toolward.Ask, ArgumentRead},
		"grep -r KEY /home/dev":         {toolward.Ask, ArgumentRead},
		"echo x > .git/config":          {toolward.Ask, Redirected},
		"echo x > /tmp/x":               {toolward.Ask, Redirected},
		"cp README.md /etc/motd":        {toolward.Ask, ArgumentWrite},
		"make -C /tmp/evil":             {toolward.Ask, ArgumentExec},
		"cd /tmp/evil && make":          {toolward.Ask, ArgumentExec},
		"curl https://example.com":      {toolward.Ask, ArgumentNetwork},
		"find . -exec rm {} +":          {toolward.Ask, InlineCode},
		"find . -delete":                {toolward.Ask, InlineCode},
		"python3 -c 'print(1)'":         {toolward.Ask, InlineCode},
		"sudo ls":                       {toolward.Ask, BlockedWrapper},
		"nothere":                       {toolward.Ask, NotFound},
		"bash":                          {toolward.Ask, BlockedWrapper},
		"cat < /dev/tcp/203.0.113.5/80": {toolward.Ask, ""},
		"echo /home/dev/.ssh/id_ed25519 | xargs cat": {toolward.Ask, ArgumentExec},
	} {
		a := w.evaluate(t, onMiss(Developer), command)
		if verdict(a) != want.outcome || want.code != "" && !slices.Contains(codes(a), want.code) {
			t.Errorf("%s: %s %v, want %s %s", command, verdict(a), codes(a), want.outcome, want.code)
		}
	}
}

func TestATenseSession(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/tool": "x"})
	s := onMiss(Developer, "/usr/bin/tool", "*")
	s.Entries[1].Pattern = "/usr/bin/curl"
	for command, normal := range map[string]toolward.Verdict{
		"cat README.md": toolward.Allow, "tool x": toolward.Allow, "touch x": toolward.Allow, "go test ./...": toolward.Allow, "cat /etc/hostname": toolward.Allow, "curl https://example.com": toolward.Allow,
	} {
		if a := w.evaluate(t, s, command); verdict(a) != normal {
			t.Errorf("%s: %s %v at level normal", command, verdict(a), codes(a))
		}
		want := toolward.Ask
		if command == "cat README.md" {
			want = toolward.Allow
		}
		if a := w.evaluateAt(t, s, command, toolward.Elevated); verdict(a) != want {
			t.Errorf("%s: %s at level elevated, want %s", command, verdict(a), want)
		}
	}
}

func TestPathHijack(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		path  []string
		allow string
		want  toolward.Verdict
	}{
		"workspace on the path":       {map[string]string{"/ws/bin/git": "x"}, []string{"/ws/bin", "/usr/bin"}, "/**", toolward.Ask},
		"the very file is named":      {map[string]string{"/ws/bin/git": "x"}, []string{"/ws/bin", "/usr/bin"}, "/ws/bin/git", toolward.Allow},
		"a link into the workspace":   {map[string]string{"/usr/local/bin/git": "l:/ws/evil", "/ws/evil": "x"}, nil, "/usr/local/bin/git", toolward.Ask},
		"everybody can write there":   {map[string]string{"/opt/open": "w", "/opt/open/git": "x"}, []string{"/opt/open"}, "/opt/*/git", toolward.Ask},
		"empty and relative elements": {map[string]string{"/ws/git": "x"}, []string{"", ".", "bin", "/usr/bin"}, "/usr/bin/git", toolward.Ask},
	} {
		w := newWorld(t, c.files)
		if c.path != nil {
			w.path = c.path
		}
		if a := w.evaluate(t, onMiss(Strict, c.allow), "git status"); verdict(a) != c.want {
			t.Errorf("%s: %s %v %+v", name, verdict(a), codes(a), a.Segments[0].Program)
		}
	}
}

func TestResolutionFollowsChanges(t *testing.T) {
	files := newLayout(map[string]string{"/a/tool": "x", "/b/tool": "x"})
	stamped := &stampedLayout{layout: files, stamps: map[string]int64{}}
	r := NewResolver(stamped)
	where := Where{Dir: "/", Path: "/a:/b"}
	if p := r.Program("tool", where); p.Path != "/a/tool" {
		t.Fatal(p)
	}
	delete(files, "/a/tool")
	stamped.stamps["/a"]++
	if p := r.Program("tool", where); p.Path != "/b/tool" {
		t.Errorf("removed: %+v", p)
	}
	files["/a/tool"] = "f"
	stamped.stamps["/a"]++
	r.Program("tool", where)
	files["/a/tool"] = "x" // chmod does not change the directory
	if p := r.Program("tool", where); p.Path != "/a/tool" {
		t.Errorf("made executable: %+v", p)
	}
	files["/l1"], files["/l2"] = "l:/l2", "l:/l1"
	if p := r.Program("/l1", where); p.Found() {
		t.Errorf("a loop of links: %+v", p)
	}
}

type stampedLayout struct {
	layout
	stamps map[string]int64
}

func (l *stampedLayout) Look(p string) (Node, error) {
	node, err := l.layout.Look(p)
	node.Stamp.Changed = l.stamps[p]
	return node, err
}

func TestRules(t *testing.T) {
	w := newWorld(t, nil)
	s := onMiss(Strict, "/usr/bin/git")
	s.Rules = []Rule{
		{Prefix: []Alternatives{{"git"}, {"push", "pull"}}, Decision: Prompt, Match: []string{"git push origin"}, NotMatch: []string{"git status"}},
		{Prefix: []Alternatives{{"git"}, {"push"}, {"--force"}}, Decision: Forbidden},
		{Prefix: []Alternatives{{"rm"}, {"-r"}, {"build"}}, Decision: Allow},
	}
	for command, want := range map[string]toolward.Verdict{
		"git status": toolward.Allow, "git pull": toolward.Ask, "git push --force": toolward.Deny, "/usr/bin/git push --force": toolward.Deny,
		"rm -r build": toolward.Allow, "rm -r .git": toolward.Ask, "rm -r build ~/.ssh": toolward.Ask, "nice git push --force": toolward.Deny,
		"bash -c 'git push --force'": toolward.Deny,
	} {
		if a := w.evaluate(t, s, command); verdict(a) != want {
			t.Errorf("%s: %s %v, want %s", command, verdict(a), codes(a), want)
		}
	}
	s.Rules[0].NotMatch = []string{"git push"}
	if _, _, err := New(s, w.home, NewResolver(w.files)); err == nil || !strings.Contains(err.Error(), "tools.exec.rules[0].notMatch[0]") {
		t.Errorf("a failing example: %v", err)
	}
}

func TestExactArgv(t *testing.T) {
	w := newWorld(t, nil)
	s := onMiss(Strict)
	s.Entries = []allowlist.Listed{{Entry: allowlist.Entry{Pattern: "/usr/bin/rm", Argv: []string{"/usr/bin/rm", "-r", "build"}}}}
	for command, want := range map[string]toolward.Verdict{"rm -r build": toolward.Allow, "rm -r build x": toolward.Ask, "rm -r": toolward.Ask, "rm build -r": toolward.Ask} {
		if a := w.evaluate(t, s, command); verdict(a) != want {
			t.Errorf("%s: %s, want %s", command, verdict(a), want)
		}
	}
}

func TestAfterCd(t *testing.T) {
	w := newWorld(t, map[string]string{"/ws/sub/run.sh": "x", "/ws/run.sh": "x"})
	for command, want := range map[string]toolward.Verdict{
		"cd sub && ./run.sh": toolward.Allow, "cd sub; ./run.sh": toolward.Ask, "cd sub && ls; ./run.sh": toolward.Allow,
		"cd new && ./run.sh": toolward.Ask, "ls | cd sub && ./run.sh": toolward.Allow, "false || cd sub && ./run.sh": toolward.Ask,
	} {
		if a := w.evaluate(t, onMiss(Strict, "/ws/sub/run.sh", "/ws/run.sh", "/usr/bin/ls", "/usr/bin/true"), command); verdict(a) != want {
			t.Errorf("%s: %s %v, want %s", command, verdict(a), codes(a), want)
		}
	}
}

func TestAssessmentIsJSON(t *testing.T) {
	w := newWorld(t, nil)
	a := w.evaluate(t, onMiss(Developer), "timeout 5 bash -c 'grep x README.md' > out && find . -exec head {} +")
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"satisfiedBy":"inner"`, `"wrappers":[{"name":"timeout"`, `"runs":{`, `"place":"workspace"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
}

// commands of random words, from which the laws are tried.
func anyCommand(r *rand.Rand) string {
	words := strings.Fields(`git rg cat ls grep find xargs sort head sh bash -c -e -r --output=x . .. /etc/passwd README.md ~/.ssh/x
		$HOME *.md {a,b} 'x' "y" -- -l status env nice timeout 5 make python3 cd src echo > out < in rm -rf / tee 'ls|cat' .env`)
	var b strings.Builder
	for range 1 + r.IntN(7) {
		b.WriteString(words[r.IntN(len(words))] + " ")
	}
	return b.String()
}

func TestLaws(t *testing.T) {
	w := newWorld(t, nil)
	r := rand.New(rand.NewPCG(7, 11))
	programs := []string{"/usr/bin/git", "/usr/bin/cat", "/usr/bin/*", "*", "/usr/bin/find", "/usr/bin/rm", "/usr/bin/grep", "/bin/sh"}
	ran := 0
	for range 3000 {
		command := anyCommand(r)
		for r.IntN(3) == 0 {
			command += []string{"| ", "&& ", "; ", "|| "}[r.IntN(4)] + anyCommand(r)
		}
		s := onMiss([]Preset{Strict, Developer}[r.IntN(2)])
		s.Writes = r.IntN(2) == 0
		for range r.IntN(4) {
			s.Entries = append(s.Entries, allowlist.Listed{Entry: allowlist.Entry{Pattern: programs[r.IntN(len(programs))]}})
		}
		full := w.evaluate(t, s, command)
		if verdict(full) == toolward.Allow {
			ran++
		}
		for i := range s.Entries { // fewer entries never allow more
			less := s
			less.Entries = slices.Delete(slices.Clone(s.Entries), i, i+1)
			if a := w.evaluate(t, less, command); verdict(a) == toolward.Allow && verdict(full) != toolward.Allow {
				t.Fatalf("%q: without %s it runs", command, s.Entries[i].Pattern)
			}
		}
		if more := w.evaluate(t, s, command+" ; "+anyCommand(r)); more.OK && verdict(more) == toolward.Allow && verdict(full) != toolward.Allow {
			t.Fatalf("%q: with another command it runs: %q", command, more.Command)
		}
		if tense := w.evaluateAt(t, s, command, toolward.Elevated); verdict(tense) == toolward.Allow && verdict(full) != toolward.Allow {
			t.Fatalf("%q: a tense session allows more", command)
		}
		if verdict(full) != toolward.Allow || full.Enforced == "" || strings.Contains(command, "cd ") {
			continue
		}
		// What was expanded says no more than the same words written out.
		for i := range full.Segments {
			if seg := &full.Segments[i]; len(seg.Expanded) > 0 && seg.By == ByAllowlist && seg.Entry.Pattern != "*" {
				var quoted []string
				for _, word := range seg.Argv {
					quoted = append(quoted, quote(word))
				}
				if a := w.evaluate(t, s, strings.Join(quoted, " ")); !a.Satisfied {
					t.Fatalf("%q runs, %q does not: %v", command, quoted, codes(a))
				}
			}
		}
	}
	if ran < 100 {
		t.Fatalf("only %d of the commands ran: the laws were hardly tried", ran)
	}
}

func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{"git status", "bash -c 'a && b'", "xargs -I{} sh -c '{}'", "find . -exec rm {} +", "cd a; ./b", "a | b > c"} {
		f.Add(seed)
	}
	w := newWorld(f, nil)
	e, _, err := New(onMiss(Developer, "/usr/bin/*"), w.home, NewResolver(w.files))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, command string) {
		a := e.Evaluate(&Request{Command: command, Dir: w.dir, Getenv: w.getenv, Level: toolward.Normal, Places: w})
		if verdict(a) == toolward.Allow && (!a.OK || !a.Satisfied || len(a.Findings) > 0) {
			t.Fatal(fmt.Sprintf("%q runs", command), a)
		}
	})
}
