package display

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// escaper takes a text apart into pieces.
type escaper struct {
	s     string
	lines bool
	shown *Shown
	start int  // of the plain text that is not yet a piece
	odd   int  // characters that imitate others
	last  rune // the character before, 0 at the start and after an escape
	marks int  // combining marks since the last letter

	earlier    wordLook // of the word before
	earlierEnd int
}

func (e *escaper) run() {
	for i := 0; i < len(e.s); {
		b := e.s[i]
		switch {
		case b == ' ' || e.lines && (b == '\n' || b == '\t'):
			i = e.blanks(i)
		case b < 0x20 || b == 0x7f:
			i = e.escape(i, 1, controlNote(b))
		case wordStart(e.s[i:]):
			i = e.word(i)
		case b < utf8.RuneSelf:
			e.last, e.marks = rune(b), 0
			i++
		default:
			i = e.sign(i)
		}
	}
	e.flush(len(e.s))
}

// flush makes a piece of the plain text before i.
func (e *escaper) flush(i int) {
	if i > e.start {
		e.shown.Pieces = append(e.shown.Pieces, Piece{Text: e.s[e.start:i]})
	}
	e.start = i
}

// keep leaves the character of so many bytes at i as it is.
func (e *escaper) keep(i, size int) int {
	e.last, _ = utf8.DecodeRuneInString(e.s[i:])
	e.marks = 0
	return i + size
}

// escape shows the character of so many bytes at i by its number.
func (e *escaper) escape(i, size int, note string) int {
	r, _ := utf8.DecodeRuneInString(e.s[i:])
	return e.replace(i, i+size, escapeText(r, size, e.s[i]), note)
}

func (e *escaper) imitation(i, size int, note string) int {
	e.odd++
	return e.escape(i, size, note)
}

// replace shows s[i:end] as text.
func (e *escaper) replace(i, end int, text, note string) int {
	e.flush(i)
	e.shown.Pieces = append(e.shown.Pieces, Piece{text, true, note})
	e.start, e.last, e.marks = end, 0, 0
	return end
}

// blanks shows a run of spaces (and line breaks and tabs, where they are kept). One that is long enough to push what
// follows off the screen is shown as its length.
func (e *escaper) blanks(i int) int {
	e.last, e.marks = ' ', 0
	if e.s[i] == '\n' {
		end, breaks := i, 0
		for j := i; j < len(e.s) && (e.s[j] == '\n' || e.s[j] == ' ' || e.s[j] == '\t'); j++ {
			if e.s[j] == '\n' {
				end, breaks = j+1, breaks+1
			}
		}
		if breaks > maxBlankLines+1 {
			return e.replace(i, end, fmt.Sprintf("\n⟦%d blank lines⟧\n", breaks-1), "many blank lines")
		}
		return i + 1
	}
	end, width := i, 0
	for ; end < len(e.s) && (e.s[end] == ' ' || e.lines && e.s[end] == '\t'); end++ {
		if width++; e.s[end] == '\t' {
			width += 7
		}
	}
	if width > maxSpaces {
		return e.replace(i, end, fmt.Sprintf("⟦%d spaces⟧", width), "a long run of spaces")
	}
	return end
}

// sign shows a character above ASCII that does not begin a word.
func (e *escaper) sign(i int) int {
	r, size := utf8.DecodeRuneInString(e.s[i:])
	switch {
	case r == utf8.RuneError && size == 1:
		return e.escape(i, size, "not valid text")
	case r == '⟦' || r == '⟧': // ours: no text may forge an escape
		return e.escape(i, size, "bracket of an escape")
	case r == emojiStyle && isEmoji(e.last), r == zwj && e.joinsEmoji(i+size):
		return e.keep(i, size)
	case shapeless(r):
		return e.escape(i, size, shapelessNote(r))
	case imitatesSign(r) && !e.amongCJK(i, size):
		return e.imitation(i, size, "looks like a plain character")
	case unicode.Is(unicode.M, r): // on a sign or a blank, which it would change
		return e.escape(i, size, "a mark without a letter")
	}
	return e.keep(i, size)
}

