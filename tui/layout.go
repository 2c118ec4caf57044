package tui

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The smallest screen that shows a call as it must be shown.
const (
	leastWidth  = 60
	leastHeight = 16
)

func (c *console) tooSmall() bool { return c.width < leastWidth || c.height < leastHeight }

// queueRows is how many rows the list of what waits takes.
func (c *console) queueRows() int {
	return max(1, min(len(c.queue.calls), max(3, c.height/5)))
}

// bodyHeight is how many rows of the call in front fit: all but the head, the queue, two rules and the answers.
func (c *console) bodyHeight() int { return max(1, c.height-2-c.queueRows()-2-2) }

// rule is a line across the screen with a note near its right end.
func (c *console) rule(note string) row {
	if note != "" {
		note = " " + note + " "
	}
	return row{strings.Repeat("─", c.width-len(note)-3) + note + "───", faint}
}

// tail is the end of a line that is being typed, as it fits.
func tail(text string, width int) string {
	for columns(text) > width {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return text
}

// proposalMark stands before a proposal.
func proposalMark(i int) string { return fmt.Sprintf("  %d  ", i+1) }
