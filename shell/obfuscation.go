package shell

import (
	"slices"
	"strings"
)

// Obfuscation ids name ways to hide a program from whoever reads a command.
const (
	Base64PipeExec        = "base64-pipe-exec"
	Base64DecodeToShell   = "base64-decode-to-shell"
	HexPipeExec           = "hex-pipe-exec"
	PrintfPipeExec        = "printf-pipe-exec"
	PipeToShell           = "pipe-to-shell"
	CurlPipeShell         = "curl-pipe-shell"
	EvalDecode            = "eval-decode"
	SubstitutionDecode    = "command-substitution-decode-exec"
	ProcessSubstRemote    = "process-substitution-remote-exec"
	SourceProcessRemote   = "source-process-substitution-remote"
	ShellHeredoc          = "shell-heredoc-exec"
	OctalEscape           = "octal-escape"
	HexEscape             = "hex-escape"
	PythonExecEncoded     = "python-exec-encoded"
	VariableConcatenation = "var-expansion-obfuscation"
)

// Obfuscations names the ways in which a command line hides what it runs. It looks at the raw text, so that what
// analysis refuses is seen as well, and can be wrong in both directions: it makes people look, it vouches for nothing.
// It takes time in proportion to the text.
func Obfuscations(text string) (ids []string) {
	lower := strings.ToLower(text)
	seen := obfuscation{}
	if containsAny(lower, suspects) {
		for line := range strings.SplitSeq(lower, "\n") {
			seen.line(line)
		}
	}
	octal, hex := numberedCharacters(lower)
	for _, shape := range []struct {
		id   string
		seen bool
	}{
		{Base64PipeExec, seen.base64},
		{Base64DecodeToShell, seen.pipedBase64},
		{HexPipeExec, seen.xxd},
		{PrintfPipeExec, seen.printf},
		{PipeToShell, seen.pipe},
		{CurlPipeShell, seen.fetch},
		{EvalDecode, seen.eval},
		{SubstitutionDecode, seen.substitution},
		{ProcessSubstRemote, seen.process},
		{SourceProcessRemote, seen.source},
		{ShellHeredoc, seen.heredoc},
		{OctalEscape, octal},
		{HexEscape, hex},
		{PythonExecEncoded, seen.interpreter},
		{VariableConcatenation, spellsWithVariables(text)},
	} {
		if shape.seen {
			ids = append(ids, shape.id)
		}
	}
	return ids
}

// suspects are texts of which every shape that a line can have needs one: a shell behind a pipe or before code, a word
// that evaluates, an interpreter, or a redirection that is not of a file. All names of shells end in "sh".
var suspects = append([]string{"sh", "eval", "$(", "<<", "<("}, interpreters...)

// obfuscation is which shapes were seen.
type obfuscation struct {
	base64, pipedBase64, xxd, printf, pipe, fetch             bool
	eval, substitution, process, source, heredoc, interpreter bool
}

var (
	shellNames   = []string{"sh", "bash", "zsh", "dash", "ksh", "fish"}
	decoders     = []string{"base64", "xxd", "printf", "decode"}
	interpreters = []string{"python", "perl", "ruby"}
	executors    = []string{"base64", "b64", "decode", "exec", "system", "eval"}
)

// scan is what was seen so far on a line, from left to right. Places are byte offsets; -1 is nowhere.
type scan struct {
	line  string
	words [3]string // the last words, newest first, without directories
	after byte      // what stood before the last word: a delimiter, or 0

	decoded, pipedDecoded, unhexed, printed, fetched int // where the output that matters begins
	base64, pipedBase64, xxd                         bool
	evaluated, script, code                          int // where text begins that is evaluated
	shell, anyShell                                  bool
	lastPipe                                         int // the last "|" with a shell behind it
}

// line looks at one line, in lower case.
func (o *obfuscation) line(line string) {
	s := &scan{line: line, decoded: -1, pipedDecoded: -1, unhexed: -1, printed: -1, fetched: -1, evaluated: -1, script: -1, code: -1, lastPipe: -1}
	delimiter, pipe := byte(0), -1
	for i := 0; i < len(line); {
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case strings.IndexByte("|;&()<>`\"'", c) >= 0:
			i += o.delimiter(s, i)
			if delimiter = c; c == '|' {
				pipe = i - 1
			}
		default:
			end := i
			for end < len(line) && strings.IndexByte(" \t\r|;&()<>`\"'", line[end]) < 0 {
				end++
			}
			s.word(line[i:end], i, delimiter, pipe)
			delimiter, i = 0, end
		}
	}
	o.conclude(s)
}

// word takes the next word.
func (s *scan) word(word string, at int, delimiter byte, pipe int) {
	name := word[strings.LastIndexByte(word, '/')+1:]
	s.words[2], s.words[1], s.words[0], s.after = s.words[1], s.words[0], name, delimiter
	if slices.Contains(shellNames, name) {
		s.shell, s.anyShell = true, true
		if delimiter == '|' {
			s.lastPipe = pipe
		}
	}
	first := func(place *int) {
		if *place < 0 {
			*place = at
		}
	}
	flag := strings.HasPrefix(word, "-")
	switch {
	case name == "base64":
		s.base64, s.pipedBase64 = true, s.pipedBase64 || delimiter == '|'
	case name == "xxd":
		s.xxd = true
	case name == "printf":
		first(&s.printed)
	case name == "curl" || name == "wget":
		first(&s.fetched)
	case name == "eval":
		first(&s.evaluated)
	case flag && (strings.HasPrefix(word, "-d") || strings.HasPrefix(word, "--decode")):
		if s.base64 {
			first(&s.decoded)
		}
		if s.pipedBase64 {
			first(&s.pipedDecoded)
		}
	case flag && s.xxd && !strings.HasPrefix(word, "--") && strings.Contains(word, "r"):
		first(&s.unhexed)
	}
	if flag && !strings.HasPrefix(word, "--") {
		if slices.Contains(shellNames, s.words[1]) && strings.Contains(word, "c") {
			if rest := strings.TrimLeft(s.line[at+len(word):], " \t"); rest != "" && (rest[0] == '"' || rest[0] == '\'') {
				first(&s.script)
			}
		}
		if strings.ContainsAny(word[1:], "ec") && (s.interprets(1) || s.interprets(2)) {
			first(&s.code)
		}
	}
}

