package display

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// wordLook is how a word reads.
type wordLook struct {
	latin   bool // has Latin letters or ASCII digits
	similar bool // has letters of another script that look like Latin ones
	clear   bool // has letters of that script that look like nothing Latin
}

// kind is what a character is to a word.
type kind uint8

const (
	outside kind = iota // does not belong to words
	latin               // a Latin letter or an ASCII digit
	similar             // a letter of another script that looks like a Latin one
	clear               // a letter of Greek, Cyrillic or Armenian that does not
	other               // a letter of any other script, a mark, a digit
)

// kindOf tells the kind of a character, the common ones first.
func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9' {
			return latin
		}
		return outside
	case r < 0xc0:
		return rareKind(r)
	case r < 0x1c0:
		if r == '×' || r == '÷' {
			return outside
		}
		return latin
	case r >= 0x400 && r < 0x482:
		if lookalikes[r-firstLookalike] {
			return similar
		}
		return clear
	case r >= 0x4e00 && r < 0xa000, r >= 0xac00 && r < 0xd7a4, r > 0x3040 && r < 0x3097, r > 0x30a0 && r < 0x30fb,
		r >= 0x5d0 && r < 0x5eb, r >= 0x620 && r < 0x64b, r >= 0x300 && r < 0x34f: // Han, Hangul, kana, Hebrew, Arabic, marks
		return other
	}
	return rareKind(r)
}

func rareKind(r rune) kind {
	switch {
	case r == utf8.RuneError, shapeless(r), imitatesSign(r):
		return outside
	case unicode.In(r, unicode.M, unicode.Nd):
		return other
	case !unicode.In(r, unicode.L, unicode.Nl):
		return outside
	case looksLatin(r):
		return similar
	case unicode.Is(unicode.Latin, r):
		return latin
	case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian):
		return clear
	}
	return other
}

// wordStart reports whether s begins with a letter or digit; a mark alone does not begin a word.
func wordStart(s string) bool {
	if b := s[0]; b < utf8.RuneSelf {
		return kindOf(rune(b)) == latin
	}
	r, _ := utf8.DecodeRuneInString(s)
	k := kindOf(r)
	return k != outside && (k != other || !unicode.Is(unicode.M, r))
}

// scanWord finds the end of the word that starts at i, and how it reads.
func scanWord(s string, i int) (end int, look wordLook) {
	for end = i; end < len(s); {
		r, size := rune(s[end]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[end:])
		}
		switch kindOf(r) {
		case latin:
			look.latin = true
		case similar:
			look.similar = true
		case clear:
			look.clear = true
		case outside:
			if r != zwj && r != zwnj || !joinsLetters(s, i, end, size) {
				return end, look
			}
		}
		end += size
	}
	return end, look
}

// joinsLetters allows a joiner between letters of scripts that are not written without it.
func joinsLetters(s string, start, at, size int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[start:at])
	after, _ := utf8.DecodeRuneInString(s[at+size:])
	return needsJoiners(before) && needsJoiners(after)
}

func needsJoiners(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali,
		unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada,
		unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar) && (unicode.IsLetter(r) || unicode.Is(unicode.M, r))
}

// foreign reports whether a word is plainly of another script.
func (l wordLook) foreign() bool { return l.clear && !l.latin }

// looksLatin reports whether a letter of another script is drawn like a Latin letter.
func looksLatin(r rune) bool {
	switch {
	case r < firstLookalike:
		return false
	case r < afterLookalikes:
		return lookalikes[r-firstLookalike]
	}
	// Scripts whose letters are mostly drawn like Latin capitals and that hardly anybody reads.
	return unicode.In(r, unicode.Cherokee, unicode.Lisu, unicode.Coptic, unicode.Deseret, unicode.Gothic, unicode.Old_Italic,
		unicode.Carian, unicode.Lycian, unicode.Lydian)
}

const (
	firstLookalike  = 0x370
	afterLookalikes = 0x590
)

// lookalikes are the Greek, Cyrillic and Armenian letters that can be taken for Latin ones.
var lookalikes = letters("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺϳοιανρυχϲ" +
	"АВЕЅІЈКМНОРСТУХҮҺԌԚԜаеѕіјорсухһӏԁԛԝѵԍѡүҽӀ" +
	"օսոհգյՕՍԼՏցքզ")

func letters(s string) (set [afterLookalikes - firstLookalike]bool) {
	for _, r := range s {
		set[r-firstLookalike] = true
	}
	return set
}

// alwaysDeceives knows letters and digits that are another way to write an ASCII one and have no language of
// their own: mathematical, full-width and ligature forms, and two phonetic letters.
func alwaysDeceives(r rune) bool {
	switch {
	case r < 0x132 || r == 'ŉ':
		return false
	case r == 'ɑ' || r == 'ɡ' || r == 'ſ':
		return true
	case r < 0x2000, r >= 0x2e80 && r < 0xa000, r >= 0xac00 && r < 0xd7a4, r >= 0x2100 && r <= 0x214f && r != '\u212a': // ℝ and ℓ are plain to see, the Kelvin sign is not
		return false
	}
	if !unicode.In(r, unicode.L, unicode.Nd, unicode.Nl) {
		return false
	}
	for _, plain := range norm.NFKC.String(string(r)) {
		if plain >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// imitatesSign knows signs that are drawn like one that means something to a shell, a URL or a path.
func imitatesSign(r rune) bool {
	switch r {
	case '\u2044', '\u2215', '\u29f8', '\u29f9', '\u2216', // slashes and backslashes
		'\u2236', '\ua789', '\u02d0', '\u0589', '\u05c3', '\ufe55', '\u02f8', // colons
		'\u037e', '\u061b', '\ufe54', // semicolons
		'\u2010', '\u2011', '\u2212', '\ufe63', '\u02d7', // hyphens
		'\u2024', '\u0701', '\u0702', '\ufe52', // dots
		'\u2223', '\u01c0', '\uffe8', // bars
		'\u01c3', '\u2217', '\u204e', '\u223c', '\u2053', '\u02dc', '\u2039', '\u203a', '\u02c2', '\u02c3', // ! * ~ < >
		'\u0703', '\u0704', '\u2012', '\u2043', '\u29f5', '\u2768', '\u2769', '\ua4f8', '\ua4fd', '\ua78c', '\u1427', '\u16cc',
		'\u02b9', '\u02bc', '\u02c8', '\u02cb', '\u1fef', '\u2032', '\u2035', // ' and `
		'\ufe60', '\ufe68', '\ufe69', '\ufe6a', '\ufe6b', '\ufe5f': // small & \ $ % @ #
		return true
	}
	return r >= 0xff01 && r <= 0xff5e && !unicode.In(r, unicode.L, unicode.Nd)
}
