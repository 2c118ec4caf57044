package trial

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/shell"
	"github.com/toolward/toolward/transcript"
)

// Reason is why calls would have asked. A call counts once, under the gravest reason.
type Reason struct {
	Text    string `json:"text"`
	OnHost  int    `json:"sandboxingOff"` // calls that ask if commands run on the machine
	Inside  int    `json:"sandboxingOn"`  // calls that ask if commands run in sandboxes
	Example string `json:"example"`
}

const maxReasons = 200

// reason counts a call that asks in at least one of the two ways.
func (p *policyPricing) reason(o *judged, inside bool) {
	text := o.reason()
	r := p.reasons[text]
	if r == nil && len(p.reasons) >= maxReasons {
		text = otherTexts
		r = p.reasons[text]
	}
	if r == nil {
		r = &Reason{Text: text, Example: preview(p.stopped.redact, o.call)}
		p.reasons[text] = r
	}
	if o.host.Verdict == toolward.Ask {
		r.OnHost++
	}
	if inside {
		r.Inside++
	}
}

func sortedReasons(reasons map[string]*Reason) []Reason {
	list := make([]Reason, 0, len(reasons))
	for _, r := range reasons {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.OnHost, a.OnHost), cmp.Compare(b.Inside, a.Inside), cmp.Compare(a.Text, b.Text))
	})
	return list
}

// reason says in words that other calls share why the call asks.
func (o *judged) reason() string {
	if !o.known {
		return "unknown tool: " + o.call.Tool
	}
	for _, f := range o.host.Findings {
		if f.Effect == toolward.EffectAsk && !strings.HasPrefix(f.Code, "command_") {
			return findingWords(f)
		}
	}
	if o.command {
		return commandReason(o.assessment)
	}
	for _, target := range o.facts.Targets {
		if words := zoneWords[target.Zone]; words != "" {
			verb := "reads "
			if target.Op != toolward.OpRead {
				verb = "changes "
			}
			return o.form + ": " + verb + words
		}
	}
	return cmp.Or(o.host.Row, o.form) + " asks by its class"
}

var zoneWords = map[toolward.Zone]string{
	toolward.ZoneSelf:         "Toolward's own files",
	toolward.ZoneSecret:       "keys, passwords or what holds them",
	toolward.ZoneProtected:    "what other programs run or trust",
	toolward.ZoneInstructions: "what later runs obey",
	toolward.ZoneOutside:      "files outside the workspace",
}

// findingWords are the words for findings whose own words are about one call.
func findingWords(f toolward.Finding) string {
	switch f.Code {
	case "sandbox_off", "unguarded", "script", "skill_runs_commands":
		return f.Detail
	case "secret_shape", "secret_value":
		return "holds what looks like a secret"
	case "url_exfil":
		return "an address that may carry data away"
	}
	return strings.ReplaceAll(f.Code, "_", " ")
}

// commandReason is why a command asks: the first part of it that does.
func commandReason(a *command.Assessment) string {
	switch {
	case a == nil:
		return "command: nobody can analyse it (another shell's language)"
	case len(a.Critical) > 0:
		return "command: " + a.Critical[0]
	case !a.OK:
		return "command not understood: " + notUnderstood(a.Reason)
	}
	words := ""
	a.Each(func(s *command.Segment) {
		if words != "" || s.By != command.NotSatisfied || len(s.Asks) == 0 {
			return
		}
		words = askWords(s, s.Asks[0])
	})
	if words == "" && len(a.Findings) > 0 {
		words = strings.Join(a.Findings, ", ")
	}
	return "command: " + cmp.Or(words, "the settings for commands ask")
}

func askWords(s *command.Segment, f command.Finding) string {
	program := programIn(s)
	switch f.Code {
	case command.NotListed:
		return "nothing says yes to " + program
	case command.NotFound:
		return "there is no program " + program
	case command.ArgumentExec:
		return program + " runs code that is not known"
	case command.ArgumentRead:
		return program + " reads what is guarded"
	case command.ArgumentWrite:
		return program + " changes what it must not change by itself"
	case command.ArgumentNetwork:
		return program + " talks to a host"
	case command.ArgumentUnknown:
		return program + ": an argument that is not understood"
	case command.InlineCode:
		return program + ": code in the arguments"
	case command.Redirected:
		return "a redirection to a file that it must not read or write by itself"
	case command.Expansion:
		return "words that mean more than they show"
	case command.PathHijack:
		return program + " may be another program than people think"
	case command.BlockedWrapper:
		return program + " starts what nothing can say yes to"
	}
	return string(f.Code)
}

// notUnderstood are the words for what analysis does not read.
func notUnderstood(r shell.Reason) string {
	switch r {
	case shell.Newline:
		return "several lines"
	case shell.CommandSubstitution:
		return "$( ) or backticks"
	case shell.Compound:
		return "loops, conditions, groups, functions"
	case shell.Assignment:
		return "NAME=value"
	case shell.Background:
		return "&"
	case shell.ParameterExpansion:
		return "${…} beyond plain names"
	}
	return strings.ReplaceAll(string(r), "-", " ")
}

// maxPreview is how much of a call is shown.
const maxPreview = 160

// telling are the arguments that say best what a call was, whatever the client.
var telling = []string{"command", "file_path", "filePath", "path", "notebook_path", "dir_path", "absolute_path", "url", "query", "pattern", "input", "prompt"}

// preview is what a call was, in one line. Secrets are hidden before anything is cut: half a secret is not recognized as one.
func preview(r *redact.Redactor, c *transcript.Call) string {
	return c.Tool + " " + oneLine(r, mainArgument(c), maxPreview)
}

func mainArgument(c *transcript.Call) string {
	var arguments map[string]json.RawMessage
	if json.Unmarshal(c.Arguments, &arguments) == nil {
		for _, name := range telling {
			var text string
			if json.Unmarshal(arguments[name], &text) == nil && text != "" {
				return text
			}
		}
	}
	return string(c.Arguments)
}

// oneLine is a text for people: without secrets, white space made one blank, and cut in the middle with a mark.
func oneLine(r *redact.Redactor, text string, limit int) string {
	clean := []rune(strings.Join(strings.Fields(r.String(text)), " "))
	if len(clean) > limit {
		clean = append(clean[:limit*2/3], append([]rune(" … "), clean[len(clean)-limit/3:]...)...)
	}
	return display.Line(string(clean))
}
