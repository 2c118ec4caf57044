package profiles

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkSed looks at the scripts of sed, and at the files that it changes in place.
func checkSed(a *arguments) {
	files := a.operands
	var script []string
	inPlace, suffix := false, ""
	for _, g := range a.given {
		switch g.spelling {
		case "-e", "--expression":
			script = append(script, g.value)
		case "-f", "--file":
			a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sed", Via: g.spelling + " " + g.value})
		case "-i", "--in-place":
			inPlace, suffix = true, g.value
		}
	}
	if script == nil && !a.has("-f") && !a.has("--file") {
		if len(files) == 0 {
			return
		}
		script, files = files[:1], files[1:]
		if inPlace && script[0] == "" && len(files) > 0 {
			// BSD's sed -i takes the empty word as its value; the next is the script then.
			a.sedScript(files[0])
			files = files[1:]
		}
	}
	a.sedScript(strings.Join(script, "\n"))
	for _, file := range files {
		if !inPlace {
			a.word(Role{Name: "reads"}, file, "")
			continue
		}
		a.does(shell.Effect{Kind: shell.Writes, Path: file, Via: "-i"})
		a.sedBackup(file, suffix)
	}
}

// sedBackup tells where sed -i keeps the former contents.
func (a *arguments) sedBackup(file, suffix string) {
	switch {
	case suffix == "":
	case strings.Contains(suffix, "*"):
		name := strings.ReplaceAll(suffix, "*", path.Base(file))
		if !strings.Contains(suffix, "/") {
			name = path.Join(path.Dir(file), name)
		}
		a.does(shell.Effect{Kind: shell.Writes, Path: name, Via: "-i"})
	default:
		a.does(shell.Effect{Kind: shell.Writes, Path: file + suffix, Via: "-i"})
	}
}

// sedScript adds what a script does. Programs named sed do not agree on whether a delimiter in brackets ends a regular
// expression, as in s/[/]/x/, so the script is read both ways, and what it does in either is told.
func (a *arguments) sedScript(script string) {
	understood := false
	for _, brackets := range []bool{true, false} {
		r := sedReader{text: script, brackets: brackets}
		understood = r.read() || understood
		if a.has("--sandbox") { // sed refuses to start if the script does anything outside
			continue
		}
		for _, e := range r.effects {
			if !slices.ContainsFunc(a.effects, func(had shell.Effect) bool {
				return had.Kind == e.Kind && had.Path == e.Path && had.Text == e.Text && had.Via == e.Via
			}) {
				a.does(e)
			}
		}
	}
	if !understood {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sed", Text: script})
	}
}

// sedReader reads the language of sed, with the extensions of GNU. Where programs named sed differ it sees rather too
// many commands than too few.
type sedReader struct {
	text     string
	at       int
	brackets bool // a delimiter in brackets does not end a regular expression
	depth    int  // of blocks
	failed   int  // brackets that do not end
	effects  []shell.Effect
}

// Bounds of what is followed.
const (
	maxSedFailures = 100
	maxSedEffects  = 200
)

const sedEnd = 0 // there is no more text; an argument has no byte of this value

// next takes a byte.
func (r *sedReader) next() byte {
	if r.at >= len(r.text) {
		r.at++
		return sedEnd
	}
	r.at++
	return r.text[r.at-1]
}

// back puts the last byte back.
func (r *sedReader) back() { r.at-- }

// visible takes the next byte that is no blank.
func (r *sedReader) visible() byte {
	for {
		if c := r.next(); c != ' ' && c != '\t' && c != '\r' && c != '\v' && c != '\f' {
			return c
		}
	}
}

// read reads the whole script. It reports whether all of it was understood.
func (r *sedReader) read() bool {
	for {
		c := r.visible()
		switch {
		case r.failed > maxSedFailures || len(r.effects) > maxSedEffects:
			return false // made to take long, not to be run
		case c == sedEnd:
			return r.depth == 0
		case c == ';' || c == '\n':
		default:
			r.back()
			if !r.addresses() || !r.command(r.visible()) {
				return false
			}
		}
	}
}

// addresses reads what stands before a command: none, one or two addresses, and "!".
func (r *sedReader) addresses() bool {
	found, ok := r.address(false)
	if !ok {
		return false
	}
	c := r.visible()
	if found && c == ',' {
		if found, ok = r.address(true); !found || !ok {
			return false
		}
		c = r.visible()
	}
	for c == '!' {
		c = r.visible()
	}
	r.back()
	return true
}

func (r *sedReader) address(second bool) (found, ok bool) {
	c := r.visible()
	switch {
	case c == '/' || c == '\\':
		delimiter := c
		if c == '\\' {
			delimiter = r.next()
		}
		if !r.until(delimiter, true) {
			return false, false
		}
		for c = r.visible(); c == 'I' || c == 'M'; {
			c = r.visible()
		}
		r.back()
	case c == '$':
	case c >= '0' && c <= '9':
		r.back()
		r.number()
		if c = r.visible(); c != '~' {
			r.back()
			return true, true
		}
		return true, r.number()
	case second && (c == '+' || c == '~'):
		return true, r.number()
	default:
		r.back()
		return false, true
	}
	return true, true
}

