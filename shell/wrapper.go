package shell

import (
	"path"
	"slices"
	"strings"
)

// maxWrappers is how many wrappers may stand before a program.
const maxWrappers = 4

// Unwrapped is a command after the programs that only start another one are taken off.
type Unwrapped struct {
	Wrappers []string // names, outermost first
	At       []int    // where each wrapper stands in the argv
	Program  int      // where the program stands that they start
	Blocked  string   // name of a wrapper that is not understood as it is used; then nothing about Program is known
}

// Unwrap takes off wrappers that leave what a program does as it is. All others block: they would hide which program
// starts, or start it with other rights, files or limits.
func Unwrap(argv []string) Unwrapped {
	var u Unwrapped
	for u.Program < len(argv) {
		name := ProgramName(argv[u.Program])
		if slices.Contains(blockedWrappers, name) {
			u.Blocked = name
			return u
		}
		options, known := wrapperOptions[name]
		if !known {
			return u
		}
		n, ok := options(argv[u.Program+1:])
		if !ok || len(u.Wrappers) == maxWrappers {
			u.Blocked = name
			return u
		}
		u.Wrappers = append(u.Wrappers, name)
		u.At = append(u.At, u.Program)
		u.Program += 1 + n
	}
	return u
}

// IsWrapper reports whether a program of this name only starts another one.
func IsWrapper(name string) bool {
	return wrapperOptions[name] != nil || slices.Contains(blockedWrappers, name)
}

// ProgramName is the name by which a program is known: the base name of its path in lower case, without an ".exe" behind it. It is never empty.
func ProgramName(word string) string {
	if isName(word) {
		return word
	}
	name := strings.ToLower(path.Base(strings.ReplaceAll(word, `\`, "/")))
	if short := strings.TrimSuffix(name, ".exe"); short != "" {
		return short
	}
	return name
}

// isName reports whether a word is the name of a program already, as most are.
func isName(word string) bool {
	for i := range len(word) {
		if c := word[i]; kindOf(c) != 'a' && kindOf(c) != '0' && c != '-' && c != '_' {
			return false
		}
	}
	return word != ""
}

// blockedWrappers start other programs in ways that are not looked into.
var blockedWrappers = []string{
	"sudo", "doas", "su", "runuser", "pkexec", "chrt", "ionice", "setsid", "taskset", "setpriv", "unshare", "nsenter",
	"chroot", "flock", "script", "strace", "ltrace", "xvfb-run", "systemd-run", "watch", "parallel", "time",
}

// wrapperOptions take the options of transparent wrappers: how many words they and a command of at least one word
// leave to the command; not ok if anything is not known.
var wrapperOptions = map[string]func(args []string) (n int, ok bool){
	"env":     envOptions,
	"nice":    niceOptions,
	"nohup":   func(args []string) (int, bool) { return noOptions(args) },
	"stdbuf":  stdbufOptions,
	"timeout": timeoutOptions,
}

// noOptions takes nothing but "--".
func noOptions(args []string) (int, bool) {
	if len(args) > 0 && args[0] == "--" {
		return 1, len(args) > 1
	}
	return 0, len(args) > 0 && !strings.HasPrefix(args[0], "-")
}

// envOptions takes no options and no variables: both change what the program does. A lone "-" is an option, even behind
// "--".
func envOptions(args []string) (int, bool) {
	n, ok := noOptions(args)
	return n, ok && args[n] != "-" && !strings.Contains(args[n], "=")
}

func niceOptions(args []string) (int, bool) {
	return takeOptions(args, func(arg string) taken {
		switch {
		case arg == "-n" || arg == "--adjustment" || arg == "--priority":
			return takesNext
		case strings.HasPrefix(arg, "-n"), strings.HasPrefix(arg, "--adjustment="), strings.HasPrefix(arg, "--priority="),
			IsNumber(strings.TrimLeft(arg, "-+")) && arg != "":
			return takesOne
		}
		return takesNone
	}, integer)
}

// stdbufOptions takes at least one option: without any, stdbuf starts nothing.
func stdbufOptions(args []string) (int, bool) {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return 0, false
	}
	return takeOptions(args, func(arg string) taken {
		switch {
		case slices.Contains([]string{"-i", "-o", "-e", "--input", "--output", "--error"}, arg):
			return takesNext
		case len(arg) > 2 && strings.IndexByte("ioe", arg[1]) >= 0 && arg[0] == '-',
			strings.HasPrefix(arg, "--input="), strings.HasPrefix(arg, "--output="), strings.HasPrefix(arg, "--error="):
			return takesOne
		}
		return takesNone
	}, nil)
}

func timeoutOptions(args []string) (int, bool) {
	n, ok := takeOptions(args, func(arg string) taken {
		switch {
		case arg == "-k" || arg == "-s":
			return takesNext
		case slices.Contains([]string{"--foreground", "--preserve-status", "-v", "--verbose"}, arg),
			strings.HasPrefix(arg, "--kill-after="), strings.HasPrefix(arg, "--signal="):
			return takesOne
		}
		return takesNone
	}, nil)
	if !ok || !isDuration(args[n]) {
		return 0, false
	}
	return n + 1, n+1 < len(args) && !strings.HasPrefix(args[n+1], "-")
}

// taken says how many words an option has.
type taken int

const (
	takesNone taken = iota // it is not an option that is known
	takesOne
	takesNext // its value is the next word
)

// takeOptions takes options up to the first word that is none, which must be there. value, if set, checks values that
// are words of their own.
func takeOptions(args []string, option func(string) taken, value func(string) bool) (int, bool) {
	for n := 0; n < len(args); {
		arg := args[n]
		switch {
		case arg == "--":
			return n + 1, n+1 < len(args)
		case !strings.HasPrefix(arg, "-"):
			return n, true
		}
		switch option(arg) {
		case takesOne:
			n++
		case takesNext:
			if n+1 >= len(args) || value != nil && !value(args[n+1]) {
				return 0, false
			}
			n += 2
		default:
			return 0, false
		}
	}
	return 0, false
}

func integer(s string) bool { return IsNumber(strings.TrimLeft(s, "-+")) }

// IsNumber reports whether a word is digits and nothing else.
func IsNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// isDuration accepts what timeout accepts: a number, with a fraction and a unit if wanted.
func isDuration(s string) bool {
	if s == "" {
		return false
	}
	if strings.IndexByte("smhd", s[len(s)-1]) >= 0 {
		s = s[:len(s)-1]
	}
	whole, fraction, dotted := strings.Cut(s, ".")
	return IsNumber(whole) && (!dotted || IsNumber(fraction)) || whole == "" && IsNumber(fraction)
}
