package shell

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// plainSeeds have what the way without the parser must leave to the parser, or must take as the parser does.
var plainSeeds = []string{
	"cat main.go util.go | grep -n 'TO DO' | sort -u | head -n 20", `git commit -m "it's done"`, "a&&b||c;d", "a ; ;b", "a|", "| a", "a;", "a &&", "a &",
	"a=b", "a=b c", "'a' b", "% a", "%1", "- a", "if a", "a if", "time a", "let a", `a "$b"`, "a 'b", `a b'c"d'"e'f"`, "a ''", "a '' \"\"", "a\tb  c ", " a",
	"declare x", "a #b", "a b#c", "a ~", "a b=~", "@test a", "2 a", "a 2", "a 'b\\'", "a 'b\\\nc'", "a \\", "a 'é'", "a é", "in a", "a --b=c:d,e@f+g%h/i_j.k", "a |& b", "a;;b",
	"a '((((' b", "nameref a", "coproc a", "a '\x00'", "a && && b", "a | | b", "[ a ]", "a {}", "a }", "{ a", "} a", "! a", "function a", "a()", "a'('b", "else", "a else;fi", "end", "foreach a",
}

// checkPlain fails if a text that is taken apart without the parser would be something else for the parser.
func checkPlain(t *testing.T, text string) (plainly bool) {
	t.Helper()
	trimmed := strings.Trim(text, " \t\n")
	segments := plain(trimmed)
	if segments == nil {
		return false
	}
	want, err := parse(text)
	if err != nil {
		t.Fatalf("%q: the parser refuses it: %v", text, err)
	}
	for i := range want.Segments {
		for j := range want.Segments[i].Words {
			want.Segments[i].Words[j].node = nil
		}
	}
	if got := (&Command{Text: trimmed, Segments: segments}); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\n%+v, for the parser\n%+v", text, got, want)
	}
	return true
}

// TestPlainIsWhatTheParserSays compares both ways on every text that the repository has, and on mutations of them.
func TestPlainIsWhatTheParserSays(t *testing.T) {
	texts := append(repositoryTexts(t), plainSeeds...)
	taken := 0
	for _, text := range texts {
		if checkPlain(t, text) {
			taken++
		}
	}
	t.Logf("%d of %d texts are plain", taken, len(texts))
	if taken < len(texts)/5 {
		t.Errorf("only %d of %d texts are plain: the comparison says little", taken, len(texts))
	}
	random := rand.New(rand.NewPCG(4, 4))
	const pieces = "aaabz09 ||&&;;''\"\"=%-./~#!{}()[]$\\\n\t*?<>@+,:^é`"
	for range 200_000 {
		text := []byte(texts[random.IntN(len(texts))])
		if len(text) > 200 {
			continue
		}
		for range 1 + random.IntN(3) {
			at, piece := random.IntN(len(text)+1), pieces[random.IntN(len(pieces))]
			if at < len(text) && random.IntN(2) == 0 {
				text[at] = piece
			} else {
				text = append(text[:at:at], append([]byte{piece}, text[at:]...)...)
			}
		}
		checkPlain(t, string(text))
	}
}

// repositoryTexts are all commands, and other texts, of the vectors and lists in the repository.
func repositoryTexts(t *testing.T) (texts []string) {
	t.Helper()
	var collect func(value any)
	collect = func(value any) {
		switch v := value.(type) {
		case string:
			texts = append(texts, v)
		case []any:
			for _, e := range v {
				collect(e)
			}
		case map[string]any:
			for _, e := range v {
				collect(e)
			}
		}
	}
	files, err := filepath.Glob("testdata/vectors/*.json")
	for _, pattern := range []string{"../command/testdata/*.txt", "../internal/shellfuzz/testdata/*.txt", "../internal/attacks/testdata/*/*.json", "../*/testdata/vectors/*.json", "../*/*/testdata/vectors/*.json"} {
		more, e := filepath.Glob(pattern)
		if e != nil {
			err = e
		}
		files = append(files, more...)
	}
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files of texts: %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") {
			var value any
			if err := json.NewDecoder(bytes.NewReader(content)).Decode(&value); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			collect(value)
			continue
		}
		for line := range strings.SplitSeq(string(content), "\n") {
			_, command, _ := strings.Cut(line, " ")
			texts = append(texts, strings.ReplaceAll(line, "␤", "\n"), command)
		}
	}
	slices.Sort(texts) // objects of JSON have no order
	return slices.Compact(texts)
}

// FuzzPlain: what is taken apart without the parser is what the parser says.
func FuzzPlain(f *testing.F) {
	for _, seed := range append(plainSeeds, fuzzSeeds...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { checkPlain(t, text) })
}
