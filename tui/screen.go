package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward/display"
)

// View implements tea.Model: exactly as many rows as the screen has.
func (c *console) View() tea.View {
	var list []row
	var cursor *tea.Cursor
	switch {
	case c.width == 0:
	case c.tooSmall():
		list = []row{{text: cut(fmt.Sprintf("Make this terminal at least %d x %d.", leastWidth, leastHeight), c.width)}}
	case c.link == signedOut:
		list, cursor = c.signInScreen()
	case c.help:
		list = c.helpScreen()
	case c.page == pageQueue:
		list, cursor = c.queueScreen()
	default:
		list = c.listScreen()
	}
	v := tea.NewView(c.paint(list))
	v.AltScreen, v.Cursor = true, cursor
	return v
}

// paint joins rows to a screen. Colors are ours alone; texts of others have no escapes in them any more.
func (c *console) paint(list []row) string {
	list = list[:min(len(list), c.height)]
	var b strings.Builder
	for i, r := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		if c.color && r.color != "" {
			b.WriteString("\x1b[" + r.color + "m" + r.text + "\x1b[0m")
		} else {
			b.WriteString(r.text)
		}
	}
	return b.String()
}

// head is the first two rows: the pages, and what there is to tell.
func (c *console) head() []row {
	names := []string{"Queue", "Decisions", "Sessions", "Grants", "Sandboxes", "Undo"}
	if n := len(c.queue.calls); n > 0 {
		names[0] = fmt.Sprintf("Queue (%d)", n)
	}
	help := "? help"
	if c.page == pages-1 {
		help = " " + help // its bracket stands beside it
	}
	text := "Toolward " + c.tabs(names)
	if len(text)+len(help) > c.width {
		text = c.tabs(names)
	}
	for i := len(names) - 1; i > 0 && len(text)+len(help) > c.width; i-- {
		if page(i) != c.page { // its number is enough
			names[i] = ""
			text = c.tabs(names)
		}
	}
	text += strings.Repeat(" ", max(0, c.width-len(text)-len(help))) + help
	return []row{{text, bold}, c.status()}
}

// tabs are the pages with their keys.
func (c *console) tabs(names []string) string {
	text := ""
	for i, name := range names {
		label := strings.TrimSpace(fmt.Sprintf("%d %s", i+1, name))
		if page(i) == c.page {
			text += "[" + label + "]"
		} else {
			text += " " + label + " "
		}
	}
	return text
}

// status says how things stand if they do not stand well, and else the latest there was to tell.
func (c *console) status() row {
	switch c.link {
	case connecting:
		return row{"Connecting to the gateway...", ""}
	case away:
		return row{cut("THE GATEWAY DOES NOT ANSWER; trying again. "+c.said.text, c.width), red}
	}
	return row{cut(c.said.text, c.width), c.said.color}
}

func (c *console) queueScreen() ([]row, *tea.Cursor) {
	list := append(c.head(), c.queueList()...)
	height := c.bodyHeight()
	f := &c.front
	if f.id == "" {
		list = append(list, c.rule(""))
		for range height {
			list = append(list, row{})
		}
		return append(list, c.rule(""), row{text: "Calls that wait for an answer appear here."}, row{text: "1-6: pages   ?: help   q: leave"}), nil
	}
	note := fmt.Sprintf("rows %d to %d of %d", f.offset+1, min(len(f.rows), f.offset+height), len(f.rows))
	if len(f.rows) <= height {
		note = "all of it"
	}
	list = append(list, c.rule(c.twinNote()))
	for i := range height {
		if at := f.offset + i; at < len(f.rows) {
			list = append(list, f.rows[at])
		} else {
			list = append(list, row{})
		}
	}
	list = append(list, c.rule(note))
	if f.mode == keeping {
		return c.savingScreen(list)
	}
	answers, cursor := c.answerRows()
	if cursor != nil {
		cursor.Y = len(list)
	}
	return append(list, answers...), cursor
}

