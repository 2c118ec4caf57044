package command

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/shell"
)

// vectorInput is what the cases about whole commands and patterns are given.
type vectorInput struct {
	Layout, Command, Home, Cwd, Pattern, Executable string

	Path               []string
	Files              map[string]string
	Allowlist          []string
	SafeBins           []string
	SafeBinTrustedDirs []string
	StrictInlineEval   *bool
	Security           *modes.Security
	Ask                *modes.Ask

	SkillBins       map[string]string
	AutoAllowSkills *bool
}

// vectorWorld is a layout of the vectors with what a case puts over it.
func vectorWorld(t *testing.T, in *vectorInput) *world {
	t.Helper()
	var doc struct {
		Layouts map[string]struct {
			Home, Cwd string
			Path      []string
			Files     map[string]string
		}
	}
	for _, dir := range []string{os.Getenv("TOOLWARD_VECTORS"), filepath.Join("testdata", "vectors")} {
		raw, err := os.ReadFile(filepath.Join(dir, "exec.json"))
		if dir == "" || err != nil {
			continue
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		if l, ok := doc.Layouts[in.Layout]; ok {
			files := maps.Clone(l.Files)
			maps.Copy(files, in.Files)
			w := &world{files: newLayout(files), home: l.Home, dir: l.Cwd, path: l.Path}
			if in.Path != nil {
				w.path = in.Path
			}
			if in.Home != "" {
				w.home = in.Home
			}
			if in.Cwd != "" {
				w.dir = in.Cwd
			}
			return w
		}
	}
	t.Fatalf("there is no layout %q", in.Layout)
	return nil
}

func TestEvaluateVectors(t *testing.T) {
	runEvaluate(t, "evaluate", func(t *testing.T, input json.RawMessage) map[string]any {
		var in vectorInput
		gatetest.Decode(t, input, &in)
		if len(in.SkillBins) > 0 || in.AutoAllowSkills != nil {
			gatetest.Waits(t, "there are no skills, whose programs run without a question")
		}
		w := vectorWorld(t, &in)
		s := Policy{
			Preset: Strict, SafeBins: in.SafeBins, SafeBinTrustedDirs: in.SafeBinTrustedDirs,
			LooseInlineEval: in.StrictInlineEval != nil && !*in.StrictInlineEval,
		}
		inForce := modes.Default()
		if in.Security != nil {
			inForce.Security = *in.Security
		}
		if in.Ask != nil {
			inForce.Ask = *in.Ask
		}
		// An entry of the vectors is a path that says yes to any ordinary effect.
		for _, p := range in.Allowlist {
			s.Entries = append(s.Entries, allowlist.Listed{Entry: allowlist.Entry{Pattern: p, Effects: []string{allowlist.EffectRead, allowlist.EffectWrite, allowlist.EffectNetwork}}})
			if strings.TrimSpace(p) == "*" {
				s.Entries[len(s.Entries)-1].Effects = nil
			}
		}
		e, _, err := New(s, w.home, NewResolver(w.files))
		if err != nil {
			t.Fatal(err)
		}
		return answerOf(e.Evaluate(&Request{Command: in.Command, Dir: w.dir, Getenv: w.getenv, Level: toolward.Normal, Places: plainPlaces{}}), inForce)
	})
}

// outcomes are the verdicts in the words of the vectors.
var outcomes = map[toolward.Verdict]string{toolward.Deny: "deny", toolward.Ask: "ask", toolward.Allow: "run"}

func answerOf(a *Assessment, inForce modes.Modes) map[string]any {
	by := []string{}
	for i := range a.Segments {
		if s := a.Segments[i].By; s != NotSatisfied {
			by = append(by, string(s))
		} else {
			by = append(by, "-")
		}
	}
	patterns := []string{}
	for _, entry := range a.Always {
		if inForce.Security != modes.SecurityAllowlist {
			break // nothing is offered where no allowlist applies
		}
		if !slices.Contains(patterns, entry.Pattern) {
			patterns = append(patterns, entry.Pattern)
		}
	}
	verdict := modes.Judge(inForce, toolward.HostGateway, toolward.Normal, a.Analysis())
	answer := map[string]any{
		"analysisOk": a.OK, "allowlistSatisfied": a.Satisfied, "satisfiedBy": by,
		"forcedAsk": append([]string{}, a.Findings...), "requiresApproval": verdict == toolward.Ask, "outcome": outcomes[verdict],
		"allowAlwaysPatterns": patterns,
	}
	if a.Reason != "" {
		answer["reason"] = a.Reason
	}
	if a.Enforced != "" {
		answer["enforcedCommand"] = a.Enforced
	}
	return answer
}

// runEvaluate compares what is wanted and no more: a key that is not wanted is not asserted, except enforcedCommand.
func runEvaluate(t *testing.T, kind string, answer func(t *testing.T, input json.RawMessage) map[string]any) {
	wants := map[string]json.RawMessage{}
	for _, c := range gatetest.Vectors(t, "exec.json", kind)[kind] {
		wants[string(c.Input)] = c.Want
	}
	gatetest.Run(t, "exec.json", kind, func(t *testing.T, input json.RawMessage) any {
		got := answer(t, input)
		var want map[string]any
		gatetest.Decode(t, wants[string(input)], &want)
		for key := range got {
			if _, asserted := want[key]; !asserted && key != "enforcedCommand" {
				delete(got, key)
			}
		}
		return got
	})
}

func TestMatchVectors(t *testing.T) {
	gatetest.RunAsserted(t, "exec.json", "match", func(t *testing.T, input json.RawMessage) map[string]any {
		var in vectorInput
		gatetest.Decode(t, input, &in)
		w := vectorWorld(t, &in)
		m := &moment{r: NewResolver(w.files)}
		prog := m.program(in.Executable, Where{Dir: w.dir, Home: w.home, Path: strings.Join(w.path, ":")})
		p := compilePattern(in.Pattern, w.home, false)
		return map[string]any{
			"match":        p.matches(&prog, func(p string) string { return m.real(p, anything) }),
			"resolvedPath": orNil(prog.Path), "realPath": orNil(prog.Real),
		}
	})
}

func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func TestSafeBinVectors(t *testing.T) {
	gatetest.RunAsserted(t, "exec.json", "safebin", func(t *testing.T, input json.RawMessage) map[string]any {
		var in struct {
			Bin  string
			Args []string
		}
		gatetest.Decode(t, input, &in)
		bin := safeBins[in.Bin]
		args := []safeBinArgument{}
		for _, a := range in.Args {
			args = append(args, safeBinArgument{text: a})
		}
		return map[string]any{"allowed": bin != nil && bin.allows(args)}
	})
}

func TestObfuscationVectors(t *testing.T) {
	gatetest.RunAsserted(t, "exec.json", "obfuscation", func(t *testing.T, input json.RawMessage) map[string]any {
		var in struct{ Command string }
		gatetest.Decode(t, input, &in)
		var wanted struct{ IDs []string }
		for _, c := range gatetest.Vectors(t, "exec.json", "obfuscation")["obfuscation"] {
			if string(c.Input) == string(input) {
				gatetest.Decode(t, c.Want, &wanted)
			}
		}
		got := shell.Obfuscations(in.Command)
		slices.SortFunc(got, func(a, b string) int { return slices.Index(wanted.IDs, a) - slices.Index(wanted.IDs, b) })
		return map[string]any{"ids": append([]string{}, got...)}
	})
}
