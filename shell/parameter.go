package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainParameter is the name in $NAME or ${NAME}, the only uses of a parameter that are accepted. It is found in the
// source text, so that no form of parameter that the parser knows, now or later, slips through a field that nobody
// looked at.
func plainParameter(source string) (name string, ok bool) {
	name, ok = strings.CutPrefix(source, "$")
	if inside, braced := strings.CutPrefix(name, "{"); ok && braced {
		name, ok = strings.CutSuffix(inside, "}")
	}
	return name, ok && isVariable(name)
}

// isVariable reports whether a text is the name of a variable.
func isVariable(name string) bool {
	for i := range len(name) {
		if c := name[i]; c != '_' && (kindOf(c) == 0 || i == 0 && kindOf(c) == '0') {
			return false
		}
	}
	return name != ""
}

// shellVariables are those that shells set themselves, before a command or while they run one: their values are not
// those of the environment. PWD is not among them; it is the directory of the command.
var shellVariables = strings.Fields(`_ BASH BASHOPTS BASHPID COLUMNS COPROC DIRSTACK EUID FUNCNAME GROUPS HOSTNAME HOSTTYPE
	IFS LINENO LINES MACHTYPE MAPFILE OLDPWD OPTARG OPTERR OPTIND OSTYPE PIPESTATUS PPID PS1 PS2 PS3 PS4 RANDOM REPLY SECONDS
	SHELL SHELLOPTS SHLVL SRANDOM TERM TIMEFORMAT UID
	ARGC CPUTYPE EGID ERRNO GID HOST KEYTIMEOUT LOGCHECK MATCH MBEGIN MEND NULLCMD PROMPT PROMPT2 PROMPT3 PROMPT4
	READNULLCMD RPROMPT SPROMPT TIMEFMT TRY_BLOCK_ERROR TTY TTYIDLE USERNAME VENDOR WORDCHARS
	argv fpath cdpath manpath mailpath match mbegin mend module_path path pipestatus prompt psvar signals status watch
	aliases builtins commands functions history options parameters modules jobtexts jobdirs jobstates nameddirs userdirs`)

var shellVariablePrefixes = []string{"BASH_", "COMP_", "EPOCH", "HIST", "READLINE_", "ZSH_", "zsh_"}

// parameterName is the name in $NAME or ${NAME}. Other forms are not accepted, nor are names that shells give values:
// $_ is the last argument of the command before, and $IFS takes a word apart.
func parameterName(source string) (name string, ok bool) {
	if name, ok = plainParameter(source); !ok {
		return "", false
	}
	own := slices.Contains(shellVariables, name) ||
		slices.ContainsFunc(shellVariablePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	return name, !own
}

// growsInBraces finds a $NAME whose name a shell makes longer when it takes braces apart before it looks at
// parameters: "$X{a,b}" is "$Xa $Xb".
func (w *walker) growsInBraces(node *syntax.Word) bool {
	for _, part := range node.Parts {
		p, ok := part.(*syntax.ParamExp)
		if !ok || !p.Short {
			continue
		}
		if end := int(p.End().Offset()); end < len(w.text) && strings.IndexByte("{,}", w.text[end]) >= 0 {
			return true
		}
	}
	return false
}
