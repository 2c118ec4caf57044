package approval

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// Claim is one thing that a program that asks by itself says of its call. Claims are shown apart from everything else, as its words: a
// program that could choose the title, the severity or the reasons would have people approve what it does not do.
type Claim struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// aProgram is who asks where a program asks by itself: what it calls itself and its agent proves nothing.
const aProgram = "a program"

// Asker is who asks, as far as the gateway knows.
func (r *Record) Asker() string {
	if r.Request.ByProgram {
		return aProgram
	}
	return cmp.Or(r.Request.Agent, "unknown agent")
}

// saysOf is everything that the asker alone answers for, one claim below the other.
func saysOf(d *Details) string {
	if !d.ByProgram {
		return ""
	}
	e := cmp.Or(d.Exec, &ExecRequest{})
	claims := slices.Concat([]Claim{
		{"agent", d.Agent},
		{"session", string(d.Session)},
		{"sender", strings.TrimSpace(d.Channel + " " + d.Sender)},
		{"account", d.Account},
		{"thread", e.Thread},
		{"program", e.ResolvedPath},
		{"arguments digest", d.Digest},
	}, d.Claims)
	var b strings.Builder
	for _, c := range claims {
		switch {
		case strings.TrimSpace(c.Text) == "":
			continue
		case strings.Contains(c.Text, "\n"):
			b.WriteString(c.Name + ":\n" + strings.TrimRight(c.Text, "\n") + "\n")
		default:
			b.WriteString(c.Name + ": " + c.Text + "\n")
		}
	}
	return b.String()
}

// claims are those of a program, redacted. Each fits as much as the longest of them may be; the protocol bounds them further.
func (m *Manager) claims(list []Claim) []Claim {
	var out []Claim
	for _, c := range list {
		out = append(out, Claim{c.Name, m.diff(c.Text)})
	}
	return out
}

// read puts the gate's own reading of a call into what people are shown of a question of a program.
func (m *Manager) read(d *Details, q *toolward.Question) error {
	r := q.Request
	var err error
	if d.Outline, err = m.outlineOf(r); err != nil {
		return err
	}
	d.Title, d.Action = m.title(r), r.Facts.Action
	d.Severity, d.Class, d.Level = q.Judgment.Class.Severity, q.Judgment.Class.Class, r.Level
	d.Findings, d.Reasons = q.Judgment.Findings, append(d.Reasons, rulesOf(q.Judgment)...)
	if r.Facts.Command == "" {
		d.Preview, d.Cut = m.preview(r.Params)
		d.Targets = m.targets(&r.Facts)
	}
	// Nothing is kept of an answer to a program.
	d.Outline = d.Outline.Without(display.LineAlways)
	return nil
}
