package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// View is what a person must see of a call before they answer, in the order in which it matters. Console, terminal and
// messages only render it, and each shows every field that is set: what one of them forgets, its readers approve without
// having seen it. Texts are as callers and strangers wrote them; whoever shows them makes them safe with package display.
type View struct {
	Severity  toolward.Severity
	Agent     string // who asks
	Caller    string // what kind of caller that is, in our words; the client's name in it is its own word
	Level     toolward.Level
	Title     string
	Says      string           // what a program that asks by itself says of its call: its word and nobody else's
	Findings  *display.Outline // what nobody may overlook; never nil
	Command   string
	Directory string // where it starts
	Diff      string
	Outline   *display.Outline // what it would do; never nil
	Variables []string         // names of environment variables that it sets
	Targets   []string         // paths, hosts, recipients
	Arguments []Argument       // all of them, by name
	Cut       bool             // the arguments are longer than what is shown
	Reasons   []Reason         // why people are asked
	Always    []Offer          // what "always" can save, each by itself
	Expires   time.Time
	Digest    string // over everything that the answer is bound to: people compare its beginning between two screens
	Facts     []Fact // what identifies the call elsewhere
}

// Argument is one argument as text: a text as it is, everything else as JSON.
type Argument struct {
	Name  string // "" if the arguments are no object: then this is all of them
	Text  string
	Above bool // it is the command, which stands above to the last character
}

// Reason is why people are asked: something that validation saw in the arguments, or what a rule says.
type Reason struct {
	Text string // all of it
	Code string // of a finding
	Seen string // what the finding is about
}

// Offer is one thing that "always" can save.
type Offer struct {
	Text    string
	Narrows bool // it can be kept for a shorter time or for a number of calls
}

// Fact is one name with its value.
type Fact struct{ Name, Value string }

// View is what a person must see of the approval.
func (r *Record) View() *View {
	d := r.Request
	v := &View{
		Severity: d.Severity, Agent: r.Asker(), Caller: callerOf(r), Level: d.Level,
		Title: d.Title, Says: saysOf(d), Command: d.Command, Directory: d.WorkDir, Diff: d.Diff,
		Variables: d.Variables, Targets: d.Targets, Arguments: argumentsOf(d), Cut: d.Cut, Reasons: reasonsOf(d),
		Expires: time.UnixMilli(r.ExpiresMs), Digest: r.Binding, Facts: factsOf(r),
	}
	v.Findings, v.Outline = splitOutline(d.Outline)
	if d.Exec != nil && len(v.Variables) == 0 {
		v.Variables = d.Exec.EnvKeys
	}
	if r.Offers(toolward.AllowAlways) {
		for _, p := range d.Proposals {
			v.Always = append(v.Always, Offer{Text: p.Text, Narrows: len(p.Match.Entries) == 0})
		}
	}
	return v
}

func callerOf(r *Record) string {
	var parts []string
	if r.Request.Depth > 0 {
		parts = append(parts, fmt.Sprintf("sub-agent, level %d", r.Request.Depth))
	}
	switch {
	case r.Client != "":
		parts = append(parts, "via "+r.Client)
	case r.Request.Surface == toolward.SurfaceMCP:
		parts = append(parts, "over MCP")
	}
	return strings.Join(parts, ", ")
}

// splitOutline takes the dangers, with what says more about them, from the beginning of an outline.
func splitOutline(o *display.Outline) (dangers, rest *display.Outline) {
	if o == nil {
		return &display.Outline{}, &display.Outline{}
	}
	n := 0
	for n < len(o.Lines) && (o.Lines[n].Kind == display.LineFinding || n > 0 && o.Lines[n].Depth > 0) {
		n++
	}
	return &display.Outline{Lines: o.Lines[:n]}, &display.Outline{Lines: o.Lines[n:], Cut: o.Cut}
}

// argumentsOf reads the arguments in the order in which they were written. A preview that cannot be read is shown raw.
func argumentsOf(d *Details) []Argument {
	list, ok := readArguments(d.Preview, d.Command)
	if !ok {
		list = []Argument{{Text: string(d.Preview)}}
	}
	return list
}

func readArguments(preview json.RawMessage, command string) (list []Argument, ok bool) {
	if len(preview) == 0 {
		return nil, true
	}
	dec := json.NewDecoder(bytes.NewReader(preview))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		key, err := dec.Token()
		name, isName := key.(string)
		var raw json.RawMessage
		if err != nil || !isName || dec.Decode(&raw) != nil {
			return nil, false
		}
		text := string(raw)
		if raw[0] == '"' && json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		list = append(list, Argument{Name: name, Text: text, Above: name == "command" && text == command})
	}
	return list, true
}

// reasonsOf says why people are asked. The approval holds findings and rules as text, the findings first, but for the offer to
// leave lockdown.
func reasonsOf(d *Details) []Reason {
	var out []Reason
	findings := d.Findings
	for i, text := range d.Reasons {
		r := Reason{Text: text}
		if offer := i == 0 && text == offerReset; len(findings) > 0 && !offer {
			r.Code, r.Seen = findings[0].Code, cmp.Or(findings[0].Detail, findings[0].Code)
			findings = findings[1:]
		}
		out = append(out, r)
	}
	for _, f := range findings {
		out = append(out, Reason{Text: strings.TrimSuffix(f.Code+": "+f.Detail, ": "), Code: f.Code, Seen: cmp.Or(f.Detail, f.Code)})
	}
	if len(out) == 0 {
		out = append(out, Reason{Text: "Calls of this tool are asked about."})
	}
	return out
}

// factsOf is what identifies the call, for comparing with other screens and the record.
func factsOf(r *Record) []Fact {
	d := r.Request
	var out []Fact
	add := func(name string, values ...string) {
		if value := strings.TrimSpace(strings.Join(values, " ")); value != "" {
			out = append(out, Fact{name, value})
		}
	}
	add("tool", d.Tool, d.Action)
	e := cmp.Or(d.Exec, &ExecRequest{})
	add("runs on", string(d.Host), e.Node)
	if d.ByClient {
		add("run by", "the agent's own program")
	}
	if len(e.Argv) > 0 { // they run, whatever the text of the command says
		add("words", display.Words(e.Argv...))
	}
	if d.Command == "" {
		add("directory", d.WorkDir)
	}
	if !d.ByProgram { // whoever asks by itself names these as it likes: see saysOf
		add("session", string(d.Session))
		add("sender", d.Channel, d.Sender)
		add("account", d.Account)
		add("arguments", d.Digest) // as the record of the call has it
	}
	add("run", d.Run)
	add("approval", r.ID)
	return out
}

// ShortDigest is as much of the digest as people compare.
func (v *View) ShortDigest() string { return v.Digest[:min(comparedDigest, len(v.Digest))] }

const comparedDigest = 12
