package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

// mostUses is what the gateway takes.
const mostUses = 1_000_000

// savingKey chooses what "always" saves. It begins on "go back".
func (c *console) savingKey(k tea.KeyPressMsg) tea.Cmd {
	f := &c.front
	at := c.queue.index(f.id)
	if at < 0 {
		return nil
	}
	s, proposals := &f.saving, c.queue.calls[at].Request.Proposals
	if s.typing != 0 {
		s.typed(k, proposals[s.choice-1])
		return nil
	}
	switch k.String() {
	case "esc":
		f.mode = choosing
	case "up", "shift+tab", "k":
		s.choose(max(0, s.choice-1))
	case "down", "tab", "j":
		s.choose(min(len(proposals), s.choice+1))
	case "t", "u":
		switch {
		case s.choice == 0:
			c.say("", "Choose first what to save.")
		case !narrows(proposals[s.choice-1]):
			c.say("", "What the allowlist gains has no end and no count: it cannot be kept for less.")
		default:
			s.typing, s.line, s.why = k.String()[0], line{most: 20}, ""
		}
	case "enter":
		if s.choice == 0 {
			f.mode = choosing
			return nil
		}
		c.say("", "Enter never allows: press the space bar.")
	case "space":
		if s.choice == 0 {
			f.mode = choosing
			return nil
		}
		if !c.awake() {
			return nil
		}
		return c.answer(Answer{Decision: toolward.AllowAlways, Proposal: s.choice - 1, Life: s.life, Uses: s.uses})
	}
	return nil
}

// choose moves to a proposal. What was narrowed was another one.
func (s *saving) choose(choice int) {
	if choice != s.choice {
		*s = saving{choice: choice}
	}
}

// narrows reports whether a proposal can be kept for less: it makes a grant, which has an end.
func narrows(p approval.Proposal) bool { return len(p.Match.Entries) == 0 && p.LifeMs > 0 }

// typed takes a key while a time or a number is typed. An empty one is as proposed.
func (s *saving) typed(k tea.KeyPressMsg, p approval.Proposal) {
	switch k.String() {
	case "esc":
		s.typing = 0
	case "enter":
		text := strings.TrimSpace(s.line.text)
		if s.typing == 't' {
			s.why = s.takeLife(text, time.Duration(p.LifeMs)*time.Millisecond)
		} else {
			s.why = s.takeUses(text)
		}
		if s.why == "" {
			s.typing = 0
		}
	default:
		s.line.key(k)
	}
}

func (s *saving) takeLife(text string, most time.Duration) (wrong string) {
	if text == "" {
		s.life = 0
		return ""
	}
	life, err := time.ParseDuration(text)
	if _, number := strconv.Atoi(text); number == nil {
		life, err = 0, fmt.Errorf("no unit")
	}
	if err != nil || life < time.Second || life > most {
		return "Write a time such as 10m or 2h, at most " + display.Duration(most) + "."
	}
	s.life = life
	return ""
}

func (s *saving) takeUses(text string) (wrong string) {
	if text == "" {
		s.uses = 0
		return ""
	}
	uses, err := strconv.ParseInt(text, 10, 64)
	if err != nil || uses < 1 || uses > mostUses {
		return "Write a number of calls, such as 3."
	}
	s.uses = uses
	return ""
}

// less says how much less than the proposal is kept; "" if all of it is.
func (s *saving) less() string {
	var parts []string
	if s.life > 0 {
		parts = append(parts, "for "+display.Duration(s.life))
	}
	switch {
	case s.uses == 1:
		parts = append(parts, "for 1 more call")
	case s.uses > 1:
		parts = append(parts, fmt.Sprintf("for %d more calls", s.uses))
	}
	if parts == nil {
		return ""
	}
	return "only " + strings.Join(parts, ", ")
}

// savingScreen puts the proposals in the place of the call, to the last word.
func (c *console) savingScreen(list []row) ([]row, *tea.Cursor) {
	list = list[:2+c.queueRows()+1]
	at := c.queue.index(c.front.id)
	if at < 0 {
		return list, nil
	}
	out, s := &rows{width: c.width}, &c.front.saving
	mark := func(i int) string {
		if i == s.choice {
			return "> "
		}
		return "  "
	}
	selected := 0
	out.line(bold, "", "Allow this call, and save one of these?")
	out.line("", mark(0), "Nothing: go back")
	for i, p := range c.queue.calls[at].Request.Proposals {
		if i+1 == s.choice {
			selected = len(out.list)
		}
		out.line("", mark(i+1)+proposalMark(i)[2:], display.Line(p.Text))
		if less := s.less(); i+1 == s.choice && less != "" {
			out.line(bold, "       ", less)
		}
	}
	height := c.bodyHeight()
	first := max(0, min(selected, len(out.list)-height))
	shown := out.list[first:min(len(out.list), first+height)]
	list = append(list, shown...)
	for range height - len(shown) {
		list = append(list, row{})
	}
	note := "all of it"
	if len(out.list) > height {
		note = fmt.Sprintf("rows %d to %d of %d", first+1, first+len(shown), len(out.list))
	}
	list = append(list, c.rule(note))
	if s.typing != 0 {
		return c.typingRows(list)
	}
	press := "Space: allow and save what is marked >"
	if less := s.less(); less != "" {
		press += ", " + less
	}
	return append(list, row{text: cut(press, c.width)}, row{text: cut("Up, Down: choose   t: shorter   u: fewer calls   Esc: back", c.width)}), nil
}

// typingRows ask for a time, or for a number of calls.
func (c *console) typingRows(list []row) ([]row, *tea.Cursor) {
	s := &c.front.saving
	label := "For how long (such as 10m): "
	if s.typing == 'u' {
		label = "For how many more calls: "
	}
	shown := tail(s.line.text, c.width-len(label)-2)
	hint := "Enter: take it over; empty: as proposed   Esc: back"
	color := ""
	if s.why != "" {
		hint, color = s.why, yellow
	}
	cursor := tea.NewCursor(len(label)+columns(shown), len(list))
	return append(list, row{text: label + shown}, row{cut(hint, c.width), color}), cursor
}
