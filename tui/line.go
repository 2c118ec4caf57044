package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// line is one line that a person types.
type line struct {
	text string
	most int // characters
}

// key edits the line; false means that the key is not for it.
func (l *line) key(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "backspace", "ctrl+h":
		_, size := utf8.DecodeLastRuneInString(l.text)
		l.text = l.text[:len(l.text)-size]
	case "ctrl+u":
		l.text = ""
	case "ctrl+w":
		kept := strings.TrimRight(l.text, " ")
		l.text = kept[:strings.LastIndexByte(kept, ' ')+1]
	default:
		if k.Text == "" || k.Mod&(tea.ModCtrl|tea.ModAlt) != 0 {
			return false
		}
		l.insert(k.Text)
	}
	return true
}

// insert adds what can be printed. A line break of a pasted text becomes a space: pasting never presses Enter.
func (l *line) insert(text string) {
	room := l.most - utf8.RuneCountInString(l.text)
	for _, c := range text {
		if c == '\n' || c == '\t' {
			c = ' '
		}
		if room <= 0 {
			return
		}
		if unicode.IsPrint(c) {
			l.text += string(c)
			room--
		}
	}
}
