package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward/display"
)

func sandboxItem(s Sandbox) item {
	color := ""
	switch {
	case s.Odd:
		color = yellow
	case s.Running:
		color = green
	}
	more := []string{
		display.Line(s.Name),
		"processors " + display.Line(s.CPU) + ", memory " + display.Line(s.Memory) + ", processes " + display.Line(s.Pids),
	}
	if s.Note != "" {
		more = append(more, display.Line(s.Note))
	}
	if len(s.Sessions) > 0 {
		more = append(more, "Used by "+display.Line(strings.Join(s.Sessions, ", ")))
	}
	for _, fact := range s.Facts {
		more = append(more, display.Line(fact))
	}
	return item{
		id: s.Name, color: color, more: more,
		text: pad(display.Line(s.State), 15) + pad(display.Line(s.Of), 24) + " " + pad(display.Line(s.Memory), 19) + display.Line(s.CPU),
	}
}

// sandboxKey begins to end the selected sandbox.
func (c *console) sandboxKey(name string) {
	l := &c.lists[pageSandboxes]
	if id := l.selected(); id != "" && c.link == live {
		l.ending, l.scroll = &ending{id, name == "x"}, 0
	}
}

// endingSureKey takes the answer to whether a sandbox is ended. Any key but y is a no.
func (c *console) endingSureKey(k tea.KeyPressMsg) tea.Cmd {
	l := &c.lists[pageSandboxes]
	e := l.ending
	l.ending = nil
	if k.String() != "y" || c.link != live {
		return tea.ClearScreen
	}
	c.say("", "Ending "+e.name+"...")
	return c.ask(func(ctx patience) tea.Msg { return sandboxEndedMsg{e, c.gateway.EndSandbox(ctx, e.name, e.remove)} })
}

// sandboxEndedMsg says whether a sandbox was ended.
type sandboxEndedMsg struct {
	what *ending
	err  error
}

func (c *console) sandboxEnded(m sandboxEndedMsg) tea.Cmd {
	switch {
	case m.err != nil:
		c.say(red, "Not ended: "+m.err.Error())
	case m.what.remove:
		c.say(green, "Removed; the next call makes it anew: "+m.what.name)
	default:
		c.say(green, "Stopped; the next call starts it again: "+m.what.name)
	}
	return c.fetch(pageSandboxes)
}

// rows are what a person reads before they say yes.
func (e *ending) rows(out *rows) {
	name := display.Line(e.name)
	if e.remove {
		out.line(bold, "", "Remove "+name+", so that the next call makes it anew?")
		out.line("", "", "Commands that run in it end, and what is in its memory file systems is gone. Files in the workspace, the private directory and binds stay.")
		return
	}
	out.line(bold, "", "Stop "+name+"?")
	out.line("", "", "Commands that run in it end, also those in the background. Files stay.")
}
