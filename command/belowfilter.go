package command

import (
	"path"
	"slices"
	"strings"
)

// filter reports whether a program takes a file, or goes into a directory, by its last name. It errs by taking too many.
type filter func(name string, dir bool) bool

func takesAll(string, bool) bool { return true }

// filterOf is what a program leaves out of the files below a directory.
func filterOf(s *Segment) filter {
	args := s.Args
	short := func(letters string) bool {
		return slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.ContainsAny(a, letters)
		})
	}
	long := func(beginnings ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool {
			return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(a, b) })
		})
	}
	switch plainName(s.Program.Word) {
	case "grep", "egrep", "fgrep", "ggrep":
		return grepFilter(args)
	case "find":
		return findFilter(args)
	case "ls":
		if !short("aAf") && !long("--a") {
			return unhidden
		}
	case "rg", "fd", "fdfind":
		if !short("u.H") && !long("--unr", "--hid") {
			return unhidden
		}
	}
	return takesAll
}

func unhidden(name string, _ bool) bool { return !strings.HasPrefix(name, ".") }

// grepFilter goes by --include, --exclude and --exclude-dir: the last pattern that matches decides, and where none does, whether
// the first one was an --include.
func grepFilter(args []string) filter {
	type rule struct {
		include bool
		pattern string
	}
	var rules []rule
	var dirs []string
	for i := 0; i < len(args); i++ {
		option, value, attached := strings.Cut(args[i], "=")
		if args[i] == "--" {
			break
		}
		if !slices.Contains([]string{"--include", "--exclude", "--exclude-dir"}, option) {
			continue
		}
		if !attached {
			if i++; i == len(args) {
				return takesAll
			}
			value = args[i]
		}
		if option == "--exclude-dir" {
			dirs = append(dirs, value)
		} else {
			rules = append(rules, rule{option == "--include", value})
		}
	}
	return func(name string, dir bool) bool {
		if dir {
			return !slices.ContainsFunc(dirs, func(p string) bool { return surely(p, name) })
		}
		for _, r := range slices.Backward(rules) {
			if r.include && perhaps(r.pattern, name) || !r.include && surely(r.pattern, name) {
				return r.include
			}
		}
		return len(rules) == 0 || !rules[0].include
	}
}

// findFilter goes by -name where every alternative of the expression has one before its -exec. What is negated is left out.
func findFilter(args []string) filter {
	var patterns []string
	named := false
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "," || (a == "!" || a == "-not") && i+1 < len(args) && args[i+1] == "(":
			return takesAll
		case a == "!" || a == "-not":
			if i++; i < len(args) && slices.Contains([]string{"!", "-not"}, args[i]) {
				return takesAll
			} else if i < len(args) && strings.HasPrefix(args[i], "-") && args[i] != "-empty" && args[i] != "-executable" && args[i] != "-readable" && args[i] != "-writable" {
				i++ // its value
			}
		case a == "-o" || a == "-or":
			if !named {
				return takesAll
			}
			named = false
		case a == "-name" && i+1 < len(args):
			i++
			patterns, named = append(patterns, args[i]), true
		case strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok"):
			if !named {
				return takesAll
			}
			for i++; i < len(args) && args[i] != ";" && !(args[i] == "+" && args[i-1] == "{}"); i++ {
			}
		}
	}
	if !named {
		return takesAll
	}
	return func(name string, dir bool) bool {
		return dir || slices.ContainsFunc(patterns, func(p string) bool { return perhaps(p, name) })
	}
}

// perhaps reports whether a pattern may match a name: programs do not agree about brackets and backslashes.
func perhaps(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil || strings.ContainsAny(pattern, `[\`)
}

// surely reports whether a pattern matches a name for every program.
func surely(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil && !strings.ContainsAny(pattern, `[\`)
}
