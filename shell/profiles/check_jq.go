package profiles

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// The options of jq, by how many words follow them.
var (
	jqFlags = strings.Fields(`--seq --stream --stream-errors --slurp --raw-input --null-input --compact-output --tab
		--unbuffered --sort-keys --color-output --monochrome-output --ascii-output --raw-output --raw-output0 --join-output
		--ascii --exit-status --binary --help --version --build-configuration --debug-dump-disasm --strip-comments`)
	jqOneText  = []string{"--indent"}
	jqTwoTexts = []string{"--arg", "--argjson"}
	jqFiles    = []string{"--slurpfile", "--rawfile", "--argfile"}
)

// jqShort are options of one letter.
const jqShort = "srRncCMaSejbhV"

// checkJQ reads the arguments of jq and its program, which is the first word that is no option.
func checkJQ(a *arguments) {
	r := jqArguments{a: a}
	for words := a.operands; len(words) > 0; {
		words = r.word(words[0], words[1:])
	}
	if r.program != nil && !r.fromFile {
		a.jqProgram(*r.program)
	}
}

// jqArguments is what was seen of the arguments of jq.
type jqArguments struct {
	a        *arguments
	program  *string
	fromFile bool // the first word that is no option names a file with the program
	text     bool // the other words are texts, no files
	plain    bool // after "--"
}

// word reads a word and what belongs to it, and returns the rest.
func (r *jqArguments) word(word string, rest []string) []string {
	n := 0
	switch {
	case r.plain || len(word) < 2 || word[0] != '-':
		r.operand(word)
	case word == "--":
		r.plain = true
	case word == "--args" || word == "--jsonargs":
		r.text = true
	case word == "--from-file":
		r.readsProgram(word)
	case slices.Contains(jqFlags, word):
	case slices.Contains(jqOneText, word):
		n = 1
	case slices.Contains(jqTwoTexts, word):
		n = 2
	case slices.Contains(jqFiles, word):
		if n = 2; len(rest) >= n {
			r.a.does(shell.Effect{Kind: shell.Reads, Path: rest[1], Via: word})
		}
	case strings.Trim(word[1:], jqShort) == "":
	case strings.Trim(word[1:], jqShort+"f") == "":
		r.readsProgram(word)
	default: // -L, too: programs that lie there replace what the names of functions mean
		r.a.does(shell.Effect{Kind: shell.Unknown, Via: word})
	}
	if n > len(rest) {
		r.a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		return nil
	}
	return rest[n:]
}

func (r *jqArguments) operand(word string) {
	switch {
	case r.program == nil:
		r.program = &word
		if r.fromFile {
			r.a.word(Role{Name: "script"}, word, "-f")
		}
	case !r.text:
		r.a.does(shell.Effect{Kind: shell.Reads, Path: word})
	}
}

// readsProgram is -f: the program stands in a file, which is not looked into.
func (r *jqArguments) readsProgram(via string) {
	if r.program != nil && !r.fromFile {
		r.a.word(Role{Name: "script"}, *r.program, via)
	}
	r.fromFile = true
}

// Words of jq that reach beyond input and output.
var (
	jqEnvironment = []string{"env", "$ENV"}
	jqLoading     = []string{"import", "include", "modulemeta", "get_search_list", "$__prog_args", "input_filename"}
)

// jqProgram looks for words that reach beyond the input. jq has nothing that writes or starts programs.
func (a *arguments) jqProgram(text string) {
	words, understood := jqWords(text)
	for _, word := range words {
		switch {
		case slices.Contains(jqEnvironment, word):
			a.does(shell.Effect{Kind: shell.Environment, Via: word})
		case slices.Contains(jqLoading, word):
			understood = false
		}
	}
	if !understood {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "jq", Text: text})
	}
}

// jqWords lists the names in a program that are no fields: not .env, "env" or {env: 1}. ok is false if brackets or
// strings do not end.
func jqWords(text string) (words []string, ok bool) {
	r := jqReader{text: text}
	for r.at < len(text) {
		r.step()
	}
	return r.words, !r.unclear && len(r.open) == 0
}

// jqReader takes a program apart into words.
type jqReader struct {
	text    string
	at      int
	open    []byte // brackets, and "\" for an expression inside a string
	words   []string
	field   bool // a dot stands before
	first   bool // a key may stand here: after "{" or ","
	unclear bool
}

