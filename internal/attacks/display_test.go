package attacks

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/display"
)

// judgeDisplay: what people are shown of a call that waits, wherever they are shown it.
func judgeDisplay(t *testing.T, c *attack) (o outcome, err error) {
	if err := errors.Join(setupOnly(c, "renderers"), c.Attempt.only("attempt", "render", "command", "field", "value"),
		c.Check.only("check", "visible_escape", "round_trip", "inert_in", "shows_truth")); err != nil {
		return outcome{}, err
	}
	renderers := []string{c.Attempt.text("render")}
	if renderers[0] == "all" {
		renderers = append(c.Setup.list("renderers"), "log")
	}
	if c.Class == "display.fields" {
		synctest.Test(t, func(t *testing.T) { o, err = newWorld(t, withPrograms).judgeField(c) })
		return o, err
	}
	o.answer = sanitized
	for _, renderer := range renderers {
		if renderer == "html" {
			o.found(wrongOnPage(t, c.Attempt.text("command"))) // over real sockets, which have no other time
			continue
		}
		synctest.Test(t, func(t *testing.T) { err = newWorld(t, withPrograms).judgeRenderer(c, renderer, &o) })
		if err != nil {
			return outcome{}, err
		}
	}
	if c.Control && o.answer == sanitized {
		o.answer = allowed
	}
	return o, nil
}

// judgeRenderer looks at a command where it is shown, or written down.
func (w *world) judgeRenderer(c *attack, renderer string, o *outcome) error {
	command := c.Attempt.text("command")
	call := w.newCommand(command, nil)
	r, a := w.question(call)
	if r == nil {
		return fmt.Errorf("nobody is shown the command: %s", a.why())
	}
	o.took = max(o.took, w.watch.longest)
	switch renderer {
	case "terminal":
		o.found(wrongOnTerminal(r, command, c.Check.flag("visible_escape")))
	case "markdown":
		o.found(wrongInMarkdown(r.Message(display.MarkdownOf), command))
	case "chat":
		o.found(wrongInChat(r.Message(display.ChatOf), command))
	case "log", "csv":
		play := &approvalPlay{world: w}
		if said, err := play.answer(r.ID, "deny", "op1"); err != nil || said.answer != allowed {
			return errors.Join(err, errors.New(said.why))
		}
		call.Approval, call.Detach = r.ID, false
		w.admit(call) // comes back for its answer, which makes the record whole
		if renderer == "csv" {
			o.found(w.wrongInTable(command))
			return nil
		}
		o.found(w.wrongInRecord(command))
		o.found(wrongInLog(command))
	default:
		return unsupported{"render " + renderer}
	}
	return nil
}

// found notes what is wrong; "" is nothing.
func (o *outcome) found(why string) {
	if why != "" {
		o.answer, o.why = harmful, why
	}
}

// question is what people are asked about a call; nil if they are not.
func (w *world) question(call toolward.Call) (*approval.Record, admission) {
	a := w.admit(call)
	if a.answer != asked {
		return nil, a
	}
	person, err := op1()
	must(w.t, err)
	r, err := w.approver.Get(w.t.Context(), person, a.approval)
	must(w.t, err)
	return r, a
}

// wrongOnTerminal looks at what terminals print of a command: its text, and what it would do.
func wrongOnTerminal(r *approval.Record, command string, escapes bool) string {
	text := display.Block(r.Request.Command)
	rows := []string{text}
	for _, row := range r.Request.Outline.Rows(80) {
		if strings.ContainsAny(row.Text, "\n\t") {
			return "a row of the outline has several lines"
		}
		rows = append(rows, row.Text)
	}
	all := strings.Join(rows, "\n")
	switch {
	case display.HasInvisible(strings.ReplaceAll(strings.ReplaceAll(all, "\n", ""), "\t", "")):
		return fmt.Sprintf("something is not visible: %q", all)
	case display.Confusable(all):
		return fmt.Sprintf("something looks like something else: %q", all)
	case escapes && !strings.Contains(text, "⟦") && len(command) < 4000:
		return fmt.Sprintf("nothing is escaped: %q", text)
	case !escapes && text != command:
		return fmt.Sprintf("%q is shown as %q", command, text)
	case len(r.Request.Outline.Rows(80)) == 0:
		return "nobody says what it would do"
	}
	if end := command[len(command)-1:]; end > " " && end < "\x7f" && !strings.HasSuffix(text, end) {
		return fmt.Sprintf("the end of %q is not shown: %q", command, text)
	}
	return ""
}