// word shows one word. A letter that looks like a Latin one is escaped where it deceives: in a word with Latin
// letters ("pаypal" with a Cyrillic а), and in a word of nothing but look-alikes ("сору") that does not stand
// beside a word which is plainly of that script, as the short words of Russian or Greek text do.
func (e *escaper) word(i int) int {
	end, look := scanWord(e.s, i)
	deceives := look.similar && (look.latin || !look.clear && !e.besideForeign(i, end) && e.s[i:end] != "α") // mathematics
	for i < end {
		b := e.s[i]
		if b < utf8.RuneSelf {
			e.last, e.marks = rune(b), 0
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(e.s[i:])
		switch {
		case deceives && looksLatin(r):
			i = e.imitation(i, size, "looks like another letter")
		case alwaysDeceives(r):
			i = e.imitation(i, size, "looks like a plain character")
		case r >= 0x300 && unicode.Is(unicode.M, r):
			i = e.combining(i, r, size)
		default:
			e.last, e.marks = r, 0
			i += size
		}
	}
	look.clear = look.clear || look.similar && !deceives // so the next short word stands beside it
	e.earlier, e.earlierEnd = look, end
	return end
}

// combining shows a mark on a letter, unless it strikes the letter through, encloses it, or is one too many.
func (e *escaper) combining(i int, r rune, size int) int {
	e.marks++
	switch {
	case e.marks > maxMarks:
		marks := e.marks
		i = e.escape(i, size, "one of many marks on a letter")
		e.last, e.marks = 'x', marks
		return i
	case e.last == 0 || unicode.Is(unicode.Me, r) || r >= 0x0335 && r <= 0x0338:
		return e.escape(i, size, "a mark that changes a letter")
	}
	return i + size
}

func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) || r >= 0x1f3fb && r <= 0x1f3ff || r >= 0x2190 && r <= 0x21ff || r == '‼' || r == '⁉'
}

// joinsEmoji reports whether a zero-width joiner before next stands inside an emoji.
func (e *escaper) joinsEmoji(next int) bool {
	r, _ := utf8.DecodeRuneInString(e.s[next:])
	return (isEmoji(e.last) || e.last == emojiStyle) && isEmoji(r)
}

// amongCJK reports whether a full-width sign has East Asian text beside it, where it is ordinary punctuation.
func (e *escaper) amongCJK(i, size int) bool {
	r, _ := utf8.DecodeRuneInString(e.s[i:])
	if r < 0xff01 || r > 0xff5e {
		return false
	}
	next, _ := utf8.DecodeRuneInString(e.s[i+size:])
	return isCJK(e.last) || e.last >= 0xff01 && e.last <= 0xff5e || isCJK(next)
}

func isCJK(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo) ||
		r >= 0x3001 && r <= 0x303f
}

func controlNote(b byte) string {
	switch b {
	case '\n':
		return "line break"
	case '\t':
		return "tab"
	}
	return "control character"
}

func shapelessNote(r rune) string {
	switch {
	case r < 0xa0:
		return "control character"
	case Bidi(r):
		return "changes the direction of writing"
	case unicode.Is(unicode.Zs, r):
		return "unusual space"
	case unicode.IsGraphic(r) || Invisible(r):
		return "invisible character"
	}
	return "not a printable character"
}

// escapeText is how one character, or one invalid byte, is printed.
func escapeText(r rune, size int, first byte) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("⟦0x%02X⟧", first)
	case r == '\n':
		return "⟦newline⟧"
	case r == '\t':
		return "⟦tab⟧"
	}
	return fmt.Sprintf("⟦U+%04X⟧", r)
}

// besideForeign reports whether a word that is plainly of another script stands right before or after s[start:end].
// Only a few blanks and signs may stand between.
func (e *escaper) besideForeign(start, end int) bool {
	const near = 8 // bytes
	if e.earlier.foreign() && start-e.earlierEnd <= near {
		return true
	}
	for i := end; i < len(e.s) && i < end+near; {
		if wordStart(e.s[i:]) {
			_, look := scanWord(e.s, i)
			return look.foreign()
		}
		_, size := utf8.DecodeRuneInString(e.s[i:])
		i += size
	}
	return false
}
