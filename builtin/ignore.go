package builtin

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreRules are the .gitignore files in force in one directory: its own and those of the directories above.
type ignoreRules struct {
	above *ignoreRules
	base  string // directory of the file, relative to the root of the walk; may begin with ".."
	rules []ignoreRule
}

// ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	pattern  string
	negated  bool // !pattern: not ignored after all
	dirsOnly bool // pattern/
	anchored bool // the pattern has a slash: it is matched against the whole path from the file's directory
}

const (
	maxIgnoreFile  = 256 << 10
	maxIgnoreRules = 2000 // of one file
)

// parseIgnore reads a .gitignore file. Lines that are not valid patterns are passed over, as git does.
func parseIgnore(base, text string, above *ignoreRules) *ignoreRules {
	set := &ignoreRules{above: above, base: base}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if rule, ok := parseIgnoreLine(line); ok && len(set.rules) < maxIgnoreRules {
			set.rules = append(set.rules, rule)
		}
	}
	if len(set.rules) == 0 {
		return above
	}
	return set
}

func parseIgnoreLine(line string) (ignoreRule, bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return ignoreRule{}, false
	}
	rule := ignoreRule{}
	if line[0] == '!' {
		rule.negated, line = true, line[1:]
	}
	if trimmed := strings.TrimSuffix(line, "/"); trimmed != line {
		rule.dirsOnly, line = true, trimmed
	}
	rule.anchored = strings.Contains(line, "/")
	// Braces are ordinary characters to git.
	rule.pattern = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(strings.TrimPrefix(line, "/"))
	return rule, rule.pattern != "" && doublestar.ValidatePattern(rule.pattern)
}

// ignored reports whether a path relative to the root of the walk is ignored. The nearest file decides, and in it
// the last line that matches.
func (s *ignoreRules) ignored(rel string, dir bool) bool {
	for ; s != nil; s = s.above {
		from, ok := relativeTo(s.base, rel)
		if !ok {
			continue
		}
		for i := len(s.rules) - 1; i >= 0; i-- {
			if s.rules[i].matches(from, dir) {
				return !s.rules[i].negated
			}
		}
	}
	return false
}

func (r *ignoreRule) matches(rel string, dir bool) bool {
	if r.dirsOnly && !dir {
		return false
	}
	if !r.anchored {
		rel = path.Base(rel)
	}
	ok, err := doublestar.Match(r.pattern, rel)
	return ok && err == nil
}

// relativeTo gives rel, which is relative to the root of the walk, as seen from base, which is at or below the root
// ("", "a/b") or above it (the walk's path from there, marked by a leading "/").
func relativeTo(base, rel string) (string, bool) {
	switch {
	case base == "":
		return rel, true
	case base[0] == '/':
		return base[1:] + "/" + rel, true
	}
	rest, ok := strings.CutPrefix(rel, base+"/")
	return rest, ok
}
