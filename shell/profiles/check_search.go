package profiles

import (
	"slices"

	"github.com/toolward/toolward/shell"
)

// checkGrep adds the directory that grep -r searches if nobody names one.
func checkGrep(a *arguments) {
	directories, _ := a.value("-d", "--directories")
	if directories == "recurse" || slices.ContainsFunc([]string{"-r", "-R", "--recursive", "--dereference-recursive"}, a.has) {
		a.searches("-e", "--regexp", "-f", "--file")
	}
}

// checkRipgrep adds the directory that rg searches if nobody names one.
func checkRipgrep(a *arguments) {
	a.searches("-e", "--regexp", "-f", "--file", "--files", "--type-list")
}

// searches adds the working directory if no operand names a place. The first operand is a pattern, unless one of the
// options is given.
func (a *arguments) searches(patternOptions ...string) {
	n := len(a.operands)
	if !slices.ContainsFunc(patternOptions, a.has) {
		n--
	}
	if n <= 0 {
		a.does(shell.Effect{Kind: shell.Reads, Path: "."})
	}
}
