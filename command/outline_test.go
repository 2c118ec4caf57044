package command

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/display"
)

func outlineText(o *display.Outline) string {
	var b strings.Builder
	for _, row := range o.Rows(400) {
		b.WriteString(row.Text + "\n")
	}
	return b.String()
}

func TestOutline(t *testing.T) {
	w := newWorld(t, map[string]string{
		"/ws/a.go": "f", "/ws/b b.go": "f", "/usr/bin/grep2": "l:grep", "/ws/bin/tool": "x", "/ws/.env": "f", "/ws/sub": "d",
	})
	w.path = append([]string{"/ws/bin"}, w.path...)
	for _, c := range []struct {
		name, command string
		preset        Preset
		want          string // rows that must follow each other somewhere, " … " for others between
	}{
		{"both forms of words", `ls *.go ~ "$HOME/x"`, Developer, `
ok    ls a.go 'b b.go' /home/dev /home/dev/x
        program /usr/bin/ls
        written *.go
          runs as 2 words: a.go 'b b.go'
        written ~
          runs as /home/dev
        written "$HOME/x"
          runs as /home/dev/x`},
		{"a pattern without files stays", `ls *.zig`, Developer, "ok    ls '*.zig'\n        program /usr/bin/ls\nok      reads '*.zig' — in the workspace"},
		{"files, pipes and how commands follow", `cat README.md | sort > out.txt 2>&1 && git status || tee x ; ls`, Developer, `
ok    cat README.md
…
ok    | into sort
        program /usr/bin/sort
ok      redirection >out.txt — writes /ws/out.txt, in the workspace
ok      redirection 2>&1 — changes nothing
…
ok    && then git status
…
ok    || or else tee x
…
ok    ; then ls`},
		{"dangers come first", `git status; rm -rf ~`, Developer, "!!    DANGER: it deletes a whole tree\n      Understood"},
		{"why a place asks", `cat .env`, Developer, "asks    reads .env — which holds secrets; argument-read\nA yes"},
		{"where it starts", `cd sub && ls`, Developer, "ok    cd sub\n        goes to /ws/sub\nok    && then ls\n        in /ws/sub"},
		{"wrappers and links", `timeout 5 grep2 -n x README.md`, Developer, "        started by /usr/bin/timeout 5\n        program /usr/bin/grep2 — which is /usr/bin/grep"},
		{"a script and what it runs", `bash -c 'cat README.md | sudo tee /etc/x'`, Developer, `
        runs this script:
ok        cat README.md
…
asks      | into sudo tee /etc/x
asks        because sudo starts another program in a way that is not looked into — blocked`},
		{"a carried command", `find . -name x -exec head {} +`, Developer, "ok      runs, with names added, head '{}'\n          program /usr/bin/head\nok        reads '{}'"},
		{"code that nobody looks into", `find . -exec rm {} +`, Developer, "asks    runs, with names added, rm '{}' — argument-exec\n          program /usr/bin/rm\nasks      writes '{}' — argument-write\nasks    because of code in -exec — inline-eval"},
		{"here-document", "cat > a.go <<'EOF'\n1\n2\n3\n4\n5\n6\n7\n8\nEOF", Developer, `
        gets this text as input, 8 lines, 16 bytes:
          1
          2
          3
          4
          5
          6
          … and 2 more lines`},
		{"a program that somebody may have put there", `tool`, Developer, "!!    DANGER: another program may stand behind tool — "},
		{"code in the arguments", `python3 -c 'import os'`, Developer, "!!    code stands in the arguments: read it, nobody else has"},
		{"hides what it does", `echo aWQ= | base64 -d | sh`, Developer, "!!    it is written as commands are that hide what they do: "},
		{"not understood", `echo $(id)`, Developer, "!!    Not understood: it puts the output of a command into another — command-substitution\n      If it is allowed, a shell (bash) gets exactly this text."},
		{"what always would save", `git status && rm README.md`, Strict, `
asks    because nothing says yes to /usr/bin/git — not-listed
…
      "Always" would let this run without a question from now on:
        /usr/bin/git, reading
        /usr/bin/rm, reading and writing in the workspace, also by the project's code
END`},
		{"what always would save exactly", `rm -rf /tmp/x`, Developer, "from now on:\n        exactly: /usr/bin/rm -rf /tmp/x\nEND"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := outlineText(w.evaluate(t, onMiss(c.preset), c.command).Outline()) + "END"
			rest := got
			for _, part := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(c.want, "\n"), "\nA yes"), "\n…\n") {
				at := strings.Index(rest, part)
				if at < 0 {
					t.Fatalf("%q is missing, or not in its place, in:\n%s", part, got)
				}
				rest = rest[at+len(part):]
			}
		})
	}
}

func TestOutlineSaysWhatSatisfied(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/local/bin/own": "x"})
	s := onMiss(Strict, "/usr/bin/git")
	s.Entries[0].Effects, s.Entries[0].Agent = []string{allowlist.EffectRead}, "main"
	s.SafeBins = []string{"head"}
	s.Rules = []Rule{
		{Prefix: []Alternatives{{"own"}}, Decision: Allow, Justification: "it is ours"},
		{Prefix: []Alternatives{{"rm"}}, Decision: Forbidden, Justification: "never"},
	}
	got := outlineText(w.evaluate(t, s, "git status | head -1; own; rm x").Outline())
	for _, want := range []string{
		"allowed by the entry /usr/bin/git, reading — of agent main\n", "allowed as a safe bin", "allowed by the rule about own — it is ours\n",
		"no    refused by a rule: never\n", "no    ; then rm x\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

// TestOutlineLaws: whatever the command, people see the words of every program, an "asks" wherever nothing says yes, and
// every entry that "always" would save.
func TestOutlineLaws(t *testing.T) {
	w := newWorld(t, nil)
	r := rand.New(rand.NewPCG(3, 5))
	understood := 0
	for range 1500 {
		command := anyCommand(r)
		for r.IntN(3) == 0 {
			command += []string{"| ", "&& ", "; ", "|| "}[r.IntN(4)] + anyCommand(r)
		}
		a := w.evaluate(t, onMiss([]Preset{Strict, Developer}[r.IntN(2)]), command)
		o := a.Outline()
		has := func(want display.OutlineLine) {
			if !slices.ContainsFunc(o.Lines, func(l display.OutlineLine) bool {
				return l.Kind == want.Kind && l.Mark == want.Mark && l.Text == want.Text
			}) {
				t.Fatalf("%q: %+v is missing in\n%s", command, want, outlineText(o))
			}
		}
		if o.Cut == 0 {
			eachSegment(a.Segments, func(s *Segment) {
				if s.By == NotSatisfied && !slices.ContainsFunc(o.Lines, func(l display.OutlineLine) bool { return l.Mark == display.MarkAsk }) {
					t.Fatalf("%q asks, its outline does not:\n%s", command, outlineText(o))
				}
			})
			for i := range a.Segments {
				has(display.OutlineLine{Kind: display.LineCommand, Mark: a.Segments[i].mark(), Text: display.Words(a.Segments[i].Argv...)})
			}
		}
		for _, e := range a.Always {
			has(display.OutlineLine{Kind: display.LineAlways, Text: display.AllowedProgram(e.Pattern, e.Effects, e.Argv)})
		}
		if a.OK {
			understood++
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var back display.Outline
		if err := json.Unmarshal(text, &back); err != nil || outlineText(&back) != outlineText(o) {
			t.Fatalf("%q: the outline changes on its way through JSON: %v", command, err)
		}
	}
	if understood < 500 {
		t.Fatalf("only %d commands were understood: the laws were hardly tried", understood)
	}
}
