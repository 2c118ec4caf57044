package display

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestLine(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "grep -E 'a|b' file", "grep -E 'a|b' file"},
		{"backslash", `printf '%s\n' x`, `printf '%s\n' x`},
		{"other languages", "привет κόσμε naïve 日本語 שלום", "привет κόσμε naïve 日本語 שלום"},
		{"typography", "wait… 5 m² ½ “quoted” – dash", "wait… 5 m² ½ “quoted” – dash"},
		{"zero-width space", "ls\u200b;touch x", "ls⟦U+200B⟧;touch x"},
		{"byte order mark", "ls\ufeff;id", "ls⟦U+FEFF⟧;id"},
		{"soft hyphen", "ls\u00ad;id", "ls⟦U+00AD⟧;id"},
		{"Cyrillic letter in a Latin word", "l\u0455 -la", "l⟦U+0455⟧ -la"},
		{"word of look-alikes only", "\u0440\u0430\u0441\u0435", "⟦U+0440⟧⟦U+0430⟧⟦U+0441⟧⟦U+0435⟧"},
		{"Hangul filler", "git\u3164 status", "git⟦U+3164⟧ status"},
		{"terminal escape", "ls\x1b]0;title\x07", "ls⟦U+001B⟧]0;title⟦U+0007⟧"},
		{"8-bit escape", "ls\u009b2J", "ls⟦U+009B⟧2J"},
		{"carriage return", "echo hi\rls", "echo hi⟦U+000D⟧ls"},
		{"backspace", "ls\bid", "ls⟦U+0008⟧id"},
		{"next line", "ls\u0085id", "ls⟦U+0085⟧id"},
		{"ideographic space", "ls\u3000-la", "ls⟦U+3000⟧-la"},
		{"right-to-left override", "a\u202etxt.exe", "a⟦U+202E⟧txt.exe"},
		{"tag characters", "hi\U000e0041\U000e0042", "hi⟦U+E0041⟧⟦U+E0042⟧"},
		{"full width", "ｒｍ", "⟦U+FF52⟧⟦U+FF4D⟧"},
		{"fraction slash", "a\u2044b", "a⟦U+2044⟧b"},
		{"Greek question mark", "ls\u037eid", "ls⟦U+037E⟧id"},
		{"invalid byte", "a\xffb", "a⟦0xFF⟧b"},
		{"forged escape", "⟦U+200B⟧", "⟦U+27E6⟧U+200B⟦U+27E7⟧"},
		{"line break", "a\nb\tc", "a⟦newline⟧b⟦tab⟧c"},
		{"spaces push the tail away", "ls" + strings.Repeat(" ", 4000) + "; id", "ls⟦4000 spaces⟧; id"},
		{"stacked marks", "a\u0301\u0301\u0301\u0301", "a\u0301\u0301\u0301⟦U+0301⟧"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Line(c.in); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestBlockKeepsLinesButNotHoles(t *testing.T) {
	if got := Block("a\n\tb\n\nc\n"); got != "a\n\tb\n\nc\n" {
		t.Errorf("plain lines changed: %q", got)
	}
	got := Block("ls" + strings.Repeat("\n", 19) + "touch x")
	if want := "ls\n⟦18 blank lines⟧\ntouch x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLimitKeepsHeadAndTail(t *testing.T) {
	shown := Show("echo "+strings.Repeat("a", 9000)+"; touch x", Options{Limit: 300})
	text := shown.String()
	if !strings.HasPrefix(text, "echo a") || !strings.HasSuffix(text, "; touch x") || !strings.Contains(text, "8714 characters not shown") {
		t.Errorf("got %q", text)
	}
	if shown.Cut != 8714 {
		t.Errorf("cut %d", shown.Cut)
	}
}

// Whatever comes in, nothing that moves a cursor or hides goes out.
func TestNothingHiddenGoesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		out := Line(in)
		if !utf8.ValidString(out) || HasInvisible(out) || strings.ContainsAny(out, "\n\t") {
			t.Fatalf("%q was shown as %q", in, out)
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	text := strings.Repeat("go test ./... -run 'TestName' ", 40)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if len(Show(text, Options{Lines: true}).Pieces) != 1 {
			b.Fatal("not plain")
		}
	}
}