func (r *jqReader) step() {
	c := r.text[r.at]
	field, first := r.field, r.first
	r.field, r.first = false, false
	switch {
	case c == '"':
		r.at++
		r.stringRest()
	case c == '#':
		r.comment()
	case isJQWord(c) || c == '$' || c == '@':
		start := r.at
		for r.at++; r.at < len(r.text) && (isJQWord(r.text[r.at]) || strings.HasPrefix(r.text[r.at:], "::") || r.text[r.at-1] == ':' && r.text[r.at] == ':'); r.at++ {
		}
		word := r.text[start:r.at]
		key := first && strings.HasPrefix(strings.TrimLeft(r.text[r.at:], " \t\r\n"), ":") && len(r.open) > 0 && r.open[len(r.open)-1] == '{'
		if !field && (!key || c == '$') {
			if c == '$' && word == "$" { // jq 1.7 allows blanks between "$" and the name
				r.unclear = true
			}
			r.words = append(r.words, word)
		}
	case c == '.':
		r.at++
		r.field = r.at < len(r.text) && isJQWord(r.text[r.at]) && (r.text[r.at] < '0' || r.text[r.at] > '9')
	case c == '(' || c == '[' || c == '{':
		r.at++
		r.open = append(r.open, c)
		r.first = c == '{'
	case c == ')' || c == ']' || c == '}':
		r.at++
		r.close(c)
	default:
		r.at++
		r.first = c == ',' || first && (c == ' ' || c == '\t' || c == '\n' || c == '\r')
	}
}

// close takes a closing bracket. The one of an expression in a string goes on with the string.
func (r *jqReader) close(c byte) {
	opened := map[byte]string{')': "(\\", ']': "[", '}': "{"}[c]
	if len(r.open) == 0 || !strings.Contains(opened, string(r.open[len(r.open)-1])) {
		r.unclear = true
		return
	}
	last := r.open[len(r.open)-1]
	r.open = r.open[:len(r.open)-1]
	if last == '\\' {
		r.stringRest()
	}
}

// stringRest reads a string to its end, or to an expression in it.
func (r *jqReader) stringRest() {
	for ; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case '"':
			r.at++
			return
		case '\\':
			r.at++
			if r.at < len(r.text) && r.text[r.at] == '(' {
				r.at++
				r.open = append(r.open, '\\')
				return
			}
		}
	}
	r.unclear = true
}

// comment skips to the end of the line. Whether a backslash goes on with the comment depends on the version.
func (r *jqReader) comment() {
	line, _, _ := strings.Cut(r.text[r.at:], "\n")
	if strings.HasSuffix(strings.TrimSuffix(line, "\r"), "\\") || strings.Contains(strings.TrimSuffix(line, "\r"), "\r") {
		r.unclear = true
	}
	r.at += len(line)
}

func isJQWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Words of yq's own language, and of jq's, that reach beyond the input.
var yqReaching = regexp.MustCompile(`(^|[^.\w"])(load\w*|env\w*|strenv|eval|system|import|include|\$\s*\w*ENV|\$__prog_args)\b`)

// yqFile matches what may be a file where an expression may stand: yq looks whether there is one.
var yqFile = regexp.MustCompile(`^[\w./+~-]+$`)

// checkYQ looks at the expression of yq and at the files that it changes in place.
func checkYQ(a *arguments) {
	files := a.operands
	if len(files) > 0 && slices.Contains([]string{"e", "eval", "ea", "eval-all"}, files[0]) {
		files = files[1:]
	}
	kind := shell.Reads
	if a.has("-i") || a.has("--inplace") || a.has("--in-place") {
		kind = shell.Writes
	}
	if file, ok := a.value("--from-file"); ok {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "yq", Via: "--from-file " + file})
	}
	expression, given := a.value("--expression")
	if !given && !a.has("--from-file") && len(files) > 0 {
		expression, files = files[0], files[1:]
		if yqFile.MatchString(expression) && expression != "." {
			a.does(shell.Effect{Kind: kind, Path: expression})
		}
	}
	if yqReaching.MatchString(expression) {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "yq", Text: expression})
	}
	for _, file := range files {
		if file != "-" {
			a.does(shell.Effect{Kind: kind, Path: file})
		}
	}
}