// wrongInRecord looks at the record as it is exported: a line of JSON for each entry, from which the command comes back
// as it was.
func (w *world) wrongInRecord(command string) string {
	records, err := w.log.Query(w.t.Context(), audit.Filter{})
	must(w.t, err)
	for i := range records {
		line := records[i].JSON
		if strings.ContainsAny(line, "\n\r\x1b") {
			return fmt.Sprintf("an entry has several lines: %q", line)
		}
		var entry struct{ Preview, Code string }
		var call struct{ Command string }
		must(w.t, json.Unmarshal([]byte(line), &entry))
		if entry.Preview == "" {
			continue
		}
		if err := json.Unmarshal([]byte(entry.Preview), &call); err == nil && (call.Command == command || call.Command == display.Block(command)) && entry.Code == string(toolward.CodeDeniedByUser) {
			return ""
		}
	}
	return "the record does not hold the command with its answer"
}

// judgeField: names, directories, arguments and other things that are shown beside the command.
func (w *world) judgeField(c *attack) (outcome, error) {
	o := outcome{answer: sanitized}
	field, value := c.Attempt.text("field"), c.Attempt.text("value")
	caller, _ := w.main("s1")
	refused := func(a admission) {
		if o.took = w.watch.longest; a.answer != denied {
			o.answer, o.why = harmful, "it was not refused: "+a.why()
		}
	}
	truth := func(ok bool, shown string) {
		if o.took = max(o.took, w.watch.longest); !ok {
			o.answer, o.why = harmful, fmt.Sprintf("shown as %q", shown)
		}
	}
	switch {
	case field == "tool":
		refused(w.admit(w.newCall(caller, value, nil)))
		shown := display.Line(value)
		truth(shown != value && !display.HasInvisible(shown), shown)
	case field == "cwd":
		call := w.newCommand("ls -la", nil)
		call.WorkDir = w.root + value
		if r, _ := w.question(call); r != nil {
			truth(!strings.Contains(display.Line(r.Request.WorkDir), "\n"), r.Request.WorkDir)
		}
	case strings.HasPrefix(field, "env."):
		refused(w.admit(w.newCommand("ls -la", fields{strings.TrimPrefix(field, "env."): value})))
	case field == "json":
		call := w.newCommand("ls -la", nil)
		call.Arguments = json.RawMessage(`{"command":"ls","env":` + value + `}`)
		refused(w.admit(call))
	case field == "args":
		args := c.Attempt.object("value")
		args["content"] = "x"
		refused(w.admit(w.newCall(caller, "write", args)))
	case field == "argv":
		argv := c.Attempt.list("value")
		shown, err := command.TextOf(argv, "")
		if err != nil {
			return outcome{}, err
		}
		other, err := command.TextOf(strings.Fields(strings.Join(argv, " ")), "")
		truth(err == nil && shown.Text != other.Text && display.Words(argv...) != strings.Join(argv, " "), shown.Text)
	case field == "rawCommand!=argv":
		if _, err := command.TextOf(c.Attempt.object("value").list("argv"), c.Attempt.object("value").text("rawCommand")); err != nil {
			o.answer = denied
		}
	case field == "url":
		return o, w.judgeAddress(value, &o)
	case field == "wrapper":
		r, a := w.question(w.newCommand(value, nil))
		if r == nil {
			return outcome{}, errors.New(a.why())
		}
		shown := ""
		for _, row := range r.Request.Outline.Rows(200) {
			shown += row.Text + "\n"
		}
		inner := value
		if _, script, quoted := strings.Cut(value, "'"); quoted {
			inner = strings.TrimSuffix(script, "'")
		}
		truth(display.Block(r.Request.Command) == value && (strings.Contains(shown, inner+"\n") || strings.Contains(shown, "asks  "+value)), shown)
	case field == "agent", field == "session", field == "host", field == "path":
		call := w.newCommand("ls -la", nil)
		switch field {
		case "agent":
			call.Caller.Agent = value
		case "session":
			call.Session, call.Caller.Session = toolward.SessionKey(value), toolward.SessionKey(value)
		case "host":
			call.Host = toolward.Host(value)
		case "path":
			call = w.newCall(caller, "write", map[string]any{"path": value, "content": "x"})
		}
		if r, _ := w.question(call); r != nil {
			d := r.Request
			for _, text := range append(d.Targets, d.Title, d.Agent, string(d.Session), string(d.Host), string(d.Preview)) {
				shown := display.Line(text)
				truth(!display.HasInvisible(shown) && !strings.ContainsAny(shown, "\n\t"), shown)
			}
		}
	case field == "diff":
		content := strings.ReplaceAll("\n"+value, "\n+", "\n")[1:]
		r, a := w.question(w.newCall(caller, "write", map[string]any{"path": "new.txt", "content": content}))
		if r == nil {
			return outcome{}, errors.New(a.why())
		}
		truth(strings.HasSuffix(r.Request.Diff, value), r.Request.Diff)
	default:
		return outcome{}, unsupported{"display of " + field}
	}
	return o, nil
}