// interprets reports whether one of the last words is an interpreter.
func (s *scan) interprets(back int) bool {
	return slices.Contains(interpreters, strings.TrimRight(s.words[back], ".0123456789"))
}

// delimiter takes what stands between words, and says how long it is.
func (o *obfuscation) delimiter(s *scan, i int) int {
	rest := s.line[i:]
	switch {
	case rest[0] == '|' || rest[0] == ';' || rest[0] == '&':
		s.shell = false
	case strings.HasPrefix(rest, "<<<"):
		return 3
	case strings.HasPrefix(rest, "<<"):
		word := strings.TrimLeft(strings.TrimLeft(strings.TrimPrefix(rest[2:], "-"), " \t"), "\"'\\")
		o.heredoc = o.heredoc || s.shell && word != "" && (word[0] == '_' || word[0] >= 'a' && word[0] <= 'z')
		return 2
	case strings.HasPrefix(rest, "<("):
		inside := strings.TrimLeft(rest[2:], " \t")
		if strings.HasPrefix(inside, "curl") || strings.HasPrefix(inside, "wget") {
			o.process = o.process || s.anyShell
			o.source = o.source || s.words[0] == "source" || s.words[0] == "."
		}
	}
	return 1
}

// conclude says which shapes the line has.
func (o *obfuscation) conclude(s *scan) {
	before := func(place int) bool { return place >= 0 && place < s.lastPipe }
	o.base64 = o.base64 || before(s.decoded)
	o.pipedBase64 = o.pipedBase64 || before(s.pipedDecoded)
	o.xxd = o.xxd || before(s.unhexed)
	o.fetch = o.fetch || before(s.fetched)
	o.printf = o.printf || before(s.printed) && hexEscapes(s.line[s.printed:s.lastPipe]) > 0
	o.pipe = o.pipe || s.lastPipe >= 0 // whatever follows: "| sh; true" is no better
	o.eval = o.eval || s.evaluated >= 0 && containsAny(s.line[s.evaluated:], decoders)
	o.interpreter = o.interpreter || s.code >= 0 && containsAny(s.line[s.code:], executors)
	if s.script >= 0 {
		_, substituted, found := strings.Cut(s.line[s.script:], "$(")
		o.substitution = o.substitution || found && containsAny(substituted, decoders)
	}
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// hexEscapes counts \xHH.
func hexEscapes(text string) (n int) {
	for i := strings.Index(text, `\x`); i >= 0 && i+2 < len(text); {
		if strings.IndexByte("0123456789abcdef", text[i+2]) >= 0 {
			n++
		}
		next := strings.Index(text[i+2:], `\x`)
		if next < 0 {
			break
		}
		i += 2 + next
	}
	return n
}

// numberedCharacters reports whether any $'…' has two or more characters that are given by number.
func numberedCharacters(text string) (octal, hex bool) {
	for {
		_, rest, found := strings.Cut(text, "$'")
		if !found {
			return octal, hex
		}
		end := 0
		for end < len(rest) && rest[end] != '\'' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		quoted := rest[:min(end, len(rest))]
		hex = hex || hexEscapes(quoted) > 1
		octals := 0
		for i := 0; i+1 < len(quoted); i++ {
			if quoted[i] == '\\' {
				if quoted[i+1] >= '0' && quoted[i+1] <= '7' {
					octals++
				}
				i++
			}
		}
		octal = octal || octals > 1
		text = rest[min(end, len(rest)):]
	}
}

// spellsWithVariables finds commands that are put together from short variables: c=cat;p=/etc/passwd;$c $p.
func spellsWithVariables(text string) bool {
	if strings.IndexByte(text, '=') < 0 || strings.IndexByte(text, '$') < 0 {
		return false
	}
	names := map[string]bool{}
	for part := range strings.SplitSeq(text, ";") {
		if len(names) > 1 && usesAny(part, names) {
			return true
		}
		part = strings.TrimRight(part, " \t\n")
		name, _, found := strings.Cut(part[strings.LastIndexAny(part, " \t\n|&(")+1:], "=")
		if found && len(name) <= 3 && isVariable(name) {
			names[name] = true
		}
	}
	return false
}

// usesAny reports whether a text has one of the variables.
func usesAny(text string, names map[string]bool) bool {
	for {
		_, rest, found := strings.Cut(text, "$")
		if !found {
			return false
		}
		name := strings.TrimPrefix(rest, "{")
		end := 0
		for end < len(name) && end < 4 && (name[end] == '_' || name[end]|0x20 >= 'a' && name[end]|0x20 <= 'z' || name[end] >= '0' && name[end] <= '9') {
			end++
		}
		if names[name[:end]] {
			return true
		}
		text = rest
	}
}
