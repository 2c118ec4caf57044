package profiles

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkGoPackages looks at what the go command is to build. A package with a version is fetched and is none of the
// project's; a path may lead out of the project.
func checkGoPackages(a *arguments) {
	if mod, _ := a.value("-mod"); mod == "mod" { // what is missing is asked for where its name says
		checkGoGet(a)
	}
	packages := a.operands
	if a.section.Command == "run" {
		packages = goRunPackages(packages)
	}
	for _, p := range packages {
		switch dir, isPath := goPatternDir(p); {
		case strings.Contains(p, "@"):
			a.does(shell.Effect{Kind: shell.Network, Via: p})
			a.does(shell.Effect{Kind: shell.Unknown, Via: p})
		case isPath && dir != ".":
			a.does(shell.Effect{Kind: shell.Enters, Path: dir})
		}
	}
}

// goRunPackages takes the package, or all files of Go, from the operands of "go run"; what follows is the program's.
func goRunPackages(operands []string) []string {
	n := 0
	for n < len(operands) && strings.HasSuffix(operands[n], ".go") {
		n++
	}
	return operands[:min(max(n, 1), len(operands))]
}

// goPatternDir is the directory, or file, of a pattern that is a path: "./x/..." is "./x".
func goPatternDir(pattern string) (dir string, isPath bool) {
	switch {
	case strings.HasSuffix(pattern, ".go"):
		return pattern, true
	case pattern != "." && pattern != ".." && !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "./") &&
		!strings.HasPrefix(pattern, "../"):
		return "", false
	}
	dir, _, _ = strings.Cut(pattern, "...")
	if trimmed := strings.TrimRight(dir, "/"); trimmed != "" {
		dir = trimmed
	}
	return dir, true
}

// checkGoFormatted looks at packages whose files are rewritten. Packages that are not named by a path could be
// anywhere, even those of the Go installation.
func checkGoFormatted(a *arguments) {
	if len(a.operands) == 0 {
		a.does(shell.Effect{Kind: shell.Writes, Path: "."})
	}
	for _, p := range a.operands {
		if dir, isPath := goPatternDir(p); isPath {
			a.does(shell.Effect{Kind: shell.Writes, Path: dir})
		} else {
			a.does(shell.Effect{Kind: shell.Unknown, Via: p})
		}
	}
}

// checkGoGet looks for toolchains, which the go command runs as soon as it has them, and for modules of others: the next
// build runs what they hold.
func checkGoGet(a *arguments) {
	for _, p := range a.operands {
		name, _, _ := strings.Cut(p, "@")
		first, _, _ := strings.Cut(name, "/")
		switch _, isPath := goPatternDir(name); {
		case name == "go" || name == "toolchain":
			a.does(shell.Effect{Kind: shell.Unknown, Via: p})
		case !isPath && strings.Contains(first, "."):
			a.does(shell.Effect{Kind: shell.Network, Host: first, Via: p, Remote: "https://" + name})
		}
	}
}

// checkGoList: a module with a version is asked for where its name says, which tells that host whatever stands in the name.
func checkGoList(a *arguments) {
	mod, _ := a.value("-mod")
	if mod == "mod" || slices.ContainsFunc(a.operands, func(s string) bool { return strings.Contains(s, "@") }) {
		checkGoGet(a)
	}
}

// checkGoPprof: without a kind of report a prompt is shown, which runs commands; a profile may be an address.
func checkGoPprof(a *arguments) {
	if !slices.ContainsFunc([]string{"-top", "-text", "-tree", "-raw", "-traces", "-tags", "-list", "-peek"}, a.has) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "pprof"})
	}
	for _, word := range a.operands {
		if strings.Contains(word, ":") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// checkGoCover: a report that goes to no file is shown in a browser, which is started.
func checkGoCover(a *arguments) {
	if a.has("-html") && !a.has("-o") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "-html"})
	}
}

// checkGolangciFix: without paths, what is mended lies in the present directory.
func checkGolangciFix(a *arguments) {
	if a.has("--fix") && len(a.operands) == 0 {
		a.does(shell.Effect{Kind: shell.Writes, Path: ".", Via: "--fix"})
	}
}

// The flags of compiler, assembler and linker that do nothing but change what is built.
var goToolFlags = map[string]*regexp.Regexp{
	"-gcflags":  regexp.MustCompile(`^--?(N|l|m|S|e|L|live|B|C|w|wb|race|msan|asan|shared|dwarf|dwarflocationlists|std|lang|spectre|c|d)(=[\w.,=-]*)?$`),
	"-asmflags": regexp.MustCompile(`^--?(S|e|v|spectre|shared|D)(=[\w.,=-]*)?$`),
	"-ldflags":  regexp.MustCompile(`^--?(s|w|race|msan|asan|v|n|c|d|g|X|H|linkmode|buildid|B|E|R|T|compressdwarf|buildmode|extldflags|checklinkname)(=|$)`),
}

// goLinkerValues are the linker's flags whose value may be the next word.
var goLinkerValues = strings.Fields(`X H linkmode buildid B E R T buildmode extldflags`)

// The linker that cgo uses takes nearly as many flags as programs; these do no harm.
var goExternalFlags = strings.Fields(`-static -static-pie -s -w -lm -lpthread -Wl,-z,relro -Wl,-z,now -Wl,--gc-sections
	-Wl,--as-needed`)

// checkGoToolFlags looks at flags that are handed on to compiler, assembler and linker: the linker's -extld is a
// program that is run.
func checkGoToolFlags(a *arguments) {
	for _, g := range a.given {
		allowed := goToolFlags[strings.Replace(g.spelling, "--", "-", 1)]
		if allowed == nil {
			continue
		}
		value := g.value
		if !strings.HasPrefix(value, "-") { // "pattern=flags"
			_, value, _ = strings.Cut(value, "=")
		}
		words, ok := goQuotedFields(value)
		for i := 0; ok && i < len(words); i++ {
			ok = allowed.MatchString(words[i])
			name, text, attached := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
			if !attached && slices.Contains(goLinkerValues, name) && i+1 < len(words) {
				i++
				text = words[i]
			}
			if name == "extldflags" {
				ok = ok && !slices.ContainsFunc(strings.Fields(text), func(s string) bool { return !slices.Contains(goExternalFlags, s) })
			}
		}
		if !ok {
			a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
		}
	}
}

// goQuotedFields splits words as the go command does: quotes count where a word begins. A quote elsewhere is refused,
// since versions differ.
func goQuotedFields(text string) (words []string, ok bool) {
	for text = strings.TrimLeft(text, " \t\n\r"); text != ""; text = strings.TrimLeft(text, " \t\n\r") {
		if quote := text[0]; quote == '\'' || quote == '"' {
			end := strings.IndexByte(text[1:], quote)
			if end < 0 {
				return nil, false
			}
			words, text = append(words, text[1:1+end]), text[2+end:]
			continue
		}
		end := strings.IndexAny(text, " \t\n\r")
		if end < 0 {
			end = len(text)
		}
		words, text = append(words, text[:end]), text[end:]
	}
	return words, !slices.ContainsFunc(words, func(s string) bool { return strings.ContainsAny(s, "'\"\\`") })
}
