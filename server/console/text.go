package console

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolward/toolward/display"
)

// span is a part of a shown text; what an agent could use to deceive is marked as escaped.
type span = display.Piece

// spans shows text that may have several lines: commands, file contents, argument values.
func spans(s string) []span { return display.Show(s, display.Options{Lines: true}).Pieces }

// oneLine shows text that belongs on one line: names, paths, titles. A line break in a path is made visible.
func oneLine(s string) []span { return display.Show(s, display.Options{}).Pieces }

// moment is a time as lists show it: the clock today, else with the day.
func moment(t time.Time) string {
	t = t.Local()
	now := time.Now()
	switch {
	case sameDay(t, now):
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006")
}

// sentence gives an error text a capital and a full stop.
func sentence(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	text = string(unicode.ToUpper(r)) + text[size:]
	if strings.ContainsAny(text[len(text)-1:], ".!?:") {
		return text
	}
	return text + "."
}

func sameDay(a, b time.Time) bool {
	ya, ma, da := a.Local().Date()
	yb, mb, db := b.Local().Date()
	return ya == yb && ma == mb && da == db
}
