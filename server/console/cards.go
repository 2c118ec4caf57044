package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/console/difference"
)

// deed is what a tool does, in a person's words; the title of its card.
var deeds = map[string]string{
	"exec": "Run a command", "process": "Control a process", "read": "Read", "list": "List", "search": "Search",
	"write": "Write", "edit": "Edit", "apply_patch": "Change files", "web_fetch": "Fetch", "web_search": "Search the web",
	"message": "Send a message", "memory_search": "Search memory", "memory_get": "Read memory",
}

var severityNames = map[toolward.Severity]string{
	toolward.Info: "Routine", toolward.Warning: "Caution", toolward.Critical: "Critical",
}

// newCard makes the card of an approval, as it is shown right now.
func newCard(base string, r *approval.Record, now time.Time) card {
	d := r.Request
	c := cardOfView(d.Tool, r.View())
	c.Base, c.ID, c.Created = base, r.ID, time.UnixMilli(r.CreatedMs)
	c.Seconds, c.Left = int((r.ExpiresMs-r.CreatedMs)/1000), max(0, int((r.ExpiresMs-now.UnixMilli())/1000))
	c.Session, c.SessionName, c.Same = string(d.Session), oneLine(cmp.Or(string(d.Session), "no session")), desk.BoundTo(r)
	if r.State != approval.StatePending {
		c.Always, c.Narrows = nil, false
		c.Said, c.Outcome = oneLine(api.Said(r)), outcomeOf(r)
		return c
	}
	c.Answerable = true
	if !r.Offers(toolward.AllowAlways) {
		c.NoAlways = noAlways(d)
	}
	return c
}

// cardOfView is what a person must see, as a card of a call of the tool.
func cardOfView(tool string, v *approval.View) card {
	c := card{
		Severity: v.Severity.String(), SeverityName: severityNames[v.Severity], Rank: int(v.Severity),
		Agent: oneLine(v.Agent), AgentNote: oneLine(v.Caller), Level: v.Level.String(), LevelName: levelName(v.Level),
		Expires: v.Expires, Digest: v.ShortDigest(), Cut: v.Cut,
		Blocks: blocksOf(tool, v), Outline: outlineOf(v), Targets: targetsOf(v.Targets), Reasons: reasonsOf(v.Reasons),
	}
	c.Title, c.TitleObject = titleOf(tool, v)
	if v.Says != "" {
		c.Says = &block{Name: "Says", Label: "It says", Text: spans(v.Says)}
	}
	for _, a := range v.Arguments {
		c.Params = append(c.Params, namedSpans{oneLine(cmp.Or(a.Name, "(all)")), spans(a.Text)})
	}
	for _, f := range v.Facts {
		c.Facts = append(c.Facts, named{f.Name, oneLine(f.Value)})
	}
	c.Facts = append(c.Facts, named{"digest", oneLine(v.Digest)})
	for i, o := range v.Always {
		c.Always = append(c.Always, offer{Key: strconv.Itoa(i), Words: oneLine(sentence(o.Text)), Narrows: o.Narrows})
		c.Narrows = c.Narrows || o.Narrows
	}
	return c
}

// shortDigest is as much of a digest as people compare between two surfaces.
func shortDigest(digest string) string { return digest[:min(12, len(digest))] }

func levelName(l toolward.Level) string {
	switch l {
	case toolward.Normal:
		return "Session normal"
	case toolward.Elevated:
		return "Session elevated"
	}
	return "Session in lockdown"
}

// titleOf is the deed, and what it is aimed at.
func titleOf(tool string, v *approval.View) (string, []span) {
	deed, known := deeds[tool]
	if !known {
		return "Call", oneLine(v.Title)
	}
	if v.Command != "" {
		return deed, nil
	}
	name, object, aimed := strings.Cut(v.Title, ": ")
	if !aimed && name != tool {
		object = name // a program that asks names its call as it likes
	}
	return deed, oneLine(object)
}

// longCommand is how many characters of one line fit the box without scrolling, about; a longer one says how long it is.
const longCommand = 1000

// blocksOf is the heart of the card: the command, the difference or the content.
func blocksOf(tool string, v *approval.View) []block {
	var out []block
	if v.Command != "" {
		b := block{Name: "Command", Label: "Command", Text: spans(v.Command)}
		if v.Directory != "" {
			b.Label, b.Where = "Command in", oneLine(v.Directory)
		}
		if n := strings.Count(strings.TrimRight(v.Command, "\n"), "\n") + 1; n > 1 {
			b.Size = fmt.Sprintf("%d lines", n)
		} else if n := utf8.RuneCountInString(v.Command); n > longCommand {
			b.Size = fmt.Sprintf("%d characters", n)
		}
		out = append(out, b)
	}
	text := func(name string) string { return textOf(v.Arguments, name) }
	switch {
	case v.Diff != "":
		out = append(out, block{Label: "Change", Diff: difference.Read(v.Diff)})
	case tool == "edit" && text("oldText")+text("newText") != "":
		out = append(out, block{Label: "Change", Diff: difference.OfEdit(text("oldText"), text("newText"))})
	case tool == "write" && text("content") != "":
		out = append(out, block{Name: "New content", Label: "New content", Text: spans(text("content"))})
	case tool == "apply_patch" && text("input") != "":
		out = append(out, block{Name: "Patch", Label: "Patch", Text: spans(text("input"))})
	}
	if v.Cut && len(out) > 0 {
		out[len(out)-1].Cut = true
	}
	return out
}

func textOf(arguments []approval.Argument, name string) string {
	if i := slices.IndexFunc(arguments, func(a approval.Argument) bool { return a.Name == name }); i >= 0 {
		return arguments[i].Text
	}
	return ""
}

var opNames = map[string]string{"read": "Reads", "write": "Writes", "delete": "Deletes", "move": "Moves"}

// targetsOf turns "write /src/a.go" into a labeled path; hosts and recipients have no operation.
func targetsOf(targets []string) []named {
	var out []named
	for _, t := range targets {
		op, path, ok := strings.Cut(t, " ")
		name := opNames[op]
		if !ok || name == "" {
			name, path = "Reaches", t
		}
		out = append(out, named{name, oneLine(path)})
	}
	return out
}

// reasonsOf says why people are asked, a finding with its code beside it.
func reasonsOf(reasons []approval.Reason) []reason {
	var out []reason
	for _, r := range reasons {
		if r.Code != "" {
			out = append(out, reason{Text: oneLine(sentence(r.Seen)), Rule: oneLine(r.Code), Finding: true})
			continue
		}
		out = append(out, reason{Text: oneLine(sentence(r.Text))})
	}
	return out
}

func noAlways(d *approval.Details) string {
	switch {
	case d.Level == toolward.Lockdown:
		return "In lockdown every call is asked about, so there is no “Always”"
	case d.Severity == toolward.Critical:
		return "A critical call is asked about each time, so there is no “Always”"
	case d.Cut:
		return "Not all of this call is shown, so there is no “Always”"
	}
	return "There is no safe “Always” for this call"
}

func outcomeOf(r *approval.Record) string {
	switch {
	case r.State != approval.StateVoid && r.Decision.Allows():
		return "allowed"
	case r.Decision == toolward.DenyCall:
		return "denied"
	}
	return ""
}
