package display

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Ordinary text of all languages is shown as it is.
func TestOrdinaryTextIsUnchanged(t *testing.T) {
	for _, s := range []string{
		"", "ls -la", "grep -E 'a|b' file", `printf '%s\n' x`, "#!/bin/sh\nset -e\n\tmake test\n\n\n# done\n",
		"naïve café Zürich Łódź Ångström e\u0301", "“quoted” – dash — … ™ © ½ m² 5 µs ±1 × 3 → 4 ≤ 5",
		"он с утра у оса, а я и о ней", "о том", "Я и Рома: «он сказал»", "ο άνθρωπος και η πόλη του", "Բարեւ ձեզ",
		"日本語のテキスト、（全角）！", "中文：你好，世界。", "한국어 텍스트", "שלום עולם", "مرحبا بالعالم", "می\u200cخواهم", "क्\u200dष हिन्दी", "ภาษาไทย",
		"done ✅ ⚠\ufe0f ❤\ufe0f 👍🏽 👩\u200d💻 👨\u200d👩\u200d👧", "├── a\n└── b │ █", "α = 0.5, Δx", "3D-модель и IT-отдел", "x ∈ ℝ, ∀ε>0",
	} {
		if got := Block(s); got != s {
			t.Errorf("%q is shown as %q", s, got)
		}
	}
}

func TestDeceptions(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"look-alike word alone", "сору a b", "⟦U+0441⟧⟦U+043E⟧⟦U+0440⟧⟦U+0443⟧ a b"},
		{"look-alike domain", "curl https://аррӏе.com", "curl https://⟦U+0430⟧⟦U+0440⟧⟦U+0440⟧⟦U+04CF⟧⟦U+0435⟧.com"},
		{"mixed word beside Russian", "сat файл", "⟦U+0441⟧at файл"},
		{"look-alike word far from Russian", "ср a b c d e f привет", "⟦U+0441⟧⟦U+0440⟧ a b c d e f привет"},
		{"Greek omicron in a Latin word", "gοοgle", "g⟦U+03BF⟧⟦U+03BF⟧gle"},
		{"mathematical letters", "𝗋𝗆 x", "⟦U+1D5CB⟧⟦U+1D5C6⟧ x"},
		{"ligature", "ﬁnd", "⟦U+FB01⟧nd"},
		{"phonetic letter", "ɡit", "⟦U+0261⟧it"},
		{"Cherokee", "ᏞᏚ", "⟦U+13DE⟧⟦U+13DA⟧"},
		{"full-width semicolon", "ls；id", "ls⟦U+FF1B⟧id"},
		{"division slash", "a∕b", "a⟦U+2215⟧b"},
		{"minus sign", "rm −rf", "rm ⟦U+2212⟧rf"},
		{"no-break space", "rm\u00a0x", "rm⟦U+00A0⟧x"},
		{"line separator", "a\u2028b", "a⟦U+2028⟧b"},
		{"joiner between Latin letters", "r\u200dm", "r⟦U+200D⟧m"},
		{"non-joiner at a blank", "می \u200cx", "می ⟦U+200C⟧x"},
		{"variation selectors carry bytes", "✅\ufe0f\ufe01\ufe02", "✅\ufe0f⟦U+FE01⟧⟦U+FE02⟧"},
		{"variation selector on a letter", "a\ufe0f", "a⟦U+FE0F⟧"},
		{"tags in an emoji", "🏴\U000e0067\U000e007f", "🏴⟦U+E0067⟧⟦U+E007F⟧"},
		{"strike-through", "r\u0336m", "r⟦U+0336⟧m"},
		{"mark on a blank", " \u0301x", " ⟦U+0301⟧x"},
		{"private use", "a\ue000", "a⟦U+E000⟧"},
		{"unassigned", "a\U0001ffff", "a⟦U+1FFFF⟧"},
		{"braille blank", "a\u2800b", "a⟦U+2800⟧b"},
		{"object replacement", "a\ufffcb", "a⟦U+FFFC⟧b"},
		{"forged escape of ours", "⟦newline⟧", "⟦U+27E6⟧newline⟦U+27E7⟧"},
		{"replacement character itself", "a\ufffdb", "a\ufffdb"},
		{"broken bytes in a row", "\xf0\x9f\x98", "⟦0xF0⟧⟦0x9F⟧⟦0x98⟧"},
		{"surrogate in bytes", "\xed\xa0\x80", "⟦0xED⟧⟦0xA0⟧⟦0x80⟧"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Line(tc.in); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestHoles(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"spaces at the end of a line", "a" + strings.Repeat(" ", 200) + "b\n", "a⟦200 spaces⟧b\n"},
		{"tabs", "a" + strings.Repeat("\t", 20) + "b", "a⟦160 spaces⟧b"},
		{"blank lines with spaces", "a" + strings.Repeat("\n  ", 30) + "b", "a\n⟦29 blank lines⟧\n  b"},
		{"few blank lines", "a\n\n\n\nb", "a\n\n\n\nb"},
		{"a line of spaces between", "a\n" + strings.Repeat(" ", 100) + "\nb", "a\n⟦100 spaces⟧\nb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Block(tc.in); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestConfusable(t *testing.T) {
	for s, want := range map[string]bool{
		"read": false, "rеad": true, "привет": false, "сору": true, "ｒead": true, "naïve": false, "": false, "a\u200bb": false, "a⁄b": true,
	} {
		if got := Confusable(s); got != want {
			t.Errorf("Confusable(%q) = %v", s, got)
		}
	}
}

// Cut texts that differ only in what is not shown are shown differently.
func TestCutShowsWhichTextItWas(t *testing.T) {
	a, b := strings.Repeat("a", 1000), strings.Repeat("a", 500)+"b"+strings.Repeat("a", 499)
	o := Options{Limit: 100}
	if Show(a, o).String() == Show(b, o).String() {
		t.Error("two texts look the same")
	}
}

// Different texts never look the same, and the pieces that are not escapes are the text itself.
func TestShownIsUnambiguous(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{
			"a", "ls ", "\n", "\t", "\u200b", "⟦", "⟧", "U+200B", "newline", "\u202e", "с", "і", "й", "\xff", "é", "e\u0301", "⚠", "\ufe0f", "\u200d", " ", "；", "日",
		}), 0, 12).Draw(t, "parts")
		return strings.Join(parts, "")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		lines := rapid.Bool().Draw(t, "lines")
		shownA, shownB := Show(a, Options{Lines: lines}), Show(b, Options{Lines: lines})
		if a != b && shownA.String() == shownB.String() {
			t.Fatalf("%q and %q are both shown as %q", a, b, shownA)
		}
		rest := a
		for _, p := range shownA.Pieces {
			if p.Escaped {
				if p.Note == "" {
					t.Fatalf("no note for %q", p.Text)
				}
				continue
			}
			at := strings.Index(rest, p.Text)
			if at < 0 {
				t.Fatalf("%q shows %q, which is not there", a, p.Text)
			}
			rest = rest[at+len(p.Text):]
		}
	})
}