// queueList is the part of the queue around the call in front.
func (c *console) queueList() []row {
	shown, at := c.queueRows(), max(0, c.queue.index(c.front.id))
	if len(c.queue.calls) == 0 {
		return []row{{text: "Nothing waits."}}
	}
	first := max(0, min(at-shown/2, len(c.queue.calls)-shown))
	soonest := c.queue.soonest()
	var list []row
	for i := first; i < first+shown; i++ {
		call := c.queue.calls[i]
		mark, next, color := "  ", "", ""
		if call.ID == c.front.id {
			mark, color = "> ", bold
		}
		if i == soonest {
			next = "ends first"
		}
		if i == first+shown-1 && i < len(c.queue.calls)-1 {
			next = fmt.Sprintf("(+%d more)", len(c.queue.calls)-1-i)
		}
		left := max(0, time.UnixMilli(call.ExpiresMs).Sub(c.now)).Truncate(time.Second)
		text := mark + pad(display.Duration(left), 12) + pad(next, 11) + pad(severities[call.Request.Severity].word, 9) +
			pad(display.Line(call.Asker()), 10) + " " + display.Line(call.Request.Title)
		list = append(list, row{cut(text, c.width), color})
	}
	return list
}

// answerRows are the buttons, or the reason that is being typed.
func (c *console) answerRows() ([]row, *tea.Cursor) {
	f := &c.front
	switch {
	case f.gone != "":
		return []row{{cut("Decided meanwhile: "+f.gone, c.width), yellow}, {text: "Esc: go on"}}, nil
	case f.sent:
		return []row{{text: "Answering..."}, {}}, nil
	case f.mode == reasoning:
		label := "Deny, because: "
		if f.all {
			label = fmt.Sprintf("Deny all %d, because: ", len(f.twins)+1)
		}
		shown := tail(f.reason.text, c.width-len(label)-2)
		return []row{{text: label + shown}, {text: "Enter: deny, and tell the agent this   Esc: back"}}, tea.NewCursor(len(label)+columns(shown), 0)
	case f.stamp == "" && c.link == live:
		return []row{{text: "  Deny     Allow once     Always..."}, {text: "One moment..."}}, nil
	}
	names := []string{"Deny", "Allow once"}
	if f.all {
		names = []string{fmt.Sprintf("Deny all %d", len(f.twins)+1), fmt.Sprintf("Allow all %d, each once", len(f.twins)+1)}
	}
	if c.offersAlways() {
		names = append(names, "Always...")
	}
	text := ""
	for i, name := range names {
		if button(i) == f.focus {
			text += "[ " + name + " ]   "
		} else {
			text += "  " + name + "     "
		}
	}
	hint := "Space: press   Tab: next   d: deny, why   PgDn: scroll   j k: calls"
	if f.focus == buttonDeny {
		hint = "Enter: deny   Tab: next   d: deny, why   PgDn: scroll   j k: calls"
	}
	return []row{{text, bold}, {text: cut(hint, c.width)}}, nil
}

