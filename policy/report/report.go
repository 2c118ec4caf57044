// Package report is what reading a part of the configuration finds wrong in it, and doubtful, each with its place.
package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward"
)

// Path names one place in the configuration: property names (string) and list positions (int).
type Path []any

// At is the path one step further.
func (p Path) At(steps ...any) Path { return append(slices.Clip(p), steps...) }

// String writes the path for people, for instance agents.list[2].tools.allow[1].
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		default:
			name := fmt.Sprint(step)
			if !plainName(name) {
				fmt.Fprintf(&b, "[%q]", name)
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(name)
		}
	}
	return b.String()
}

// Pointer writes the path as a JSON Pointer (RFC 6901), with which the place in the file can be found.
func (p Path) Pointer() string {
	var b strings.Builder
	for _, step := range p {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step)))
	}
	return b.String()
}

func plainName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return name != ""
}

// Error is one mistake in the configuration.
type Error struct {
	Path    Path
	Problem string // what is wrong and how to mend it
}

func (e *Error) Error() string { return e.Path.String() + ": " + e.Problem }

// Errors is every mistake that Compile found, in the order of the file's sections. It is never empty.
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Warning is something in the configuration or among the tools that works, but probably not as meant.
type Warning struct {
	Path Path   // where; empty for a warning about a tool
	Tool string // which tool was refused, for warnings about tools
	Code string // one of the Check codes
	Text string

	Severity toolward.Severity
}

// Codes of warnings. They are the names of the checks under which a security report lists them.
const (
	CheckUnknownEntries    = "policy.unknown_entries"    // a list, override or rule names what is not there
	CheckUnavailableTools  = "policy.unavailable_tools"  // an allow list names tools that this gateway does not have yet
	CheckAllowlistStripped = "policy.allowlist_stripped" // an allow list is ignored, since nothing that it names is there
	CheckWriteDenied       = "policy.write_denied_patch_open"
	CheckSandboxDeny       = "policy.sandbox_deny_replaced" // a list of the operator's lacks what the default one denies
	CheckSandboxMessage    = "policy.sandbox_message_open"  // channels are denied, and the tool that reaches them all is not
	CheckMutableName       = "policy.sender_by_mutable_name"
	CheckUntypedSender     = "policy.untyped_sender"
	CheckAmbiguousGroup    = "policy.ambiguous_group"
	CheckModelEntry        = "policy.model_entry_hides_provider_deny"
	CheckInheritOff        = "policy.inherit_off"
	CheckHTTPNotExact      = "policy.http_not_exact"
	CheckToolRefused       = "policy.tool_refused"
	CheckGlobLoosens       = "teg.glob_cannot_loosen"
	CheckNameTheAction     = "teg.name_the_action"
	CheckRuleAllowsNothing = "teg.rule_allows_nothing"
	CheckLoosened          = "teg.loosened"
	CheckBlockedEnabled    = "teg.blocked_enabled"
)

func (w Warning) String() string {
	where := w.Path.String()
	if w.Tool != "" {
		where = "tool " + strconv.QuoteToASCII(w.Tool)
	}
	return where + ": " + w.Text + " (" + w.Code + ")"
}

// Collector keeps what the parts of a configuration find wrong and doubtful.
type Collector struct {
	Errs     Errors
	Warnings []Warning
}

// Fail adds a mistake.
func (c *Collector) Fail(at Path, format string, args ...any) {
	c.Errs = append(c.Errs, &Error{Path: at, Problem: fmt.Sprintf(format, args...)})
}

// Warn adds a warning.
func (c *Collector) Warn(w Warning) {
	w.Severity = toolward.Warning
	c.Warnings = append(c.Warnings, w)
}

// Alarm adds a warning of severity critical.
func (c *Collector) Alarm(w Warning) {
	w.Severity = toolward.Critical
	c.Warnings = append(c.Warnings, w)
}

// Note adds a warning of severity info.
func (c *Collector) Note(w Warning) {
	w.Severity = toolward.Info
	c.Warnings = append(c.Warnings, w)
}

// nearest returns the known word that was probably meant, or "".
func nearest(word string, known []string) string {
	best, bestDistance := "", len(word)/4+1
	for _, k := range known {
		if d := distance(word, k, bestDistance); d < bestDistance || d == bestDistance && best == "" {
			best, bestDistance = k, d
		}
	}
	return best
}

// DidYouMean is "; did you mean x?" or "".
func DidYouMean(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// distance counts insertions, deletions and replacements; anything above limit is limit+1.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return min(row[len(b)], limit+1)
}
