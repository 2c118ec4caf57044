package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/redact"
)

// Remedy is one line that would make calls run without a question. It is told, never applied.
type Remedy struct {
	File    string `json:"file"` // where the line goes
	At      string `json:"at"`   // the list or section of it
	Line    string `json:"line"`
	Removes int    `json:"removes"`        // questions of those that were counted, after the remedies before it
	Note    string `json:"note,omitempty"` // what somebody should know who thinks of it
}

const (
	mostRemedies   = 3
	maxAttempts    = 32   // settings that are tried
	maxSignatures  = 5000 // different sets of lines that are counted; calls beyond them are not
	configFile     = config.FileName
	allowlistFile  = "exec-approvals.json"
	toolSection    = "teg.tools"
	separatesLines = "\x00"
)

var errTooMany = errors.New("too many settings to try")

// remedies looks for the lines that would remove most questions. A call needs all the lines of one of its ways; a way is
// only counted if the candidate with it was tried and said that the call runs.
type remedies struct {
	judge  *judge
	redact *redact.Redactor
	lines  map[string]*Remedy // by their text
	calls  map[string]int     // by the ways of the call
	trial  map[string]*attempt
}

// attempt is a way that needs another policy to be tried, and the calls that wait for it.
type attempt struct {
	line Remedy
	with func(source []byte, f *config.File) ([]byte, error)
	made *judge // nil until it is needed
	err  error
}

func newRemedies(j *judge) *remedies {
	return &remedies{judge: j, redact: redact.New(), lines: map[string]*Remedy{}, calls: map[string]int{}, trial: map[string]*attempt{}}
}

// add counts a call that asks, by the ways in which it would not. What asks whatever the settings has none.
func (r *remedies) add(ctx context.Context, o *judged) {
	var ways []string
	for _, a := range r.attempts(o) {
		if r.runsWith(ctx, a, o) {
			ways = append(ways, r.line(a.line))
		}
	}
	if entries := r.entries(o); entries != "" {
		ways = append(ways, entries)
	}
	if len(ways) == 0 {
		return
	}
	slices.Sort(ways)
	key := strings.Join(ways, separatesLines+separatesLines)
	if _, known := r.calls[key]; known || len(r.calls) < maxSignatures {
		r.calls[key]++
	}
}

// line takes up a line once and returns its name.
func (r *remedies) line(one Remedy) string {
	name := one.File + " " + one.At + " " + one.Line
	if r.lines[name] == nil {
		r.lines[name] = &one
	}
	return name
}

// entries are what "always" would save for a command: the entries of the allowlist that let it run.
func (r *remedies) entries(o *judged) string {
	a := o.assessment
	if !o.command || a == nil || len(a.Always) == 0 || len(a.Findings) > 0 || asksAnyway(&o.host) {
		return ""
	}
	agent := o.call.Client
	var names []string
	for _, entry := range a.Always {
		text, err := json.Marshal(entry)
		if err != nil {
			return ""
		}
		if len(r.redact.Find(string(text))) > 0 {
			return "" // nobody is told to keep a secret in a file
		}
		names = append(names, r.line(Remedy{File: allowlistFile, At: "agents." + agent + ".allowlist", Line: escapeUnseen(string(text))}))
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), separatesLines)
}

// asksAnyway reports whether a finding asks that no entry answers.
func asksAnyway(trace *toolward.Trace) bool {
	return slices.ContainsFunc(trace.Findings, func(f toolward.Finding) bool { return f.Effect == toolward.EffectAsk })
}

// attempts are the settings that may make the call run. Nothing is proposed for what a finding asks about, and nothing that
// would let files beyond the workspace be changed.
func (r *remedies) attempts(o *judged) (list []*attempt) {
	file := &r.judge.loaded.File
	switch {
	case o.command:
		commands := file.Commands()
		if commands.For(o.call.Client).Preset != command.Developer {
			list = append(list, r.attempt("tools.exec", "preset", string(command.Developer)))
		}
	case o.form == "write" || o.form == "edit" || o.form == "apply_patch":
		if string(file.TEG.Preset) != config.Proposed.Files {
			list = append(list, r.attempt("teg", "preset", config.Proposed.Files))
		}
	case o.form == "read" || o.form == "process" || asksAnyway(&o.host) || o.host.Severity == toolward.Critical:
	default:
		if _, named := file.TEG.Tools[o.host.Tool]; !named {
			list = append(list, r.attempt(toolSection, o.host.Tool, toolward.Safe.String()))
		}
	}
	return list
}

// attempt is a setting, made once.
func (r *remedies) attempt(section, name, value string) *attempt {
	key := section + "." + name
	if a := r.trial[key]; a != nil {
		return a
	}
	a := &attempt{line: Remedy{File: configFile, At: section, Line: escapeUnseen(fmt.Sprintf("%q: %q", name, value))}}
	if section == toolSection {
		a.line.Note = "nobody looks at its calls then: only for a tool that can do no harm with any arguments"
	}
	a.with = func(source []byte, f *config.File) ([]byte, error) {
		if section != toolSection {
			return config.Set(source, key, value)
		}
		tools := maps.Clone(f.TEG.Tools) // names of tools may have dots in them, which keys take apart
		if tools == nil {
			tools = map[string]string{}
		}
		tools[name] = value
		return config.Set(source, section, tools)
	}
	if len(r.trial) >= maxAttempts {
		a.err = errTooMany
		return a
	}
	r.trial[key] = a
	return a
}

// runsWith tries the setting on the call.
func (r *remedies) runsWith(ctx context.Context, a *attempt, o *judged) bool {
	if a.made == nil && a.err == nil {
		a.made, a.err = r.judge.with(a.with)
	}
	if a.err != nil {
		return false
	}
	again, err := a.made.call(ctx, o.call)
	if err != nil {
		return false
	}
	_, trace := again.where(o.sandboxed)
	return trace.Verdict == toolward.Allow
}

// best picks the lines that remove most, one after the other: what the first removes is not counted for the second. A way of
// several lines counts with the last of them.
func (r *remedies) best() (list []Remedy) {
	chosen := map[string]bool{}
	for len(list) < mostRemedies {
		removes := map[string]int{}
		for ways, calls := range r.calls {
			for line := range missing(ways, chosen) {
				removes[line] += calls
			}
		}
		best := ""
		for line, calls := range removes {
			if calls > removes[best] || calls == removes[best] && line < best {
				best = line
			}
		}
		if best == "" {
			break
		}
		chosen[best] = true
		one := *r.lines[best]
		one.Removes = removes[best]
		list = append(list, one)
	}
	return list
}

// missing are the lines each of which would complete a way of a call; none if one of its ways is complete.
func missing(ways string, chosen map[string]bool) map[string]bool {
	out := map[string]bool{}
	for way := range strings.SplitSeq(ways, separatesLines+separatesLines) {
		var left []string
		for line := range strings.SplitSeq(way, separatesLines) {
			if !chosen[line] {
				left = append(left, line)
			}
		}
		switch len(left) {
		case 0:
			return nil
		case 1:
			out[left[0]] = true
		}
	}
	return out
}

// close ends what was opened to try settings.
func (r *remedies) close() (err error) {
	for _, a := range r.trial {
		if a.made != nil {
			err = errors.Join(err, a.made.Close())
		}
	}
	return err
}
