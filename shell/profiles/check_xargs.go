package profiles

import (
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkXargs says which command xargs runs. What its input adds nobody knows: the command is open.
func checkXargs(a *arguments) {
	mark := ""
	for _, g := range a.given {
		switch g.spelling {
		case "-I":
			mark = g.value
		case "-i", "--replace":
			mark = "{}"
			if g.attached {
				mark = g.value
			}
		}
	}
	argv := slices.Clone(a.operands)
	if len(argv) == 0 {
		argv = []string{"echo"}
	}
	shows := argv[0] == "echo" || argv[0] == "/bin/echo" || argv[0] == "/usr/bin/echo"
	if mark != "" && !shows && marked(argv, mark) {
		// Text from the input becomes a program, or a part of a name or a script.
		a.does(shell.Effect{Kind: shell.Unknown, Via: mark})
	}
	for i, word := range argv {
		if word == mark && mark != "" {
			argv[i] = "{}" // as find writes it
		}
	}
	a.does(shell.Effect{Kind: shell.Runs, Argv: argv, Open: true})
}

// marked reports whether a mark that names of files take the place of stands in the program, or inside another word.
func marked(argv []string, mark string) bool {
	return strings.Contains(argv[0], mark) ||
		slices.ContainsFunc(argv[1:], func(word string) bool { return word != mark && strings.Contains(word, mark) })
}
