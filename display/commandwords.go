package display

import "strings"

// Words shows the words of a command so that their borders are plain: a word with anything but letters, digits and
// harmless signs of ASCII stands in quotes, as a POSIX shell would read it.
func Words(words ...string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if word == "" || strings.ContainsFunc(word, needsQuotes) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		b.WriteString(word)
	}
	return b.String()
}

func needsQuotes(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./,:@%+=-", r))
}

// AllowedProgram says in words what an entry of an allowlist lets a program do: with exactly these arguments, or with
// any whose effects are among those named (read, write, network).
func AllowedProgram(pattern string, effects, argv []string) string {
	if len(argv) > 0 {
		return "exactly: " + Words(argv...)
	}
	var does []string
	for _, effect := range effects {
		switch effect {
		case "read":
			does = append(does, "reading")
		case "write":
			does = append(does, "writing in the workspace, also by the project's code")
		case "network":
			does = append(does, "talking to public hosts")
		default:
			does = append(does, Words(effect))
		}
	}
	text := Words(pattern)
	switch n := len(does); {
	case effects == nil:
		return text + ", as far as the preset goes"
	case n == 0:
		return text + ", without reading or changing any file"
	case n == 1:
		return text + ", " + does[0]
	default:
		return text + ", " + strings.Join(does[:n-1], ", ") + " and " + does[n-1]
	}
}
