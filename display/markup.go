package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Markdown shows a text as a block of code of a Markdown document. The fence is longer than any run of backticks in the
// text, so that no line of it can close the block and go on as markup: as a heading that says "approved", a link, an
// image that is fetched when somebody looks.
func Markdown(s string) string { return MarkdownOf(Block(s)) }

// MarkdownOf is [Markdown] of a text that [Line] or [Block] has shown already, or that is put together of such texts.
func MarkdownOf(shown string) string {
	text := strings.TrimRight(shown, "\n")
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return fence + "\n" + text + "\n" + fence
}

// Chat shows a text as a block of code of a chat message. Chats know one fence only, of three backticks, so that longer
// runs of them are shown as their number. Chats also act on some signs inside of code: what would call somebody
// (@everyone, <@123>), or be replaced by a link or a name (<!channel>, <https://…|text>), is shown as an escape.
//
// Whoever sends the message still encodes it as its channel demands, such as & as &amp;.
func Chat(s string) string { return ChatOf(Block(s)) }

// ChatOf is [Chat] of a text that [Line] or [Block] has shown already, or that is put together of such texts.
func ChatOf(shown string) string {
	text := strings.TrimRight(shown, "\n")
	var b strings.Builder
	b.WriteString("```\n")
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '`':
			n := runAt(text, i)
			if n < 3 {
				b.WriteString(text[i : i+n])
			} else {
				fmt.Fprintf(&b, "⟦%d backticks⟧", n)
			}
			i += n
			continue
		case c == '@' && callsSomebody(text[i+1:]), c == '<' && opensToken(text[i+1:]):
			b.WriteString("⟦" + string(c) + "⟧")
		default:
			b.WriteByte(c)
		}
		i++
	}
	b.WriteString("\n```")
	return b.String()
}

// callsSomebody reports whether what follows an @ can be a name.
func callsSomebody(rest string) bool {
	r, _ := utf8.DecodeRuneInString(rest)
	return r == '_' || r == '&' || r == '!' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// opensToken reports whether what follows a < can be a token of a chat: everything up to a > in the same line that does
// not begin with a blank.
func opensToken(rest string) bool {
	line, _, _ := strings.Cut(rest, "\n")
	end := strings.IndexByte(line, '>')
	return end > 0 && line[0] != ' ' && line[0] != '\t' && line[0] != '<'
}

// longestRun is the length of the longest run of one sign.
func longestRun(s string, sign byte) (longest int) {
	run := 0
	for i := range len(s) {
		if s[i] != sign {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// runAt is how often the sign at i stands there.
func runAt(s string, i int) int {
	n := 1
	for i+n < len(s) && s[i+n] == s[i] {
		n++
	}
	return n
}

// Cell shows a text as one cell of a table that spreadsheets open, such as CSV. A spreadsheet takes a cell that begins
// with = + - or @ for a formula, which may start programs and send other cells away; and which sign separates cells
// depends on the language of whoever opens it. So such a sign is shown as an escape at the beginning and after every
// sign that some program takes for the end of a cell. The caller quotes the cell.
func Cell(s string) string { return CellOf(Line(s)) }

// CellOf is [Cell] of a text that [Line] or [Block] has shown already. It leaves no line breaks.
func CellOf(shown string) string {
	text := strings.NewReplacer("\r", "⟦U+000D⟧", "\n", "⟦newline⟧", "\t", "⟦tab⟧").Replace(shown)
	if !strings.ContainsAny(text, "=+-@") {
		return text
	}
	var b strings.Builder
	begins := true
	for _, r := range text {
		switch {
		case begins && strings.ContainsRune("=+-@", r):
			b.WriteString("⟦" + string(r) + "⟧")
			begins = false
			continue
		case strings.ContainsRune(",;|\"", r):
			begins = true
		case r != ' ':
			begins = false
		}
		b.WriteRune(r)
	}
	return b.String()
}
