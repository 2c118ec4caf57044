package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/server/api"
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
	c := card{
		Base: base, ID: r.ID, Severity: d.Severity.String(), SeverityName: severityNames[d.Severity],
		Agent: oneLine(cmp.Or(d.Agent, "unknown agent")), AgentNote: oneLine(agentNote(r)),
		Level: d.Level.String(), LevelName: levelName(d.Level),
		Created: time.UnixMilli(r.CreatedMs), Expires: time.UnixMilli(r.ExpiresMs),
		Seconds: int((r.ExpiresMs - r.CreatedMs) / 1000), Left: max(0, int((r.ExpiresMs-now.UnixMilli())/1000)),
		Digest: shortDigest(r.Binding), Cut: d.Cut,
		Rank: int(d.Severity), Session: string(d.Session), SessionName: oneLine(cmp.Or(string(d.Session), "no session")), Same: sameCall(r),
	}
	params := paramsOf(d.Preview)
	c.Title, c.TitleObject = titleOf(d)
	c.Blocks = blocksOf(d, params)
	c.Outline = outlineOf(d)
	c.Targets = targetsOf(d.Targets)
	c.Reasons = reasonsOf(d)
	for _, p := range params {
		c.Params = append(c.Params, namedSpans{oneLine(p.name), spans(p.text)})
	}
	c.Facts = factsOf(r)
	if r.State != approval.StatePending {
		c.Said, c.Outcome = oneLine(api.Said(r)), outcomeOf(r)
		return c
	}
	c.Answerable = true
	if r.Offers(toolward.AllowAlways) {
		for i, p := range d.Proposals {
			narrows := len(p.Match.Entries) == 0
			c.Always = append(c.Always, offer{Key: strconv.Itoa(i), Words: oneLine(sentence(p.Text)), Narrows: narrows})
			c.Narrows = c.Narrows || narrows
		}
	} else {
		c.NoAlways = noAlways(d)
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

// agentNote says what kind of caller it is. The client's name is its own word.
func agentNote(r *approval.Record) string {
	var parts []string
	if d := r.Request; d.Depth > 0 {
		parts = append(parts, fmt.Sprintf("sub-agent, level %d", d.Depth))
	}
	switch {
	case r.Client != "":
		parts = append(parts, "via "+r.Client)
	case r.Request.Surface == toolward.SurfaceMCP:
		parts = append(parts, "over MCP")
	}
	return strings.Join(parts, ", ")
}

// titleOf is the deed, and what it is aimed at.
func titleOf(d *approval.Details) (string, []span) {
	deed, known := deeds[d.Tool]
	if !known {
		return "Call", oneLine(d.Title)
	}
	if d.Command != "" {
		return deed, nil
	}
	_, object, _ := strings.Cut(d.Title, ": ")
	return deed, oneLine(object)
}

// longCommand is how many characters of one line fit the box without scrolling, about; a longer one says how long it is.
const longCommand = 1000

// blocksOf is the heart of the card: the command, the difference or the content.
func blocksOf(d *approval.Details, params []param) []block {
	var out []block
	where := oneLine(d.WorkDir)
	if d.Command != "" {
		b := block{Name: "Command", Label: "Command", Text: spans(d.Command)}
		if d.WorkDir != "" {
			b.Label, b.Where = "Command in", where
		}
		if n := strings.Count(strings.TrimRight(d.Command, "\n"), "\n") + 1; n > 1 {
			b.Size = fmt.Sprintf("%d lines", n)
		} else if n := utf8.RuneCountInString(d.Command); n > longCommand {
			b.Size = fmt.Sprintf("%d characters", n)
		}
		out = append(out, b)
	}
	switch {
	case d.Diff != "":
		out = append(out, block{Label: "Change", Diff: readDiff(d.Diff)})
	case d.Tool == "edit" && textOf(params, "oldText")+textOf(params, "newText") != "":
		out = append(out, block{Label: "Change", Diff: diffOfEdit(textOf(params, "oldText"), textOf(params, "newText"))})
	case d.Tool == "write" && textOf(params, "content") != "":
		out = append(out, block{Name: "New content", Label: "New content", Text: spans(textOf(params, "content"))})
	case d.Tool == "apply_patch" && textOf(params, "input") != "":
		out = append(out, block{Name: "Patch", Label: "Patch", Text: spans(textOf(params, "input"))})
	}
	if d.Cut && len(out) > 0 {
		out[len(out)-1].Cut = true
	}
	return out
}

// param is one argument as text. Texts are shown as they are, everything else as JSON.
type param struct{ name, text string }

// paramsOf reads the preview, in the order in which it was written. A preview that cannot be read is shown raw.
func paramsOf(preview json.RawMessage) []param {
	dec := json.NewDecoder(bytes.NewReader(preview))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		if len(preview) == 0 {
			return nil
		}
		return []param{{"(all)", string(preview)}}
	}
	var out []param
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		var raw json.RawMessage
		if err != nil || !ok || dec.Decode(&raw) != nil {
			return []param{{"(all)", string(preview)}}
		}
		text := string(raw)
		if raw[0] == '"' {
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
		}
		out = append(out, param{name, text})
	}
	return out
}

func textOf(params []param, name string) string {
	if i := slices.IndexFunc(params, func(p param) bool { return p.name == name }); i >= 0 {
		return params[i].text
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

// reasonsOf says why people are asked: first what was seen in the arguments, then the rules. The approval holds both
// as text, the findings first and with their codes.
func reasonsOf(d *approval.Details) []reason {
	var out []reason
	for _, f := range d.Findings {
		out = append(out, reason{Text: oneLine(sentence(cmp.Or(f.Detail, f.Code))), Rule: oneLine(f.Code), Finding: true})
	}
	for _, text := range d.Reasons[min(len(d.Findings), len(d.Reasons)):] {
		out = append(out, reason{Text: oneLine(sentence(text))})
	}
	if len(out) == 0 {
		out = append(out, reason{Text: oneLine("Calls of this tool are asked about.")})
	}
	return out
}

// factsOf is what identifies the call, for comparing with other surfaces and the record.
func factsOf(r *approval.Record) []named {
	d := r.Request
	var out []named
	add := func(name, value string) {
		if value != "" {
			out = append(out, named{name, oneLine(value)})
		}
	}
	add("tool", strings.TrimSpace(d.Tool+" "+d.Action))
	add("runs on", string(d.Host))
	if d.ByClient {
		add("run by", "the agent's own program")
	}
	add("session", string(d.Session))
	add("run", d.Run)
	add("sender", strings.Trim(d.Channel+" "+d.Sender, " "))
	add("digest", r.Binding)
	add("arguments", d.Digest) // as the record of the call has it
	add("approval", r.ID)
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
