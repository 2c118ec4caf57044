package execpolicy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

var forkBomb = regexp.MustCompile(`([A-Za-z_:.]\w*)\s*\(\)\s*\{[^}]*\|[^}]*&[^}]*\}`)

// persistent are files that are run later by somebody else.
var persistent = regexp.MustCompile(`(?:^|/)(?:\.bashrc|\.bash_profile|\.bash_login|\.bash_logout|\.profile|\.zshrc|\.zshenv|\.zprofile|\.zlogin|authorized_keys|crontab)$|(?:^|/)(?:cron\.[a-z]+|cron|systemd|LaunchAgents|LaunchDaemons|autostart|init\.d|profile\.d)/`)

// dangers names what makes a prompt critical: what cannot be undone, or what stays after the session. It decides
// nothing.
func dangers(a *Assessment, text string, where *Where) (found []string) {
	add := func(what string) {
		if !slices.Contains(found, what) {
			found = append(found, what)
		}
	}
	if forkBomb.MatchString(text) {
		add("starts itself again and again")
	}
	var walk func(segments []Segment)
	walk = func(segments []Segment) {
		for i := range segments {
			s := &segments[i]
			s.dangers(where, add)
			walk(s.Inner)
			for _, e := range s.Effects {
				if e.Runs != nil {
					walk([]Segment{*e.Runs})
				}
			}
		}
	}
	walk(a.Segments)
	return found
}

func (s *Segment) dangers(where *Where, add func(string)) {
	for _, r := range s.Redirs {
		if r.Writes() && persistent.MatchString(absolute(s.Dir, homely(r.Target, where.Home))) {
			add("writes " + r.Target + ", which is run later")
		}
	}
	for _, e := range s.effects {
		if e.Kind == shell.Writes && persistent.MatchString(e.Path) {
			add("writes " + e.Path + ", which is run later")
		}
	}
	argv := s.Argv
	for i, word := range argv {
		switch name := shell.ProgramName(word); {
		case name == "rm" && deletesTree(argv[i+1:], s.Dir, where):
			add("deletes a whole tree")
		case name == "dd" && slices.ContainsFunc(argv[i+1:], func(a string) bool { return strings.HasPrefix(a, "of=/dev/") && a != "of=/dev/null" }):
			add("writes to a device")
		case i == s.at && (name == "mkfs" || strings.HasPrefix(name, "mkfs.")):
			add("makes a file system")
		case name == "chmod" && opensRoot(argv[i+1:]):
			add("opens the whole system to everybody")
		case i == s.at && name == "crontab" && !slices.Contains(argv, "-l"):
			add("changes what runs by the clock")
		}
	}
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
			where.Home != "" && within(where.Home, target) || target != dir && within(dir, target) || path.Dir(target) == "/"
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
