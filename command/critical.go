package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// isForkBomb finds a function that starts something behind a pipe and in the background, as ":(){ :|:& };:" does. What
// lies within a body that is none is none either: the text is read once.
func isForkBomb(text string) bool {
	for {
		name, rest, found := strings.Cut(text, "()")
		if !found {
			return false
		}
		body, opened := strings.CutPrefix(strings.TrimLeft(rest, " \t\n"), "{")
		if !opened || !endsInName(strings.TrimRight(name, " \t\n")) {
			text = rest
			continue
		}
		body, after, closed := strings.Cut(body, "}")
		if !closed {
			return false
		}
		if _, piped, ok := strings.Cut(body, "|"); ok && strings.Contains(piped, "&") {
			return true
		}
		text = after
	}
}

func endsInName(text string) bool {
	if text == "" {
		return false
	}
	c := text[len(text)-1]
	return c == '_' || c == ':' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Files that are run later by somebody else: by their names, and by the directories that they lie in.
var (
	persistentFiles = []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
		"authorized_keys", "crontab",
	}
	persistentDirs = []string{"cron", "systemd", "LaunchAgents", "LaunchDaemons", "autostart", "init.d", "profile.d"}
)

// isPersistent reports whether a file is run later by somebody else.
func isPersistent(p string) bool {
	dir, name := path.Split(p)
	if slices.Contains(persistentFiles, name) {
		return true
	}
	for element := range strings.SplitSeq(dir, "/") {
		suffix, cron := strings.CutPrefix(element, "cron.")
		if cron && suffix != "" && strings.Trim(suffix, "abcdefghijklmnopqrstuvwxyz") == "" || slices.Contains(persistentDirs, element) {
			return true
		}
	}
	return false
}

// critical lists the findings that make a prompt critical: what cannot be undone, or what stays after the session.
func critical(a *Assessment, text string, where *Where) (found []string) {
	add := func(what string) {
		if !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	if isForkBomb(text) {
		add("starts itself again and again")
	}
	eachSegment(a.Segments, func(s *Segment) { s.critical(where, add) })
	eachPipeline(a.Segments, func(pipeline []Segment) {
		secret := false
		for i := range pipeline {
			s := &pipeline[i]
			if secret && hasEffect(s.effects, shell.Network) {
				add("sends what holds secrets to a host")
			}
			secret = secret || s.readsSecret()
		}
	})
	return found
}

// readsSecret reports whether the command reads a file that holds secrets, without anything that says yes to it.
func (s *Segment) readsSecret() bool {
	return slices.ContainsFunc(s.Effects, func(e Judged) bool {
		return e.Kind == shell.Reads && e.Place == place.Secret.String() && e.Verdict != toolward.Allow
	}) || slices.ContainsFunc(s.Redirs, func(r Redirect) bool {
		return r.Reads() && r.File.Real != "" && r.File.Zone == place.Secret
	})
}

func (s *Segment) critical(where *Where, add func(string)) {
	for _, r := range s.Redirs {
		if r.Writes() && isPersistent(absolute(s.Dir, homely(r.Target, where.Home))) {
			add("writes " + r.Target + ", which is run later")
		}
	}
	for _, e := range s.effects {
		if e.Kind == shell.Writes && isPersistent(e.Path) {
			add("writes " + e.Path + ", which is run later")
		}
	}
	argv := s.Argv
	rm, dd, chmod := false, false, false
	for i, word := range argv {
		if i != s.at && !maybeCritical(word) {
			continue
		}
		// Only the first of each: what follows a later one follows the first, too.
		switch name := shell.ProgramName(word); {
		case name == "rm" && !rm:
			if rm = true; deletesTree(argv[i+1:], s.Dir, where) {
				add("deletes a whole tree")
			}
		case name == "dd" && !dd:
			if dd = true; slices.ContainsFunc(argv[i+1:], writesDevice) {
				add("writes to a device")
			}
		case i == s.at && (name == "mkfs" || strings.HasPrefix(name, "mkfs.")):
			add("makes a file system")
		case name == "chmod" && !chmod:
			if chmod = true; opensRoot(argv[i+1:]) {
				add("opens the whole system to everybody")
			}
		case i == s.at && name == "crontab" && !slices.Contains(argv, "-l"):
			add("changes what runs by the clock")
		}
	}
}

// maybeCritical is false for most words that are not rm, dd or chmod by any name.
func maybeCritical(word string) bool {
	return word != "" && strings.IndexByte("mdeMDE/\\", word[len(word)-1]) >= 0
}

// writesDevice reports whether an operand of dd names a device to write to.
func writesDevice(operand string) bool {
	return strings.HasPrefix(operand, "of=/dev/") && operand != "of=/dev/null"
}

// deletesTree reports whether rm deletes the root, the home directory or a parent of the working directory.
func deletesTree(args []string, dir string, where *Where) bool {
	recursive := false
	for _, a := range args {
		recursive = recursive || a == "--recursive" || strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.ContainsAny(a, "rR")
	}
	return recursive && slices.ContainsFunc(args, func(a string) bool {
		if a == "" || a[0] == '-' {
			return false
		}
		target := absolute(dir, strings.TrimSuffix(homely(a, where.Home), "/*"))
		return target == "/" || a == "/*" || path.Clean(a) == ".." || strings.HasSuffix(path.Clean(a), "/..") ||
			place.Within(where.Home, target) || target != dir && place.Within(dir, target) || path.Dir(target) == "/"
	})
}

// homely replaces "~" by the home directory.
func homely(p, home string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		return home + p[1:]
	}
	return p
}

// opensRoot reports whether chmod makes the root writable for everybody, recursively.
func opensRoot(args []string) bool {
	recursive, wide, root := false, false, false
	for _, a := range args {
		recursive = recursive || a == "--recursive" || strings.HasPrefix(a, "-") && strings.Contains(a, "R")
		wide = wide || strings.HasSuffix(a, "777") || strings.HasPrefix(a, "a+") && strings.Contains(a, "w") || strings.HasPrefix(a, "o+") && strings.Contains(a, "w")
		root = root || a == "/" || a == "/*"
	}
	return recursive && wide && root
}
