package settings

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// gitConfigTarget is where git inside finds what it is told. It is the weakest of its files: what the repository itself says of
// its author counts before it.
const gitConfigTarget = "/etc/gitconfig"

const maxGitConfig = 256 << 10

// GitIdentity is who commits. Of the person's git settings nothing else goes in: helpers, aliases, hooks and includes are
// programs and files of the machine.
type GitIdentity struct{ Name, Email string }

// config is the file that git inside reads, for a workspace that may belong to another number than who runs there.
func (g GitIdentity) config(workdir string) string {
	text := "[safe]\n\tdirectory = " + gitQuoted(workdir) + "\n\tdirectory = " + gitQuoted(workdir+"/*") + "\n"
	if g.Name != "" || g.Email != "" {
		text += "[user]\n"
	}
	if g.Name != "" {
		text += "\tname = " + gitQuoted(g.Name) + "\n"
	}
	if g.Email != "" {
		text += "\temail = " + gitQuoted(g.Email) + "\n"
	}
	return text
}

// gitQuoted is a value that cannot begin a line, a section or a comment of its own.
func gitQuoted(value string) string {
	value = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, value)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// gitIdentity reads the person's own files, as far as they say it themselves: git is not asked, which could start programs.
func gitIdentity(home string) (g GitIdentity) {
	settings := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(settings) {
		settings = filepath.Join(home, ".config")
	}
	for _, name := range []string{filepath.Join(settings, "git", "config"), filepath.Join(home, ".gitconfig")} { // the last one counts
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, maxGitConfig))
		_ = f.Close() // it was only read
		if err == nil {
			g.read(string(text))
		}
	}
	return g
}

// read takes what a file says.
func (g *GitIdentity) read(text string) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, ok := strings.Cut(line[1:], "]")
			if !ok {
				section = ""
				continue
			}
			section, line = strings.ToLower(strings.TrimSpace(head)), strings.TrimSpace(rest)
		}
		name, value, ok := strings.Cut(line, "=")
		if section != "user" || !ok {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "name":
			g.Name = gitValue(value)
		case "email":
			g.Email = gitValue(value)
		}
	}
}

// gitValue is a value as git reads it: in quotes or without, and without the comment behind it.
func gitValue(text string) string {
	var value strings.Builder
	quoted, escaped := false, false
	for _, r := range strings.TrimSpace(text) {
		switch {
		case escaped:
			escaped = false
			value.WriteRune(r)
		case r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case !quoted && (r == '#' || r == ';'):
			return strings.TrimSpace(value.String())
		default:
			value.WriteRune(r)
		}
	}
	if quoted {
		return value.String()
	}
	return strings.TrimSpace(value.String())
}
