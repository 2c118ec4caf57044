package shellfuzz

import (
	"strings"
	"unicode/utf8"
)

// fragments are what mutation puts into commands.
var fragments = []string{
	" ", "  ", "\t", "\n", "'", `"`, "`", `\`, `\\`, "$", "${", "}", "{", "(", ")", "[", "]", "<", ">", ">>", "<<", "<<<", "<<-", "|", "||", "&", "&&", ";", ";;", "#", " #", "!",
	"=", "~", "*", "?", "$(", "$((", "))", "<(", ">(", "2>", "&>", ">&", "2>&1", "$'", `$"`, "E\n", "\nE", "\nEOF\n", "\r", "\r\n", "\v", "\f", "\x01", "\x7f", "\u00a0", "\u200b", "é",
	"$X", "$IFS", "$_", "$@", "{a,b}", "{1..3}", "*.go", "-c", "--", "@(", "a=", "+=", "[0]", "%", "^", ",", "..", "/", ".", ":", "0", "1", "2", "10", "if ", "then ", "do ", "done", "fi", " in ", "time ", "coproc ", "\xff", "''", `""`, "~+", "<>", ">|", "|&", "&|", ">&-", "<&",
}

// mutate changes a command a little.
func (g *Generator) mutate(text string) string {
	at := g.boundary(text)
	switch g.r.IntN(12) {
	case 0, 1: // put something in
		return text[:at] + g.pick(fragments) + text[at:]
	case 2: // take something out
		end := min(len(text), at+1+g.r.IntN(4))
		return text[:at] + text[end:]
	case 3: // put a word in
		return text[:at] + g.word() + text[at:]
	case 4: // join with another
		other := g.pick(g.pool)
		return text[:at] + other[g.boundary(other):]
	case 5: // repeat a part
		end := min(len(text), at+1+g.r.IntN(12))
		return text[:end] + text[at:end] + text[end:]
	case 6: // exchange two characters that stand beside each other
		runes := []rune(text)
		if i := g.r.IntN(max(1, len(runes))); i+1 < len(runes) {
			runes[i], runes[i+1] = runes[i+1], runes[i]
		}
		return string(runes)
	case 7: // exchange two words
		words := strings.Split(text, " ")
		i, j := g.r.IntN(len(words)), g.r.IntN(len(words))
		words[i], words[j] = words[j], words[i]
		return strings.Join(words, " ")
	case 8: // put another character in the place of one that means something
		special := func(r rune) bool { return strings.ContainsRune(specials, r) }
		if i := strings.IndexFunc(text[at:], special); i >= 0 {
			return text[:at+i] + g.pick(characters) + text[at+i+1:]
		}
		return text + g.pick(characters)
	case 9: // give it to a shell
		return g.some(shellStarts) + " " + g.quote(text)
	case 10: // put a wrapper or a directory before it
		if g.chance(50) {
			return g.some(wrappers) + " " + text
		}
		return g.some(directories) + g.pick([]string{" && ", "; ", " || ", " | "}) + text
	default: // join with an operator
		return text + g.operator() + g.pick(g.pool)
	}
}

// specials are the characters that mean something to a shell.
const specials = " \t\n'\"`\\$&|;<>(){}[]*?~#!=,"

// boundary is a place between two characters.
func (g *Generator) boundary(text string) int {
	at := g.r.IntN(len(text) + 1)
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}
