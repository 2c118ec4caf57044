// Package display shows text to people truthfully. What cannot be seen, what moves the cursor or turns the direction
// of writing, and what looks like something else is shown as a visible escape such as ⟦U+200B⟧; nothing is cut
// without a mark that says how much. The brackets are escaped themselves when a text holds them, so that a text
// cannot forge an escape. Plain text comes out unchanged.
//
// A person who approves a command approves what these functions print; every screen uses them.
package display

import (
	"crypto/sha256"
	"fmt"
	"unicode/utf8"
)

// Line shows a text on one line: line breaks and tabs are escaped too.
func Line(s string) string {
	if plain(s, false) {
		return s
	}
	return Show(s, Options{}).String()
}

// Block shows a text of several lines.
func Block(s string) string {
	if plain(s, true) {
		return s
	}
	return Show(s, Options{Lines: true}).String()
}

// Show makes a text ready for people.
func Show(s string, o Options) Shown {
	whole := s
	s, tail, cut := cutMiddle(s, o.Limit)
	shown := Shown{Cut: cut}
	shown.append(s, o)
	if cut > 0 {
		sum := sha256.Sum256([]byte(whole)) // two texts that differ where they are cut look different all the same
		note := fmt.Sprintf("%d characters are not shown here", cut)
		text := fmt.Sprintf("⟦… %d characters not shown, the whole has sha256 %x… …⟧", cut, sum[:6])
		shown.Pieces = append(shown.Pieces, Piece{text, true, note})
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
		if s != "" {
			shown.Pieces = append(shown.Pieces, Piece{Text: s})
		}
		return
	}
	e := escaper{s: s, lines: o.Lines, shown: shown}
	e.run()
}

// plain reports whether a text is surely ASCII without anything to escape: the common case, answered eight bytes at a
// time. It may say no to a text with wide gaps that needs no escape either; the slow way then finds none.
func plain(s string, lines bool) bool {
	const (
		ones   = 0x0101010101010101
		high   = 0x80 * ones
		spaces = 0x20 * ones
		gap    = maxSpaces - 16 // spaces at the ends of a group of eight are not counted
	)
	width, breaks := 0, 0 // since the last character that shows
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		switch {
		case ((x-0x20*ones)&^x|x+ones|x)&high != 0: // a byte below the space or above the tilde
			if !plainBytes(s[i:i+8], lines, &width, &breaks) {
				return false
			}
		case x == spaces:
			width += 8
		default:
			width, breaks = 0, 0
		}
		if width > gap {
			return false
		}
	}
	return plainBytes(s[i:], lines, &width, &breaks) && width <= gap
}

// plainBytes goes byte by byte.
func plainBytes(s string, lines bool, width, breaks *int) bool {
	for i := range len(s) {
		switch b := s[i]; {
		case b == ' ':
			*width++
		case b > ' ' && b < 0x7f:
			*width, *breaks = 0, 0
		case b == '\t' && lines:
			*width += 8
		case b == '\n' && lines:
			if *breaks++; *breaks > maxBlankLines+1 {
				return false
			}
			*width = 0
		default:
			return false
		}
		if *width > maxSpaces-16 {
			return false
		}
	}
	return true
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

// Confusable reports whether a text has characters that imitate others, such as a Cyrillic letter in a Latin word.
func Confusable(s string) bool {
	if plain(s, true) {
		return false
	}
	e := escaper{s: s, lines: true, shown: &Shown{}}
	e.run()
	return e.odd > 0
}
