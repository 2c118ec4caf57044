package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

// listRhythm is how often an open list is fetched anew.
const listRhythm = 3 * time.Second

// listedMsg is the content of a list.
type listedMsg struct {
	page  page
	items []item
	err   error
}

// fetch asks for a list.
func (c *console) fetch(p page) tea.Cmd {
	c.lists[p].asked = time.Now()
	if c.link != live {
		return nil
	}
	return c.ask(func(ctx patience) tea.Msg {
		m := listedMsg{page: p}
		switch p {
		case pageDecisions:
			var list []Decision
			list, m.err = c.gateway.Decisions(ctx)
			m.items = itemsOf(list, decisionItem)
		case pageSessions:
			var list []Session
			list, m.err = c.gateway.Sessions(ctx)
			m.items = itemsOf(list, sessionItem)
		case pageGrants:
			var list []*approval.Grant
			list, m.err = c.gateway.Grants(ctx)
			m.items = itemsOf(list, grantItem)
		case pageSandboxes:
			var list []Sandbox
			list, m.err = c.gateway.Sandboxes(ctx)
			m.items = itemsOf(list, sandboxItem)
		case pageUndo:
			var list []UndoCall
			list, m.err = c.gateway.UndoCalls(ctx)
			m.items = itemsOf(list, undoItem)
		}
		return m
	})
}

func itemsOf[T any](list []T, one func(T) item) []item {
	out := make([]item, 0, len(list))
	for _, v := range list {
		out = append(out, one(v))
	}
	return out
}

func (c *console) listed(m listedMsg) {
	if m.err != nil {
		c.say(red, "This list is not up to date: "+m.err.Error())
		return
	}
	l := &c.lists[m.page]
	before := l.selected()
	l.items, l.known = m.items, true
	at := slices.IndexFunc(l.items, func(i item) bool { return i.id == before })
	if at < 0 { // what was selected is gone: nothing is done to what has taken its place
		l.sure, l.change, l.ending, l.taking, l.scroll = false, nil, nil, nil, 0
		at = min(l.at, len(l.items)-1)
	}
	l.at = max(0, at)
}

// selected is the id of the selected item, or "".
func (l *list) selected() string {
	if l.at >= len(l.items) {
		return ""
	}
	return l.items[l.at].id
}

func (c *console) listKey(k tea.KeyPressMsg) tea.Cmd {
	l := &c.lists[c.page]
	move := func(by int) {
		l.at, l.scroll = max(0, min(l.at+by, len(l.items)-1)), 0
	}
	if name := k.String(); c.page == pageUndo && (name == "d" || name == "t" || name == "s") {
		return tea.Batch(c.undoKey(name), tea.ClearScreen)
	}
	switch k.String() {
	case "esc":
		return c.turnTo(pageQueue)
	case "up", "k":
		move(-1)
	case "down", "j":
		move(1)
	case "home":
		move(-len(l.items))
	case "end":
		move(len(l.items))
	case "pgup", "b":
		l.scroll = max(0, l.scroll-3)
	case "pgdown", "f":
		l.scroll += 3 // drawing keeps it inside
	case "s", "x":
		if c.page == pageSandboxes {
			c.sandboxKey(k.String())
			return tea.ClearScreen
		}
		if k.String() == "x" && c.page == pageGrants && l.selected() != "" && c.link == live {
			l.sure = true
		}
	case "e", "l", "c":
		if c.page == pageSessions {
			return tea.Batch(c.levelKey(k.String()), tea.ClearScreen)
		}
	}
	return tea.ClearScreen
}

// sureKey takes the answer to whether a grant is taken back.
func (c *console) sureKey(k tea.KeyPressMsg) tea.Cmd {
	l := &c.lists[c.page]
	l.sure = false
	id := l.selected()
	if k.String() != "y" || id == "" {
		return nil
	}
	return c.ask(func(ctx patience) tea.Msg { return revokedMsg{id, c.gateway.Revoke(ctx, id)} })
}

// revokedMsg says whether a grant was taken back.
type revokedMsg struct {
	id  string
	err error
}

func (c *console) revoked(m revokedMsg) tea.Cmd {
	if m.err != nil {
		c.say(red, "Not revoked: "+m.err.Error())
	} else {
		c.say(green, "Revoked.")
	}
	return c.fetch(pageGrants)
}

func clock(t time.Time) string {
	switch {
	case t.IsZero():
		return "never"
	case time.Since(t) < 20*time.Hour:
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("2 Jan 15:04")
}

func decisionItem(d Decision) item {
	color, word := red, "no"
	if d.Allowed {
		color, word = green, "ok"
	}
	how, about := display.Line(d.How), display.Line(d.About)
	more := []string{how, display.Line(d.Tool) + "  " + about, "agent " + display.Line(d.Agent) + ", session " + display.Line(d.Session)}
	if d.Undo != "" {
		more = append(more, "what it changed: "+display.Line(d.Undo)+" on page 6")
	}
	if d.Level != "" && d.Level != toolward.Normal.String() {
		more = append(more, "level "+display.Line(d.Level))
	}
	return item{
		id: strconv.FormatInt(d.Seq, 10), color: color, more: append(more, fmt.Sprintf("record %d, %s", d.Seq, d.At.Local().Format(time.DateTime))),
		text: pad(clock(d.At), 12) + pad(word, 4) + pad(how, 30) + " " + pad(display.Line(d.Agent), 9) + " " + pad(display.Line(d.Tool), 6) + " " + about,
	}
}

func sessionItem(s Session) item {
	color := ""
	switch s.Level {
	case toolward.Normal:
	case toolward.Elevated:
		color = yellow
	default:
		color = red
	}
	signals := "no signals"
	if len(s.Signals) > 0 {
		signals = display.Line(strings.Join(s.Signals, ", "))
	}
	key := display.Line(string(s.Key))
	more := []string{key, "Level " + s.Level.String() + ": " + signals}
	for _, reason := range s.Reasons {
		more = append(more, "- "+display.Line(reason))
	}
	if s.Floor != "" {
		more = append(more, "Floor: "+display.Line(s.Floor))
	}
	if s.LastCall != "" {
		more = append(more, "Last call: "+display.Line(s.LastCall)+", "+clock(s.LastAt))
	}
	if s.Anomalies > 0 {
		more = append(more, fmt.Sprintf("Anomalies within a day: %d (toolward audit query --type anomaly)", s.Anomalies))
	}
	return item{id: string(s.Key), color: color, more: more, text: pad(s.Level.String(), 10) + pad(key, 34) + " " + signals}
}

func grantItem(g *approval.Grant) item {
	used := "never used"
	if g.Uses > 0 {
		used = fmt.Sprintf("used %d ×, last %s", g.Uses, clock(time.UnixMilli(g.LastUsedMs)))
	}
	ends := "ends " + time.UnixMilli(g.ExpiresMs).Local().Format(time.DateTime)
	if g.MaxUses > 0 {
		ends += fmt.Sprintf(", or after %d more uses", g.MaxUses-g.Uses)
	}
	text := display.Line(g.Text)
	return item{
		id: g.ID, text: pad(display.Line(g.Agent), 12) + " " + text,
		more: []string{
			text, used, "made " + clock(time.UnixMilli(g.CreatedMs)) + " by " + display.Line(g.CreatedBy),
			ends, "id " + display.Line(g.ID),
		},
	}
}