// number takes digits, after blanks.
func (r *sedReader) number() bool {
	c := r.visible()
	start := r.at
	for ; c >= '0' && c <= '9'; c = r.next() {
	}
	r.back()
	return r.at >= start
}

// until reads up to a delimiter: a regular expression, or a text that replaces what it matches.
func (r *sedReader) until(delimiter byte, regex bool) bool {
	if delimiter == '\n' || delimiter == '\\' || delimiter == sedEnd || delimiter >= 0x80 {
		return false
	}
	for {
		switch c := r.next(); {
		case c == delimiter:
			return true
		case c == sedEnd || c == '\n':
			return false
		case c == '\\':
			if r.next() == sedEnd {
				return false
			}
		case c == '[' && regex && r.brackets && r.failed <= maxSedFailures:
			r.bracket()
		}
	}
}

// bracket reads the rest of a bracket expression: "[^]abc[:space:]]". One that does not end is an ordinary "[".
func (r *sedReader) bracket() {
	start := r.at
	c := r.next()
	if c == '^' {
		c = r.next()
	}
	if c == ']' {
		c = r.next()
	}
	for ; c != ']'; c = r.next() {
		if c == sedEnd || c == '\n' {
			r.at = start
			r.failed++
			return
		}
		if c != '[' {
			continue
		}
		if kind := r.next(); kind == ':' || kind == '.' || kind == '=' {
			end := strings.Index(r.text[min(r.at, len(r.text)):], string(kind)+"]")
			if end < 0 {
				r.at = start
				r.failed++
				return
			}
			r.at += end + 2
		} else {
			r.back()
		}
	}
}

// line takes the rest of the line.
func (r *sedReader) line() string {
	rest := r.text[min(r.at, len(r.text)):]
	line, _, _ := strings.Cut(rest, "\n")
	r.at += len(line) + 1
	return line
}

// ends checks that nothing else follows a command.
func (r *sedReader) ends() bool {
	switch r.visible() {
	case '}', '#', sedEnd:
		r.back()
		return true
	case ';', '\n':
		return true
	}
	return false
}

// command reads a command by its letter.
func (r *sedReader) command(c byte) bool {
	switch c {
	case '{':
		r.depth++
		return true
	case '}':
		r.depth--
		return r.depth >= 0 && r.ends()
	case '#':
		r.line()
		return true
	case '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		return r.ends()
	case 'l', 'L', 'q', 'Q':
		r.number()
		return r.ends()
	case ':', 'b', 't', 'T', 'v':
		r.label()
		return true
	case 'a', 'i', 'c':
		return r.insert()
	case 'y':
		d := r.next()
		from := r.until(d, false)
		return from && r.until(d, false) && r.ends()
	case 's':
		d := r.next()
		return r.until(d, true) && r.until(d, false) && r.substituteOptions()
	case 'r', 'R', 'w', 'W':
		return r.file(c)
	case 'e':
		r.effects = append(r.effects, shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: strings.TrimSpace(r.line()), Via: "e"})
		return true
	}
	return false
}

// label takes the name of a label. Some programs end it at ";" or "}", some do not: what follows is read as commands.
func (r *sedReader) label() {
	for c := r.visible(); ; c = r.next() {
		if strings.IndexByte(" \t\r\n;}", c) >= 0 || c == sedEnd {
			r.back()
			return
		}
	}
}

// insert takes the text of a, i and c: up to the end of a line that does not end with a backslash.
func (r *sedReader) insert() bool {
	c := r.visible()
	if c == sedEnd || c == '\n' {
		return false
	}
	if c == '\\' {
		// "a\" and blanks: does the text stand on this line or on the next? Programs differ.
		start := r.at
		if c = r.visible(); c == sedEnd || c == '\n' && r.at > start+1 {
			return false
		}
		if c == '\n' {
			c = r.next()
		}
	}
	for ; c != sedEnd && c != '\n'; c = r.next() {
		if c == '\\' && r.next() == sedEnd {
			break
		}
	}
	return true
}

// file takes the name of a file that is read or written.
func (r *sedReader) file(command byte) bool {
	name := strings.TrimLeft(r.line(), " \t\r\v\f")
	kind := shell.Reads
	if command == 'w' || command == 'W' {
		kind = shell.Writes
	}
	if name == "" {
		return false
	}
	if !slices.Contains([]string{"/dev/stdin", "/dev/stdout", "/dev/stderr"}, name) {
		r.effects = append(r.effects, shell.Effect{Kind: kind, Path: name, Via: string(command)})
	}
	return true
}

// substituteOptions reads what follows s/x/y/.
func (r *sedReader) substituteOptions() bool {
	for {
		switch c := r.visible(); {
		case c >= '0' && c <= '9', strings.IndexByte("gpiImM", c) >= 0:
		case c == 'e':
			r.effects = append(r.effects, shell.Effect{Kind: shell.Evaluates, Lang: "sh", Via: "s///e"})
		case c == 'w':
			return r.file(c)
		default:
			r.back()
			return r.ends()
		}
	}
}
