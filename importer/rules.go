package importer

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/policy"
)

// addRules asks for entries of teg.rules that are about calls of the agent alone.
func (r *reader) addRules(from *node, says, then, tool string, conditions []string) {
	for i, condition := range conditions {
		name := fmt.Sprintf("%s: %s (%s)", r.agent, says, tool)
		if i > 0 {
			name += " and below"
		}
		r.want("", "teg.rules", another, policy.Rule{
			Name: name, Tool: tool, When: "caller.agent == " + strconv.Quote(r.agent) + " && " + condition,
			Then: then, Reason: fmt.Sprintf("settings of %s say so", r.plan.Product),
		}, from, says)
	}
}

// pathConditions are conditions for calls that name a file which a pattern of Claude Code means; none if it cannot be
// said. There are two for patterns with wildcards, since the cost of one condition is bounded.
//
// The patterns are those of .gitignore: "//" begins at the root, "~/" at home, everything else below the directory that
// the client works in; a name without a slash means files anywhere. Every wildcard becomes one that also matches "/",
// which is wider, and so stricter. Both what the caller wrote and what it leads to count: a link must not help.
func pathConditions(pattern, home string) []string {
	if pattern == "" || strings.ContainsAny(pattern, "!\\{}") {
		return nil
	}
	rest, absolute := strings.CutPrefix(pattern, "//")
	switch {
	case absolute:
		pattern = "/" + rest
	case pattern == "~" || strings.HasPrefix(pattern, "~/"):
		pattern, absolute = home+strings.TrimPrefix(pattern, "~"), true
	}
	if !absolute && slices.Contains(strings.Split(pattern, "/"), "..") {
		return nil // it leads out of a directory that is only known with the call
	}
	anywhere := !absolute && !strings.Contains(strings.TrimSuffix(pattern, "/"), "/")
	pattern = wildcards(pattern)
	pattern = strings.TrimRight(path.Clean("/"+pattern), "/")
	for strings.HasSuffix(pattern, "/*") { // what stands for all below a directory stands for the directory, too
		pattern = strings.TrimSuffix(pattern, "/*")
	}
	wild := strings.Contains(pattern, "*")
	switch {
	case pattern == "":
		return nil
	case absolute && wild:
		return onPaths("glob(p, %s)", pattern, pattern+"/*")
	case absolute:
		return onPaths("pathUnder(p, %s)", pattern)
	case anywhere:
		return onPaths("glob(p, %s)", "*"+pattern, "*"+pattern+"/*")
	case wild: // patterns are fixed texts: in the workspace, what ends like it counts
		return onPaths("pathUnder(p, caller.workspace) && glob(p, %s)", "*"+pattern, "*"+pattern+"/*")
	}
	return onPaths("pathUnder(p, caller.workspace + %s)", pattern)
}

// onPaths makes conditions that hold if something is true of p, an absolute path: a file as it was written, or what that
// leads to.
func onPaths(condition string, patterns ...string) (all []string) {
	for _, pattern := range patterns {
		all = append(all, `facts.targets.exists(t, [t.real, t.path.startsWith("/") ? t.path : caller.workdir + "/" + t.path].exists(p, `+
			fmt.Sprintf(condition, strconv.Quote(pattern))+"))")
	}
	return all
}

// wildcards turns the wildcards of .gitignore into *, which stands for any characters.
func wildcards(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '[':
			if end := strings.IndexByte(pattern[i:], ']'); end > 0 {
				i += end
			}
			b.WriteByte('*')
		case '?':
			b.WriteByte('*')
		default:
			b.WriteByte(c)
		}
	}
	text := b.String()
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	// "**/x" means x in the directory itself, too, and at any depth.
	if rest, any := strings.CutPrefix(text, "*/"); any {
		text = "*" + rest
	}
	return strings.ReplaceAll(text, "/*/", "/*")
}

// hostCondition is the condition for calls that go to a host, or to all hosts below "*.".
func hostCondition(host string) []string {
	host = strings.ToLower(strings.TrimSpace(host))
	if host == "" || strings.ContainsAny(host, "\"\\/ ") || strings.Contains(strings.TrimPrefix(host, "*."), "*") {
		return nil
	}
	return []string{"facts.hosts.exists(h, hostIn(h, [" + strconv.Quote(host) + "]))"}
}
