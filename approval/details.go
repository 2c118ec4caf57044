package approval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// recordOf turns a question into the record that people see, redacted and within its limits.
func (m *Manager) recordOf(q *toolward.Question, now time.Time) (*Record, error) {
	r, s := q.Request, m.settings.Load()
	if len(r.Facts.Command) > maxCommand {
		// Nobody can judge a command that does not fit the screen; hiding its end would invite to hide things there.
		return nil, &toolward.Refusal{
			Tool: r.Tool.Name, Code: toolward.CodeValidation, Detail: "the command is too long to be shown to a person",
			Cause: fmt.Errorf("command has %d bytes, people are asked about at most %d", len(r.Facts.Command), maxCommand),
		}
	}
	err := m.checkHidden(q)
	if err != nil {
		return nil, err
	}
	preview, previewCut := m.preview(r.Params)
	d := &Details{
		Tool: r.Tool.Name, Action: r.Facts.Action, CallID: cut(r.Call.ID, longestID),
		Severity: q.Judgment.Class.Severity, Class: q.Judgment.Class.Class, Level: r.Level,
		Preview: preview, Cut: previewCut,
		Command: m.redact(r.Facts.Command), WorkDir: r.Call.WorkDir, Host: r.Host(), Digest: r.Digest,
		Agent: r.Call.Caller.Agent, Depth: r.Call.Caller.Depth, Owner: r.Call.Caller.Owner, Context: r.Call.Caller.Context,
		Session: r.Call.Session, Run: r.Call.Run, Surface: r.Call.Surface, Channel: r.Call.Caller.Channel,
		Sender: r.Call.Caller.Sender, Account: r.Call.Caller.Account, Workspace: r.Call.Caller.Workspace, ByClient: r.Call.ByClient,
	}
	d.Findings, d.Reasons = m.why(q.Judgment.Findings, m.misleading(r.Facts.Command, r.Params.Object()), rulesOf(q.Judgment))
	d.Diff = m.diff(q.Diff)
	d.Targets = m.targets(&r.Facts)
	d.Title = m.title(r)
	if d.Outline, err = m.outlineOf(r); err != nil {
		return nil, err
	}
	d.Variables = m.redacted(variablesOf(r))
	if d.Proposals = m.propose(q, previewCut, *s); len(d.Proposals) == 0 {
		d.Outline = d.Outline.Without(display.LineAlways) // it is not offered
	}

	wait := waitOf(q, s)
	d.Lasting = wait > s.Timeout

	allowed := []toolward.Decision{toolward.AllowOnce, toolward.AllowAlways, toolward.DenyCall}
	if len(d.Proposals) == 0 {
		allowed = []toolward.Decision{toolward.AllowOnce, toolward.DenyCall}
	}
	record := &Record{
		ID: newID(), Kind: KindTool, Request: d, Allowed: allowed, Binding: q.Binding, State: StatePending,
		CreatedMs: now.UnixMilli(), ExpiresMs: now.Add(wait).UnixMilli(),
		Connection: r.Call.Caller.Connection, Device: r.Call.Caller.Device, Client: r.Call.Caller.Client,
		Detached: r.Call.Detach,
	}
	if r.Facts.Command != "" {
		record.Kind = KindExec
	}
	return record, nil
}

func (m *Manager) diff(text string) string {
	text = m.redact(text)
	if len(text) <= maxDiff {
		return text
	}
	const mark = "\n… the rest of the difference is not shown\n"
	end := maxDiff - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

func (m *Manager) targets(f *toolward.Facts) []string {
	var all []string
	for _, t := range f.Targets {
		all = append(all, string(t.Op)+" "+cmp.Or(t.Real, t.Path))
	}
	all = append(append(all, f.Hosts...), f.Recipients...)
	if f.TargetID != "" {
		all = append(all, f.TargetID)
	}
	more := len(all) - maxTargets
	if more > 0 {
		all = all[:maxTargets]
	}
	for i, text := range all {
		all[i] = cut(m.redact(text), maxTargetText)
	}
	if more > 0 {
		all = append(all, fmt.Sprintf("… and %d more", more))
	}
	return all
}

// title names the call in one line.
func (m *Manager) title(r *toolward.Request) string {
	about := r.Facts.Command
	switch f := &r.Facts; {
	case about != "":
		about, _, _ = strings.Cut(strings.TrimSpace(about), "\n")
	case len(f.Targets) > 0:
		about = cmp.Or(f.Targets[0].Path, f.Targets[0].Real)
		if n := len(f.Targets) - 1; n > 0 {
			about = fmt.Sprintf("%s and %d more", about, n)
		}
	case len(f.URLs) > 0:
		about = f.URLs[0]
		if leads := display.MisleadingAddresses(about); len(leads) > 0 {
			about = leads[0] // its host first, which may not be cut off
		}
	case len(f.Recipients) > 0:
		about = f.Recipients[0]
	case len(f.Hosts) > 0:
		// Whole where it can be, and at the front: its end is what tells one host from another.
		_, about, _ = strings.Cut(f.Hosts[0], "://")
		if command, _, _ := strings.Cut(strings.TrimSpace(f.For), "\n"); command != "" {
			about += ", for " + command
		}
	default:
		about = f.TargetID
	}
	title := r.Tool.Name
	if r.Facts.Action != "" {
		title += " " + r.Facts.Action
	}
	if about != "" {
		title += ": " + m.redact(about)
	}
	return cut(title, maxTitle)
}

// preview is the final parameters with secrets hidden, as JSON of at most 16 KiB. Long texts are shortened, with a
// mark; shortened reports whether anything was.
func (m *Manager) preview(p toolward.Params) (preview json.RawMessage, shortened bool) {
	object := p.Object()
	for _, longest := range []int{maxPreview, 4096, 1024, 256, 64} {
		p := previewer{redact: m.redact, longest: longest}
		raw, err := encode(p.value(object, 0))
		if err == nil && len(raw) <= maxPreview {
			return raw, p.cut
		}
	}
	return json.RawMessage(`"…"`), true
}

type previewer struct {
	redact  func(string) string
	longest int
	cut     bool
}

func (p *previewer) value(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		if depth > maxPreviewDeep {
			p.cut = true
			return "…"
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[p.text(k)] = p.value(e, depth+1)
		}
		return out
	case []any:
		if depth > maxPreviewDeep {
			p.cut = true
			return "…"
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = p.value(e, depth+1)
		}
		return out
	case string:
		return p.text(v)
	default:
		return v
	}
}

func (p *previewer) text(s string) string {
	s = p.redact(s)
	if len(s) <= p.longest {
		return s
	}
	p.cut = true
	end := p.longest
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes more)", s[:end], len(s)-end)
}