func FuzzShow(f *testing.F) {
	for _, s := range []string{"ls", "l\u0455", "a\u202e", "⚠\ufe0f", "می\u200cخواهم", "\xff", strings.Repeat(" ", 100), strings.Repeat("\n", 30)} {
		f.Add(s, true, 0)
	}
	f.Fuzz(func(t *testing.T, s string, lines bool, limit int) {
		shown := Show(s, Options{Lines: lines, Limit: limit}).String()
		if !utf8.ValidString(shown) {
			t.Fatalf("%q gives invalid text %q", s, shown)
		}
		for _, r := range shown {
			if r < 0x20 && !(lines && (r == '\n' || r == '\t')) || r >= 0x7f && r < 0xa0 || Bidi(r) || r >= 0xe0000 {
				t.Fatalf("%q lets %U through", s, r)
			}
		}
	})
}

// The short way for plain text must agree with the long one.
func TestPlainAgrees(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "word", " ", strings.Repeat(" ", 30), strings.Repeat(" ", 63), "\n", "\n\n", "\t", "\r", "\x7f", "é", "~"})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(part, 0, 20).Draw(t, "parts"), "")
		lines := rapid.Bool().Draw(t, "lines")
		shown := &Shown{}
		e := escaper{s: s, lines: lines, shown: shown}
		e.run()
		if plain(s, lines) && shown.String() != s {
			t.Fatalf("%q counts as plain but is shown as %q", s, shown)
		}
	})
}

func BenchmarkMixed(b *testing.B) {
	text := strings.Repeat("naïve Text mit Umläuten, и немного русского; ", 40)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Show(text, Options{Lines: true})
	}
}
