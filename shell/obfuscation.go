package shell

import (
	"regexp"
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

// aShell is the name of a shell as a word, with a path before it perhaps.
const aShell = `(?:\S*/)?(?:sh|bash|zsh|dash|ksh|fish)\b`

// obfuscations are looked for in the raw text, so that what analysis refuses is seen as well. Go's expressions take
// time in proportion to the text, whatever it is.
var obfuscations = []struct {
	id    string
	shape *regexp.Regexp
}{
	{Base64PipeExec, regexp.MustCompile(`(?i)base64\s+(?:\S+\s+)*(?:-d|--decode)\b[^\n]*\|\s*` + aShell)},
	{Base64DecodeToShell, regexp.MustCompile(`(?i)\|\s*(?:\S*/)?base64\s+(?:\S+\s+)*(?:-d\w*|--decode)\b[^\n]*\|\s*` + aShell)},
	{HexPipeExec, regexp.MustCompile(`(?i)xxd\s+(?:\S+\s+)*-\w*r\w*\b[^\n]*\|\s*` + aShell)},
	{PrintfPipeExec, regexp.MustCompile(`(?i)printf\s[^\n]*\\x[0-9a-f]{2}[^\n]*\|\s*` + aShell)},
	{PipeToShell, regexp.MustCompile(`(?im)\|\s*` + aShell + `(?:[ \t][^|\n;&]*)?[ \t]*$`)},
	{CurlPipeShell, regexp.MustCompile(`(?i)(?:curl|wget)\s[^\n]*\|\s*` + aShell)},
	{EvalDecode, regexp.MustCompile(`(?i)\beval\b[^\n]*(?:base64|xxd|printf|decode)`)},
	{SubstitutionDecode, regexp.MustCompile(`(?i)\b(?:sh|bash|zsh|dash|ksh|fish)\s+-\w*c\w*\s+["'][^\n]*\$\([^\n]*(?:base64|xxd|printf|decode)`)},
	{ProcessSubstRemote, regexp.MustCompile(`(?i)\b(?:sh|bash|zsh|dash|ksh|fish)\s+[^\n]*<\(\s*(?:curl|wget)\b`)},
	{SourceProcessRemote, regexp.MustCompile(`(?i)(?:^|[\s;&|(])(?:source|\.)\s+<\(\s*(?:curl|wget)\b`)},
	{ShellHeredoc, regexp.MustCompile(`(?i)(?:^|[\s;&|(])` + aShell + `[^\n|;&]*<<-?\s*["'\\]?[A-Za-z_]`)},
	{OctalEscape, regexp.MustCompile(`\$'(?:[^']*\\[0-7]{1,3}){2}`)},
	{HexEscape, regexp.MustCompile(`(?i)\$'(?:[^']*\\x[0-9a-f]{1,2}){2}`)},
	{PythonExecEncoded, regexp.MustCompile(`(?i)\b(?:python|perl|ruby)[0-9.]*\s+(?:\S+\s+)*-\w*[ec]\w*[\s"'][^\n]*(?:base64|b64|decode|exec|system|eval)`)},
}

// Obfuscations names the ways in which a command line hides what it runs. It looks at the raw text and can be wrong in
// both directions: it makes people look, it vouches for nothing.
func Obfuscations(text string) (ids []string) {
	for i := range obfuscations {
		if obfuscations[i].shape.MatchString(text) {
			ids = append(ids, obfuscations[i].id)
		}
	}
	if spellsWithVariables(text) {
		ids = append(ids, VariableConcatenation)
	}
	return ids
}

var (
	shortVariable = regexp.MustCompile(`(?:^|[\s&|(])([A-Za-z_]\w{0,2})=\S*\s*$`)
	variableUse   = regexp.MustCompile(`\$\{?([A-Za-z_]\w{0,2})\b`)
)

// spellsWithVariables finds commands that are put together from short variables: c=cat;p=/etc/passwd;$c $p.
func spellsWithVariables(text string) bool {
	if !strings.Contains(text, "=") || !strings.Contains(text, "$") {
		return false
	}
	var names []string
	for part := range strings.SplitSeq(text, ";") {
		if len(names) > 1 {
			for _, use := range variableUse.FindAllStringSubmatch(part, -1) {
				if slices.Contains(names, use[1]) {
					return true
				}
			}
		}
		if found := shortVariable.FindStringSubmatch(part); found != nil {
			names = append(names, found[1])
		}
	}
	return false
}