// listScreen is a list above what is known of its selected item.
//
// What a person is to read before they say yes counts as read once its last row has been drawn.
func (c *console) listScreen() []row {
	l := &c.lists[c.page]
	out := c.head()
	below := c.belowHeight()
	above := c.listHeight() - below
	first := max(0, min(l.at-above/2, len(l.items)-above))
	for i := first; i < first+above; i++ {
		switch {
		case i < len(l.items):
			mark := "  "
			if i == l.at {
				mark = "> "
			}
			out = append(out, row{cut(mark+l.items[i].text, c.width), l.items[i].color})
		case i == 0 && l.known:
			out = append(out, row{text: "There is nothing here."})
		default:
			out = append(out, row{})
		}
	}
	more := &rows{width: c.width}
	switch {
	case l.change != nil:
		l.change.rows(more)
	case l.ending != nil:
		l.ending.rows(more)
	case l.taking != nil:
		l.taking.rows(more)
	case l.at < len(l.items):
		for _, text := range l.items[l.at].more {
			more.line("", "", text)
		}
	}
	l.scroll = max(0, min(l.scroll, len(more.list)-below))
	if l.change != nil && l.change.known {
		l.change.read = l.change.read || l.scroll+below >= len(more.list)
	}
	if l.taking != nil && l.taking.known {
		l.taking.read = l.taking.read || l.scroll+below >= len(more.list)
	}
	note := ""
	if len(more.list) > below {
		note = fmt.Sprintf("rows %d to %d of %d: PgUp, PgDn", l.scroll+1, l.scroll+below, len(more.list))
	}
	out = append(out, c.rule(note))
	for i := range below {
		if at := l.scroll + i; at < len(more.list) {
			out = append(out, more.list[at])
		} else {
			out = append(out, row{})
		}
	}
	switch {
	case l.change != nil:
		out = append(out, row{cut(l.change.hint(), c.width), yellow})
	case c.page == pageSessions:
		out = append(out, row{text: cut("e: elevate   l: lock down   c: clear   Up, Down: choose   Esc: queue   q: leave", c.width)})
	case l.ending != nil:
		out = append(out, row{"y: yes   any other key: no", yellow})
	case c.page == pageSandboxes:
		out = append(out, row{text: cut("s: stop   x: recreate   Up, Down: choose   1-6: pages   Esc: queue   q: leave", c.width)})
	case l.taking != nil:
		out = append(out, row{cut(l.taking.hint(), c.width), yellow})
	case c.page == pageUndo:
		out = append(out, row{text: cut("d: differences   t: take back   s: back to before its session   Esc: queue", c.width)})
	case l.sure:
		out = append(out, row{"Revoke this grant? y: yes   any other key: no", yellow})
	case c.page == pageGrants:
		out = append(out, row{text: "Up, Down: choose   x: revoke   1-6: pages   Esc: queue   q: leave"})
	default:
		out = append(out, row{text: "Up, Down: choose   1-6: pages   Esc: queue   q: leave"})
	}
	return append(out, row{})
}

// listHeight is how many rows a list has, with what is known of its selected item.
func (c *console) listHeight() int { return c.height - 2 - 1 - 2 }

// belowHeight is how many of them are below the list. What somebody is asked about files gets most of the screen.
func (c *console) belowHeight() int {
	if c.page == pageUndo && c.lists[pageUndo].taking != nil {
		return c.listHeight() - 3
	}
	return min(8, c.listHeight()/2)
}

func (c *console) signInScreen() ([]row, *tea.Cursor) {
	out := &rows{width: c.width}
	out.line(bold, "", "Toolward")
	out.line("", "", "")
	if c.signIn.why != "" {
		out.line(yellow, "", c.signIn.why)
	}
	out.line("", "", "Sign in, to see and answer calls in this terminal.")
	out.line("", "", "")
	const label = "Passphrase: "
	out.list = append(out.list, row{text: label})
	cursor := tea.NewCursor(len(label), len(out.list)-1)
	out.line("", "", "")
	if c.signIn.sent {
		out.line("", "", "One moment...")
	} else if c.said.text != "" {
		out.line(c.said.color, "", c.said.text)
	}
	out.line("", "", "")
	out.line(faint, "", "What you type is not shown. Enter: sign in   Esc: leave")
	return out.list, cursor
}

const helpText = `Tab, Shift-Tab   next, previous answer; Space presses it
a, w             go to Allow once, to Always
d                deny, with a reason
Up Down PgUp PgDn (b, f) Home End   scroll the call
j, k             next and previous call
s                one answer for all identical calls, and back
t, u             in Always: for a shorter time, for fewer calls
e, l, c          in Sessions: elevate, lock down, clear
s, x             in Sandboxes: stop, recreate
d, t, s          in Undo: differences, take back, the whole session
1 2 3 4 5 6      queue, decisions, sessions, grants, sandboxes, undo
Ctrl-L           draw again      q, Ctrl-C   leave

Deny has the focus when a call comes in front, and Enter
never allows. Nothing is answered in the first half second
and while keys keep coming. A call can be allowed once its
end was on the screen.`

func (c *console) helpScreen() []row {
	out := &rows{width: c.width}
	out.line(bold, "", "Toolward: keys")
	for text := range strings.SplitSeq(helpText, "\n") {
		out.line("", "", text)
	}
	out.line("", "", "")
	out.line(faint, "", "Any key: back")
	return out.list
}
