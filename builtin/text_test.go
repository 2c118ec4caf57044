package builtin

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestReplaceTexts(t *testing.T) {
	const limit = 1000
	for _, c := range []struct {
		name    string
		content string
		edits   []replacement
		want    string
		err     string
	}{
		{"one place", "a b c\n", []replacement{{"b", "x", false}}, "a x c\n", ""},
		{"several in order", "one\n", []replacement{{"one", "two", false}, {"two", "three", false}}, "three\n", ""},
		{"all places", "a a a", []replacement{{"a", "bb", true}}, "bb bb bb", ""},
		{"deletion", "keep\ndrop\n", []replacement{{"drop\n", "", false}}, "keep\n", ""},
		{"two places", "x\ny\nx\n", []replacement{{"x", "z", false}}, "", "oldText stands in 2 places (lines 1, 3)"},
		{"nothing like it", "alpha\n", []replacement{{"zzz", "y", false}}, "", "no line is like"},
		{"nearest line", "func main() {\n\treturn 1\n}\n", []replacement{{"func main(x) {", "y", false}}, "", `line 1: "func main() {"`},
		{"white space differs", "\tif x {\n\t\ty()\n\t}\n", []replacement{{"if x {\n    y()\n}", "z", false}}, "", "lines 1 to 3 differ only in white space"},
		{"empty old text", "a", []replacement{{"", "x", false}}, "", "oldText is empty"},
		{"no change", "a", []replacement{{"a", "a", false}}, "", "nothing would change"},
		{"CRLF kept", "a\r\nb\r\nc\r\n", []replacement{{"a\nb", "1\n2\n3", false}}, "1\r\n2\r\n3\r\nc\r\n", ""},
		{"LF part of a mixed file", "a\nb\nc\r\nd\r\n", []replacement{{"a\nb\n", "x\ny\n", false}}, "x\ny\nc\r\nd\r\n", ""},
		{"CRLF in arguments, LF in the file", "a\nb\n", []replacement{{"a\r\nb", "x\r\ny", false}}, "x\ny\n", ""},
		{"one line of a CRLF file", "a\r\nb\r\n", []replacement{{"b", "x\ny", false}}, "a\r\nx\r\ny\r\n", ""},
		{"end before the line end of CRLF", "a\r\nb\r\n", []replacement{{"a", "z", false}}, "z\r\nb\r\n", ""},
		{"byte order mark kept", "\ufeffa\n", []replacement{{"a", "b", false}}, "\ufeffb\n", ""},
		{"other bytes kept", "caf\xe9 a\n", []replacement{{"a\n", "b\n", false}}, "caf\xe9 b\n", ""},
		{"growth is bounded", strings.Repeat("a", 100), []replacement{{"a", strings.Repeat("b", 100), true}}, "", "grow beyond 1000 bytes"},
		{"second fails", "a b", []replacement{{"a", "x", false}, {"q", "y", false}}, "", "edit 2 of 2: oldText is not in the file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := replaceTexts(c.content, c.edits, limit)
			checkError(t, err, c.err)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case want != "" && err == nil:
		t.Errorf("no error, want one with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("error %q, want one with %q", err, want)
	}
}

func TestReplacingOneUniqueTextIsSplicing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 0, 20, -1)
		before, after, fresh := part.Draw(t, "before"), part.Draw(t, "after"), part.Draw(t, "new")
		got, n, err := replaceTexts(before+"<old>"+after, []replacement{{"<old>", fresh, false}}, 1<<20)
		if err != nil || n != 1 || got != before+fresh+after {
			t.Fatalf("got %q, %d, %v", got, n, err)
		}
	})
}

func TestDetectEncoding(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       encoding
	}{
		{"empty", "", encodingUTF8},
		{"text", "hello", encodingUTF8},
		{"UTF-8 mark", "\ufeffhello", encodingUTF8},
		{"NUL", "a\x00b", encodingBinary},
		{"UTF-16 little endian", "\xff\xfeh\x00", encodingUTF16LE},
		{"UTF-16 big endian", "\xfe\xff\x00h", encodingUTF16BE},
		{"UTF-32", "\xff\xfe\x00\x00h\x00\x00\x00", encodingBinary},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := detectEncoding([]byte(c.head)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
