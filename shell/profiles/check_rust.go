package profiles

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// cargoLint is an option that says how a lint is treated.
var cargoLint = regexp.MustCompile(`^(-[WADF]([\w:-]+)?|--(warn|allow|deny|forbid|cap-lints)(=[\w:-]+)?|[\w:-]*[\w:])$`)

// checkCargoLints: behind "--" stand options of the compiler, some of which run programs; those about lints do not.
func checkCargoLints(a *arguments) {
	for _, word := range a.operands {
		if !cargoLint.MatchString(word) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// checkCargoFmt: behind "--" stand options of rustfmt.
func checkCargoFmt(a *arguments) {
	if !a.has("--check") && !slices.Contains(a.operands, "--check") {
		a.does(shell.Effect{Kind: shell.Writes, Path: "."})
	}
	if len(a.operands) > 0 {
		a.inner("rustfmt", a.operands)
	}
}

// checkCargoVendor: what is vendored goes into a directory.
func checkCargoVendor(a *arguments) {
	if a.section.Command == "update" && !slices.ContainsFunc(a.operands, func(s string) bool { return strings.Contains(s, "/") }) {
		return
	}
	for _, word := range a.operands {
		a.does(shell.Effect{Kind: shell.Writes, Path: word})
	}
}

// cargoWatched are the commands that are run again and again, such as "test -p x"; others may be anything.
var cargoWatched = regexp.MustCompile(`^(check|build|test|clippy|run|fmt|doc|nextest run)( [\w.:-]+)*$`)

func checkCargoWatch(a *arguments) {
	for _, g := range a.given {
		if (g.spelling == "-x" || g.spelling == "--exec") && !cargoWatched.MatchString(g.value) {
			a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
		}
	}
}

// checkRustc looks for files of options, and at where the result goes if nothing says so.
func checkRustc(a *arguments) {
	checkNoResponseFiles(a)
	for _, g := range a.given {
		switch g.spelling { // the compiler loads procedural macros from there, and runs them
		case "-extern", "-L", "-L*", "-sysroot":
			_, file, found := strings.Cut(g.value, "=")
			if !found {
				file = g.value
			}
			a.does(shell.Effect{Kind: shell.Enters, Path: file, Via: g.spelling})
		}
	}
	if len(a.operands) > 0 && !a.has("-o") && !a.has("--out-dir") && !a.has("-out-dir") {
		a.does(shell.Effect{Kind: shell.Writes, Path: "."})
	}
}
