package command

import (
	"slices"
	"strings"
	"unicode"

	"github.com/toolward/toolward/shell"
)

// CommandText is how an argv is shown to people.
type CommandText struct {
	Text  string
	Shell string // the text that a shell is given, if the argv is a shell with one; else ""
}

// CommandTextError says why an argv and the text that came with it cannot be shown to anybody.
type CommandTextError struct{ Code, Text string }

func (e *CommandTextError) Error() string { return e.Code + ": " + e.Text }

// The codes of CommandTextError.
const (
	CodeMissingCommand     = "MISSING_COMMAND"
	CodeRawCommandMismatch = "RAW_COMMAND_MISMATCH"
)

// TextOf is the one text under which an argv may be shown. raw is what the caller says that the text is; "" if it says
// nothing. Another text than the argv's own is an error: people would approve something else than what runs.
func TextOf(argv []string, raw string) (CommandText, error) {
	raw = trimSpace(raw)
	if len(argv) == 0 || trimSpace(argv[0]) == "" { // a list of words that begins with none starts nothing that it names
		return CommandText{}, &CommandTextError{CodeMissingCommand, "the argv names no program"}
	}
	script := shellText(argv)
	text := CommandText{Text: joinArgv(argv), Shell: script.text}
	if script.text != "" && script.whole {
		text.Text = script.text
	}
	if raw != "" && raw != text.Text {
		return CommandText{}, &CommandTextError{CodeRawCommandMismatch, "rawCommand is not the text of the argv"}
	}
	return text, nil
}

// joinArgv is an argv as one text. It is for people and for comparing, never for a shell.
func joinArgv(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = word
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r == '"' || isSpace(r) }) {
			words[i] = `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
		}
	}
	return strings.Join(words, " ")
}

// isSpace includes what some programs take for white space although Unicode does not.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }

func trimSpace(s string) string { return strings.TrimFunc(s, isSpace) }

// givenText is what a shell is given to run.
type givenText struct {
	text  string // "" if there is none
	whole bool   // it says all that runs: no arguments follow, and no variables are set for the shell
}

// shellText finds the script of a shell, behind wrappers whose effect is known.
func shellText(argv []string) givenText {
	whole := true
	for range 5 {
		if len(argv) == 0 {
			return givenText{}
		}
		name := shell.ProgramName(argv[0])
		if name == "env" {
			rest, plain, ok := afterEnv(argv[1:])
			if !ok {
				return givenText{}
			}
			argv, whole = rest, whole && plain
			continue
		}
		if n := wrapperLength(argv); n > 0 {
			argv = argv[n:]
			continue
		}
		if (name == "busybox" || name == "toybox") && len(argv) > 1 {
			argv = argv[1:]
			continue
		}
		found := scriptIn(name, argv[1:])
		found.whole = found.whole && whole
		return found
	}
	return givenText{} // too many wrappers: the whole argv is shown
}

// wrapperLength is how many words a transparent wrapper other than env takes; 0 if the argv begins with none.
func wrapperLength(argv []string) int {
	u := shell.Unwrap(argv)
	if len(u.At) == 0 {
		return 0
	}
	if len(u.At) > 1 {
		return u.At[1]
	}
	return u.Program
}

// afterEnv is the command that env starts. plain: env changes nothing for it.
func afterEnv(args []string) (rest []string, plain, ok bool) {
	plain = true
	for len(args) > 0 {
		arg := args[0]
		name, _, assigned := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			args = args[1:]
		case slices.Contains([]string{"-u", "--unset", "-C", "--chdir"}, arg):
			if len(args) < 2 {
				return nil, false, false
			}
			args, plain = args[2:], false
			continue
		case slices.Contains([]string{"-", "-i", "--ignore-environment", "-0", "--null", "-v", "--debug"}, arg),
			assigned && slices.Contains([]string{"--unset", "--chdir"}, name),
			len(arg) > 2 && (strings.HasPrefix(arg, "-u") || strings.HasPrefix(arg, "-C")):
			args, plain = args[1:], false
			continue
		case strings.HasPrefix(arg, "-"):
			return nil, false, false // -S splits a text into a command of its own; others are not known
		}
		break
	}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		args, plain = args[1:], false
	}
	return args, plain, len(args) > 0
}

// scriptIn is the script in the arguments of a shell.
func scriptIn(name string, args []string) givenText {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "ash":
		return posixScript(args)
	case "fish":
		return optionScript(args, func(arg string) bool { return arg == "-c" || arg == "--command" })
	case "powershell", "pwsh":
		return optionScript(args, func(arg string) bool {
			arg = strings.ToLower(arg)
			return arg == "--command" || len(arg) > 1 && strings.HasPrefix("-command", arg)
		})
	case "cmd":
		for i, arg := range args {
			if arg = strings.ToLower(arg); arg == "/c" || arg == "/k" {
				return givenText{trimSpace(strings.Join(args[i+1:], " ")), true} // cmd takes all that follows
			}
		}
	}
	return givenText{}
}

// posixScript: with -c, alone or among other letters, the first operand is the script.
func posixScript(args []string) givenText {
	command := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		option := len(arg) > 1 && (arg[0] == '-' || arg[0] == '+')
		switch {
		case option && arg != "--" && !strings.HasPrefix(arg, "--"):
			command = command || arg[0] == '-' && strings.Contains(arg, "c")
			if letter := arg[len(arg)-1]; letter == 'o' || letter == 'O' {
				i++ // the name of a setting
			}
			continue
		case arg == "--rcfile" || arg == "--init-file":
			i++
			continue
		case arg == "--command":
			command = true
			continue
		case option && arg != "--":
			continue
		case arg == "--" || arg == "-":
			if i++; i >= len(args) {
				return givenText{}
			}
		}
		if !command {
			return givenText{}
		}
		return givenText{trimSpace(args[i]), i == len(args)-1}
	}
	return givenText{}
}

// optionScript: the script is the value of an option.
func optionScript(args []string, is func(string) bool) givenText {
	for i, arg := range args {
		if is(arg) && i+1 < len(args) {
			return givenText{trimSpace(args[i+1]), i+1 == len(args)-1}
		}
	}
	return givenText{}
}
