package display

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// oddity says why a character is not shown as it is, or "".
func oddity(r rune, size int, lines bool) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "not valid text"
	case (r == '\n' || r == '\t') && lines:
		return ""
	case r == '\n':
		return "line break"
	case r == '\t':
		return "tab"
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return "control character"
	case r < 0x7f:
		return ""
	case Bidi(r):
		return "changes the direction of writing"
	case Invisible(r):
		return "invisible character"
	case unicode.Is(unicode.Zs, r):
		return "unusual space"
	case r == '⟦' || r == '⟧':
		return "bracket of an escape"
	case !unicode.IsGraphic(r):
		return "not a printable character"
	case disguised(r):
		return "looks like a plain character"
	}
	return ""
}

// Bidi reports whether a character changes the direction in which others are shown: with these a text can be made
// to read differently from what it is.
func Bidi(r rune) bool {
	switch {
	case r == 0x061c, r == 0x200e, r == 0x200f:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// Invisible reports whether a character prints nothing, or nothing of its own: controls, direction marks, zero-width
// and format characters, tags, fillers, variation selectors. Line break and tab are not among them.
func Invisible(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r < 0x80:
		return false
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180c, 0x180d, 0x180e, 0x180f, 0x2800, 0x3164, 0xffa0:
		return true
	}
	return false
}

// HasInvisible reports whether a text holds a character that [Invisible] names, or bytes that are not text.
func HasInvisible(s string) bool {
	for i, r := range s {
		if r == utf8.RuneError && s[i] != 0xef || Invisible(r) {
			return true
		}
	}
	return false
}

// disguised reports whether a character beyond ASCII stands for plain ASCII in another dress: full width, small or
// mathematical forms, or a sign that looks like one of the shell's.
func disguised(r rune) bool {
	switch r {
	case '…', '™', '℠', 'ª', 'º', '¹', '²', '³', '№':
		return false // typography that nobody takes for a command
	case 0x037e, 0x0589, 0x05c3, 0x2010, 0x2011, 0x2012, 0x2043, 0x2044, 0x2212, 0x2215, 0x2216, 0x2223, 0x2236, 0x223c,
		0x01c0, 0x01c3, 0x02d0, 0x02f8, 0x0703, 0x0704, 0x2024, 0x203a, 0x2039, 0x2768, 0x2769, 0x29f5, 0x29f8, 0x29f9,
		0xa4f8, 0xa4fd, 0xa789, 0xa78c, 0x02bc, 0x02b9, 0x02c8, 0x1427, 0x16cc:
		return true
	}
	if r >= 0x2070 && r <= 0x209f { // superscripts and subscripts
		return false
	}
	var in [utf8.UTFMax]byte
	form := norm.NFKD.Bytes(in[:utf8.EncodeRune(in[:], r)])
	for _, c := range form {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// latinLookalikes are letters of other scripts that fonts draw like Latin ones.
const latinLookalikes = "АВЕЅІЈКМНОРСТУХѴҮԌԚԜаеѕіјорсухһԁԛԝѵӏѡүҽ" + // Cyrillic
	"ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳανορυχιϲκτ" + // Greek
	"ՕՏԼսօոհցզյռև" + // Armenian
	"ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᎾᏢᎡᏚᎢᏙᎳᏃ" // Cherokee

var lookalike = func() map[rune]bool {
	set := map[rune]bool{}
	for _, r := range latinLookalikes {
		set[r] = true
	}
	return set
}()

// confusableLetters finds the letters of other scripts in words that also hold Latin letters, and words made wholly of
// letters that look Latin: the offsets of those letters. A word of another script alone is just that language.
func confusableLetters(s string) map[int]bool {
	var found map[int]bool
	start := -1
	for i, r := range s {
		if unicode.IsLetter(r) || unicode.Is(unicode.Mn, r) || r >= '0' && r <= '9' || r == '_' {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			found = markWord(s[start:i], start, found)
			start = -1
		}
	}
	if start >= 0 {
		found = markWord(s[start:], start, found)
	}
	return found
}

func markWord(word string, offset int, found map[int]bool) map[int]bool {
	latin, foreign, alike := false, 0, 0
	for _, r := range word {
		switch {
		case !unicode.IsLetter(r):
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Lisu, unicode.Coptic):
			foreign++
			if lookalike[r] {
				alike++
			}
		}
	}
	if foreign == 0 || !latin && alike < foreign {
		return found
	}
	if found == nil {
		found = map[int]bool{}
	}
	for i, r := range word {
		if unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r) {
			found[offset+i] = true
		}
	}
	return found
}

func countMarks(before int, r rune) int {
	if r >= 0x300 && unicode.Is(unicode.Mn, r) {
		return before + 1
	}
	return 0
}
