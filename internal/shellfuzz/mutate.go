package shellfuzz

import "unicode/utf8"

// fragments are what mutation puts into commands.
var fragments = []string{
	" ", "  ", "\t", "\n", "'", `"`, "`", `\`, `\\`, "$", "${", "}", "{", "(", ")", "[", "]", "<", ">", ">>", "<<", "<<<", "<<-", "|", "||", "&", "&&", ";", ";;", "#", " #", "!",
	"=", "~", "*", "?", "$(", "$((", "))", "<(", ">(", "2>", "&>", ">&", "2>&1", "$'", `$"`, "E\n", "\nE", "\nEOF\n", "\r", "\r\n", "\v", "\f", "\x01", "\x7f", "\u00a0", "\u200b", "é",
	"$X", "$IFS", "$_", "$@", "{a,b}", "{1..3}", "*.go", "-c", "--", "@(", "a=", "+=", "[0]", "%", "^", ",", "..", "/", ".", ":", "0", "1", "2", "10", "if ", "then ", "do ", "done", "fi", " in ", "time ", "coproc ", "\xff", "''", `""`, "~+", "<>", ">|", "|&", "&|", ">&-", "<&",
}

// mutate changes a command a little.
func (g *Generator) mutate(text string) string {
	at := g.boundary(text)
	switch g.r.IntN(8) {
	case 0, 1, 2: // put something in
		return text[:at] + g.pick(fragments) + text[at:]
	case 3: // take something out
		end := min(len(text), at+1+g.r.IntN(4))
		return text[:at] + text[end:]
	case 4: // put a word in
		return text[:at] + g.word() + text[at:]
	case 5: // join with another
		other := g.pick(g.pool)
		return text[:at] + other[g.boundary(other):]
	case 6: // repeat a part
		end := min(len(text), at+1+g.r.IntN(12))
		return text[:end] + text[at:end] + text[end:]
	default: // join with an operator
		return text + g.operator() + g.pick(g.pool)
	}
}

// boundary is a place between two characters.
func (g *Generator) boundary(text string) int {
	at := g.r.IntN(len(text) + 1)
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}
