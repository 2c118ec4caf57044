package tui

import (
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// levelKey begins to change the level of the selected session.
func (c *console) levelKey(name string) tea.Cmd {
	l := &c.lists[pageSessions]
	key := toolward.SessionKey(l.selected())
	if key == "" || c.link != live {
		return nil
	}
	l.scroll = 0
	switch name {
	case "e":
		l.change = &levelChange{session: key, to: toolward.Elevated, known: true}
	case "l":
		l.change = &levelChange{session: key, to: toolward.Lockdown, known: true}
	case "c":
		l.change = &levelChange{session: key, to: toolward.Normal}
		return c.ask(func(ctx patience) tea.Msg {
			level, err := c.gateway.Level(ctx, key)
			return levelMsg{key, level, err}
		})
	}
	return nil
}

// levelMsg is what would be cleared.
type levelMsg struct {
	session toolward.SessionKey
	level   SessionLevel
	err     error
}

func (c *console) levelKnown(m levelMsg) {
	l := &c.lists[pageSessions]
	switch {
	case l.change == nil || l.change.session != m.session || l.change.to != toolward.Normal:
	case m.err != nil:
		l.change = nil
		c.say(red, "The level is not known: "+m.err.Error())
	default:
		l.change.now, l.change.known, l.change.read = m.level, true, false
	}
}

// levelSureKey takes the answer to whether a level is changed. Any other key is a no.
func (c *console) levelSureKey(k tea.KeyPressMsg) tea.Cmd {
	l := &c.lists[pageSessions]
	change := l.change
	switch name := k.String(); {
	case c.link != live: // nobody would hear it, and later it may not be meant any more
	case name == "pgup", name == "b":
		l.scroll = max(0, l.scroll-3)
		return tea.ClearScreen
	case name == "pgdown", name == "f":
		l.scroll += 3 // drawing keeps it inside
		return tea.ClearScreen
	case name == "s" && change.sources() && !change.read:
		c.say(yellow, "Not all sources have been on the screen: go on with PgDn.")
		return nil
	case name == "s" && change.sources(), name == "y" && change.known:
		l.change = nil
		return c.changeLevel(change, name == "s")
	}
	l.change = nil
	return tea.ClearScreen
}

// sources reports whether content from outside can be cleared.
func (l *levelChange) sources() bool {
	return l.known && l.to == toolward.Normal && (len(l.now.Sources) > 0 || l.now.SourcesCut)
}

// changeLevel does it; forget also clears the mark of content from outside.
func (c *console) changeLevel(change *levelChange, forget bool) tea.Cmd {
	return c.ask(func(ctx patience) tea.Msg {
		if change.to != toolward.Normal {
			return levelChangedMsg{change, c.gateway.SetLevel(ctx, change.session, change.to)}
		}
		stamp := ""
		if forget {
			if stamp = change.now.Stamp; stamp == "" {
				return levelChangedMsg{change, errors.New("the gateway did not say which sources these are")}
			}
		}
		return levelChangedMsg{change, c.gateway.ClearLevel(ctx, change.session, stamp)}
	})
}

// levelChangedMsg says whether a level was changed.
type levelChangedMsg struct {
	change *levelChange
	err    error
}

func (c *console) levelChanged(m levelChangedMsg) tea.Cmd {
	switch {
	case m.err != nil:
		c.say(red, "Not changed: "+m.err.Error())
	case m.change.to == toolward.Normal:
		c.say(green, "Cleared: "+string(m.change.session))
	default:
		c.say(green, "At least "+m.change.to.String()+" until somebody clears it: "+string(m.change.session))
	}
	return c.fetch(pageSessions)
}

// rows are what a person reads before they say yes.
func (l *levelChange) rows(out *rows) {
	key := display.Line(string(l.session))
	if l.to != toolward.Normal {
		out.line(bold, "", "Keep "+key+" at least at level "+l.to.String()+", until somebody clears it?")
		if l.to == toolward.Lockdown {
			out.line("", "", "Nothing runs there without a person's answer then, whatever was allowed for always.")
		}
		return
	}
	if !l.known {
		out.line("", "", "One moment...")
		return
	}
	out.line(bold, "", "Clear the level of "+key+"? It is "+l.now.Level.String()+".")
	for _, reason := range l.now.Reasons {
		out.line("", "- ", display.Line(reason))
	}
	if l.now.Floor != "" {
		out.line("", "", "Floor: "+display.Line(l.now.Floor))
	}
	if l.now.Suspicious {
		out.line("", "", "Suspicion: content from outside looked like instructions.")
	}
	if l.sources() {
		out.line("", "", fmt.Sprintf("It has seen content from outside, %d known:", len(l.now.Sources)))
		for _, source := range l.now.Sources {
			out.line("", "  ", display.Line(source))
		}
		if l.now.SourcesCut {
			out.line(yellow, "  ", "and from earlier sources, which are not kept: a new session is safer than to forget them")
		}
	}
}

// hint says which keys count.
func (l *levelChange) hint() string {
	switch {
	case !l.known:
		return "Any key: no"
	case l.to != toolward.Normal:
		return "y: yes   any other key: no"
	case l.sources():
		return "y: floor and suspicion   s: also forget these sources   any other key: no"
	}
	return "y: clear floor and suspicion   any other key: no"
}
