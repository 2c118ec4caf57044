package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/toolward/toolward/approval"
)

// ErrDumbTerminal means that the terminal says it cannot move its cursor.
var ErrDumbTerminal = errors.New("this terminal cannot show a screen (TERM=dumb or not set)")

// Run shows the console on a terminal until the person leaves or ctx ends. It fails with [ErrNoTerminal] or
// [ErrDumbTerminal] where nothing can be shown.
func Run(ctx context.Context, in, out *os.File, gateway Gateway) error {
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return ErrNoTerminal
	}
	if name := os.Getenv("TERM"); name == "" || name == "dumb" {
		return ErrDumbTerminal
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	again := make(chan struct{}, 1)
	c := newConsole(ctx, gateway, os.Getenv("NO_COLOR") == "", func() {
		select {
		case again <- struct{}{}:
		default:
		}
	})
	// Signals are the caller's: it ends ctx.
	program := tea.NewProgram(c, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		follow(ctx, gateway, again, program.Send)
	}()
	_, err := program.Run()
	ended := ctx.Err() != nil
	stop()
	<-followed
	if err != nil && !ended {
		return fmt.Errorf("terminal console: %w", err)
	}
	return nil
}

func newConsole(ctx context.Context, gateway Gateway, color bool, again func()) *console {
	return &console{ctx: ctx, gateway: gateway, color: color, again: again, now: time.Now()}
}

// tickMsg comes while the console is open.
type tickMsg time.Time

const rhythm = 250 * time.Millisecond

func tick() tea.Cmd { return tea.Tick(rhythm, func(t time.Time) tea.Msg { return tickMsg(t) }) }

// Init implements tea.Model.
func (c *console) Init() tea.Cmd { return tick() }

// Update implements tea.Model.
func (c *console) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case tea.WindowSizeMsg:
		return c, c.resize(m.Width, m.Height)
	case tea.KeyPressMsg:
		return c, c.key(m)
	case tea.PasteMsg:
		c.paste(m.Content)
	case tea.ResumeMsg:
		return c, tea.Batch(tea.ClearScreen, c.bring(c.front.id))
	case tickMsg:
		return c, tea.Batch(tick(), c.ticked(time.Time(m)))
	case newsMsg:
		return c, c.news(Event(m))
	case awayMsg:
		c.lost(m.err)
	case signedOutMsg:
		c.askToSignIn(m.err)
	case signedInMsg:
		c.signedIn(m)
	case shownMsg:
		return c, c.shown(m)
	case showAgainMsg:
		if int(m) == c.front.turn {
			return c, c.show()
		}
	case answeredMsg:
		return c, c.answered(m)
	case listedMsg:
		c.listed(m)
	case revokedMsg:
		return c, c.revoked(m)
	case answeredAllMsg:
		return c, c.answeredAll(m)
	case sandboxEndedMsg:
		return c, c.sandboxEnded(m)
	case undoKnownMsg:
		return c, c.undoKnown(m)
	case tookBackMsg:
		return c, c.tookBack(m)
	case levelMsg:
		c.levelKnown(m)
	case levelChangedMsg:
		return c, c.levelChanged(m)
	}
	return c, nil
}

// resize lays everything out anew. What was in front has moved, so it is shown anew.
func (c *console) resize(width, height int) tea.Cmd {
	hidden := c.tooSmall()
	c.width, c.height = width, height
	if hidden && !c.tooSmall() {
		return c.bring(c.front.id)
	}
	if c.front.stamp != "" {
		c.front.wakes = time.Now().Add(unread)
	}
	c.lay()
	return tea.ClearScreen
}

// key acts on a key.
func (c *console) key(k tea.KeyPressMsg) tea.Cmd {
	switch name := k.String(); {
	case name == "ctrl+c":
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case name == "ctrl+l":
		return tea.ClearScreen
	case c.link == signedOut:
		return c.signInKey(k)
	case c.tooSmall():
		return nil
	case c.help:
		return c.closeHelp()
	case c.page == pageQueue && c.front.mode != choosing:
		return c.frontKey(k)
	case c.page != pageQueue && c.lists[c.page].sure:
		return c.sureKey(k)
	case c.page == pageSandboxes && c.lists[c.page].ending != nil:
		return c.endingSureKey(k)
	case c.page == pageUndo && c.lists[c.page].taking != nil:
		return c.undoSureKey(k)
	case c.page == pageSessions && c.lists[c.page].change != nil:
		return c.levelSureKey(k)
	case name == "q":
		return tea.Quit
	case name == "?":
		c.help = true
	case len(name) == 1 && name[0] >= '1' && name[0] < '1'+byte(pages):
		return c.turnTo(page(name[0] - '1'))
	case c.page == pageQueue:
		return c.frontKey(k)
	default:
		return c.listKey(k)
	}
	return nil
}

// closeHelp takes the help away; the call below it comes to the screen anew.
func (c *console) closeHelp() tea.Cmd {
	c.help = false
	return c.bring(c.front.id)
}

// turnTo opens a page.
func (c *console) turnTo(p page) tea.Cmd {
	if p == c.page {
		return nil
	}
	c.page = p
	c.said = row{}
	if p == pageQueue {
		return tea.Batch(tea.ClearScreen, c.bring(c.front.id))
	}
	return tea.Batch(tea.ClearScreen, c.fetch(p))
}

// paste puts a pasted text where something is typed, and nowhere else: it is never taken for keys.
func (c *console) paste(text string) {
	switch {
	case c.link == signedOut:
		c.signIn.line.insert(text)
	case c.page == pageQueue && c.front.mode == reasoning && !c.help:
		c.front.reason.insert(text)
	}
}

// ticked counts down.
func (c *console) ticked(now time.Time) tea.Cmd {
	c.now = now
	at := c.queue.index(c.front.id)
	gone := c.queue.expire(now)
	var cmd tea.Cmd
	if len(gone) > 0 {
		const late = "Nobody answered in time; the call was refused"
		c.say("", late+": "+gone[len(gone)-1].Request.Title)
		cmd = c.settle(at, late)
	}
	if c.page != pageQueue && c.link == live && now.Sub(c.lists[c.page].asked) >= listRhythm {
		cmd = tea.Batch(cmd, c.fetch(c.page))
	}
	return cmd
}

// news takes in what the gateway tells.
func (c *console) news(e Event) tea.Cmd {
	if e.Sync {
		return c.sync(e.Calls)
	}
	var commands []tea.Cmd
	for _, call := range e.Calls {
		switch {
		case !call.valid():
		case call.State == approval.StatePending:
			commands = append(commands, c.arrived(call))
		default:
			commands = append(commands, c.resolved(call))
		}
	}
	c.scroll(0) // a longer queue leaves less room for the call
	return tea.Batch(commands...)
}

// lost notes that the gateway does not answer. What was waiting stays to be read, and cannot be answered.
func (c *console) lost(err error) {
	c.link = away
	c.front.stamp, c.front.sent = "", false
	c.said = row{}
	if err != nil {
		c.say(red, err.Error())
	}
}
