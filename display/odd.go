package display

import (
	"unicode"
	"unicode/utf8"
)

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

// shapeless reports whether a character above ASCII is invisible, moves other characters, is an unusual space or
// has no agreed shape.
func shapeless(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return false
	case r < 0xa0, r == 0xa0, r == 0xad: // C1 controls (0x9b starts terminal commands), no-break space, soft hyphen
		return true
	case r < 0x300:
		return false
	case r == 0x34f, r == 0x61c, // grapheme joiner, Arabic letter mark
		r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, // Hangul fillers
		r == 0x17b4, r == 0x17b5, r >= 0x180b && r <= 0x180f, // Khmer and Mongolian
		r == 0x2800,               // braille pattern blank
		r == 0xfffc, r == 0x1d159, // object replacement, null notehead
		r >= 0xfe00 && r <= 0xfe0f,   // variation selectors can carry hidden bytes
		r >= 0xe0000 && r <= 0xe0fff: // tags and more variation selectors
		return true
	case !unicode.IsGraphic(r): // Cc, Cf, Co, Cs, Zl, Zp and unassigned
		return true
	}
	return unicode.Is(unicode.Zs, r) // all spaces but the ordinary one
}

const (
	zwnj       = '\u200c'
	zwj        = '\u200d'
	emojiStyle = '\ufe0f'
)
