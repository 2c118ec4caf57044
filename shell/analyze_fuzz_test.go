package shell

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"
)

var fuzzSeeds = []string{
	`ls *.go | wc -l && echo "$HOME" > x 2>&1`, "cat <<-'E' | p {a,b} ~/x\n\thi\n\tE", `LANG=C nice -n 5 p 'a' "b\"c" \d $X ${Y}z`, `a;b||c&&d|e`,
	`p [a-c]?.go {1..3} "$A"'b'c # d`, "a\\\nb", "$'x' `y` $(z) <(w) ((1))", "a << E << F\nE\nF",
}

// FuzzAnalyze: no text may make the analysis panic or slow, and what is understood is understood again from its own text.
func FuzzAnalyze(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		command, err := analyzeInTime(t, text)
		if err != nil {
			if refused, ok := errors.AsType[*NotAnalysable](err); !ok || words[refused.Reason] == "" || refused.Offset < 0 || refused.Offset > len(text) {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		again, err := Analyze(command.Text)
		if err != nil || again.Text != command.Text || len(again.Segments) != len(command.Segments) {
			t.Fatalf("%q is understood, its own text %q is not: %v", text, command.Text, err)
		}
		for i := range command.Segments {
			a, b := &command.Segments[i], &again.Segments[i]
			if !slices.Equal(a.Argv(), b.Argv()) || !slices.Equal(a.Redirs, b.Redirs) || a.Op != b.Op || len(a.Words) == 0 || a.From >= a.To || a.To > len(command.Text) {
				t.Fatalf("%q: segment %d is %+v, then %+v", text, i, a, b)
			}
		}
	})
}

// analyzeInTime analyzes; only a text that takes long three times is slow, as the machine may be busy.
func analyzeInTime(t *testing.T, text string) (command *Command, err error) {
	for range 3 {
		start := time.Now()
		command, err = Analyze(text)
		if time.Since(start) < 10*time.Millisecond {
			return command, err
		}
	}
	t.Fatalf("%d bytes took more than 10 ms: %.200q", len(text), text)
	return nil, nil
}

// FuzzExpand: no word may make the expansion panic or read outside of what it is given, and the program is one word.
func FuzzExpand(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add(seed, "v w")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		command, err := Analyze(text)
		if err != nil {
			return
		}
		in := Surroundings{
			Dir: "/d", Getenv: func(string) (string, bool) { return value, true },
			ReadDir: func(string) ([]fs.DirEntry, error) { return nil, fs.ErrNotExist },
		}
		for i := range command.Segments {
			s := &command.Segments[i]
			s.Body(in)
			expanded, err := s.Expand(in)
			if err != nil {
				continue
			}
			if len(expanded.Argv) == 0 || len(expanded.Argv) != len(expanded.Origin) || expanded.Origin[0] != 0 || !slices.IsSorted(expanded.Origin) {
				t.Fatalf("%q: %+v", text, expanded)
			}
			if len(expanded.Argv) > 1 && expanded.Origin[1] == 0 {
				t.Fatalf("%q: the program became two words: %q", text, expanded.Argv)
			}
		}
	})
}
