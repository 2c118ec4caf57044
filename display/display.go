// Package display shows text to people truthfully. What cannot be seen, what moves the cursor or turns the direction
// of writing, and what looks like something else is shown as a visible escape such as ⟦U+200B⟧; nothing is cut
// without a mark that says how much. The brackets are escaped themselves when a text holds them, so that a text
// cannot forge an escape. Plain text comes out unchanged.
//
// A person who approves a command approves what these functions print; every surface uses them.
package display

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Options say how a text is shown.
type Options struct {
	Lines bool // keep line breaks and tabs; else they are escaped
	Limit int  // characters shown at most, head and tail; 0: all
}

// Piece is a part of a shown text.
type Piece struct {
	Text    string // as it is printed; escapes with their brackets
	Escaped bool   // stands for something that is not shown as it is
	Note    string // what an escape stands for, in words
}

// Shown is a text made ready for people.
type Shown struct {
	Pieces []Piece
	Cut    int // characters left out in the middle
}

// String joins the pieces.
func (s Shown) String() string {
	var b strings.Builder
	for _, p := range s.Pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Line shows a text on one line: line breaks and tabs are escaped too.
func Line(s string) string { return Show(s, Options{}).String() }

// Block shows a text of several lines.
func Block(s string) string { return Show(s, Options{Lines: true}).String() }

// The longest runs that are shown as they are. A longer one would push what follows off the screen.
const (
	maxSpaces     = 80
	maxBlankLines = 3
	maxMarks      = 3 // combining marks on one letter
)

// Show makes a text ready for people.
func Show(s string, o Options) Shown {
	s, tail, cut := cutMiddle(s, o.Limit)
	shown := Shown{Cut: cut}
	shown.append(s, o)
	if cut > 0 {
		note := fmt.Sprintf("%d characters are not shown here", cut)
		shown.Pieces = append(shown.Pieces, Piece{fmt.Sprintf("⟦… %d characters not shown …⟧", cut), true, note})
		shown.append(tail, o)
	}
	return shown
}

// cutMiddle keeps the first two thirds and the last third of limit characters: the end of a command matters as much
// as its beginning.
func cutMiddle(s string, limit int) (head, tail string, cut int) {
	if limit <= 0 || len(s) <= limit {
		return s, "", 0
	}
	n := utf8.RuneCountInString(s)
	if n <= limit {
		return s, "", 0
	}
	headRunes := limit * 2 / 3
	tailRunes := limit - headRunes
	return s[:runeOffset(s, headRunes)], s[runeOffset(s, n-tailRunes):], n - limit
}

func runeOffset(s string, runes int) int {
	offset := 0
	for range runes {
		_, size := utf8.DecodeRuneInString(s[offset:])
		offset += size
	}
	return offset
}

// append adds a text's pieces.
func (shown *Shown) append(s string, o Options) {
	if plain(s, o.Lines) {
		shown.plain(s)
		return
	}
	start := 0 // of the plain text not yet added
	words := confusableLetters(s)
	marks := 0
	for i := 0; i < len(s); {
		if n, text, note := run(s[i:], o.Lines); n > 0 {
			shown.plain(s[start:i])
			shown.Pieces = append(shown.Pieces, Piece{text, true, note})
			i += n
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		note := oddity(r, size, o.Lines)
		if note == "" && words[i] {
			note = "looks like another letter"
		}
		if marks = countMarks(marks, r); note == "" && marks > maxMarks {
			note = "one of many marks on a letter"
		}
		if note != "" {
			shown.plain(s[start:i])
			shown.Pieces = append(shown.Pieces, Piece{escape(r, size, s[i]), true, note})
			start = i + size
		}
		i += size
	}
	shown.plain(s[start:])
}

func (shown *Shown) plain(s string) {
	if s != "" {
		shown.Pieces = append(shown.Pieces, Piece{Text: s})
	}
}

// plain reports whether a text is ASCII without anything to escape: the common case, answered in one scan.
func plain(s string, lines bool) bool {
	spaces, breaks := 0, 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == ' ':
			if spaces++; spaces > maxSpaces {
				return false
			}
			continue
		case c == '\n' && lines:
			if breaks++; breaks > maxBlankLines+1 {
				return false
			}
			spaces = 0
			continue
		case c == '\t' && lines:
			if spaces += 8; spaces > maxSpaces {
				return false
			}
			continue
		case c < 0x20 || c >= 0x7f:
			return false
		}
		spaces, breaks = 0, 0
	}
	return true
}

// run recognises a run of blanks or blank lines that is too long to be shown as it is.
func run(s string, lines bool) (n int, text, note string) {
	for n < len(s) && s[n] == ' ' {
		n++
	}
	if n > maxSpaces {
		return n, fmt.Sprintf("⟦%d spaces⟧", n), "a long run of spaces"
	}
	if !lines {
		return 0, "", ""
	}
	breaks := 0
	for n = 0; n < len(s) && strings.IndexByte("\n\t ", s[n]) >= 0; n++ {
		if s[n] == '\n' {
			breaks++
		}
	}
	if breaks > maxBlankLines+1 || n > maxSpaces {
		return n, fmt.Sprintf("\n⟦%d blank lines⟧\n", max(breaks-1, 0)), "many blank lines"
	}
	return 0, "", ""
}

// escape is how one character, or one invalid byte, is printed.
func escape(r rune, size int, first byte) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("⟦0x%02X⟧", first)
	case r == '\n':
		return "⟦newline⟧"
	case r == '\t':
		return "⟦tab⟧"
	default:
		return fmt.Sprintf("⟦U+%04X⟧", r)
	}
}
