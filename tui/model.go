package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// page is one of the screens.
type page int

const (
	pageQueue page = iota
	pageDecisions
	pageSessions
	pageGrants
	pageSandboxes
	pageUndo
	pages
)

// link is how the console stands with the gateway.
type link int

const (
	connecting link = iota
	live
	away      // the gateway does not answer
	signedOut // it does, and knows nobody here
)

// console is the state of the screen. [console.Update] is the only thing that changes it.
type console struct {
	ctx           context.Context
	gateway       Gateway
	again         func() // has the gateway followed anew, at once
	color         bool
	width, height int

	link    link
	wasLive bool
	page    page
	help    bool
	queue   queue
	front   front
	lists   [pages]list
	said    row // the latest thing to tell
	signIn  signIn
	now     time.Time // of the last tick: what counts down is drawn by it
}

// patience bounds one request, so that a gateway that hangs does not look like one that thinks.
type patience = context.Context

const (
	longestRequest = 10 * time.Second
	longestUndo    = 5 * time.Minute // of one that looks through workspaces, or brings many files back
)

// ask runs a request beside the screen.
func (c *console) ask(request func(patience) tea.Msg) tea.Cmd {
	return c.askFor(longestRequest, request)
}

// askLong is ask for what may take its time.
func (c *console) askLong(request func(patience) tea.Msg) tea.Cmd {
	return c.askFor(longestUndo, request)
}

func (c *console) askFor(longest time.Duration, request func(patience) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(c.ctx, longest)
		defer cancel()
		return request(ctx)
	}
}

// say shows a sentence, which may hold words of others.
func (c *console) say(color, text string) { c.said = row{display.Line(text), color} }

// redraw draws all of the screen again if what was on it, or comes, is wide: terminals disagree about how many columns
// some signs take, and a part drawn at the wrong column could join two texts to a third.
func (c *console) redraw(uneven bool) tea.Cmd {
	if !uneven {
		return nil
	}
	return tea.ClearScreen
}

// button is an answer that a person can move to. The zero value denies.
type button int

const (
	buttonDeny button = iota
	buttonOnce
	buttonAlways
	buttons
)

// mode is what the keys mean while a call is in front.
type mode int

const (
	choosing  mode = iota // of the buttons
	reasoning             // typing the reason of a denial
	keeping               // choosing what "always" saves
)

// front is the call that answers are for.
type front struct {
	id     string
	turn   int    // tells this showing from the one before
	stamp  string // of this showing; "" until the gateway has sent it
	wakes  time.Time
	rows   []row
	offset int  // of the first row on the screen
	read   bool // the last row has been on the screen
	focus  button
	mode   mode
	reason line
	saving saving // in mode keeping
	all    bool   // the answer is for the identical calls, too
	twins  []twin // those of them that were shown with this one
	sent   bool   // an answer is on its way
	gone   string // it was decided while its reason was being typed: how
}

// unread is how long a call must have been in front before it is answered, and how long no key may have been pressed
// that would have answered it: whoever was typing something else answers nothing. The gateway checks the first of
// the two by itself, by the stamp.
const unread = 500 * time.Millisecond

// longestReason is what the gateway takes.
const longestReason = 500

// list is a page with one row for each item, and more about the one that is selected.
type list struct {
	items  []item
	at     int // selected
	scroll int // of what is known about it
	asked  time.Time
	known  bool
	sure   bool         // the person is asked whether to take the selected grant back
	change *levelChange // the person is asked whether to change a level so
	ending *ending      // the person is asked whether to end a sandbox so
	taking *takingBack  // the person reads what a call changed, or is asked whether to take something back
	turns  int          // of taking
}

// item is one row of a list. Its texts are safe.
type item struct {
	id    string
	text  string
	color string
	more  []string
}

// signIn is the passphrase prompt.
type signIn struct {
	line line
	why  string // why it is asked for
	sent bool
}

// saving is what "always" is to save.
type saving struct {
	choice int // of the proposals, from 1; 0 saves nothing and goes back

	// Less than the proposal: a person can keep an answer for a shorter time, or for a number of calls.
	life time.Duration // 0: as proposed
	uses int64         // 0: any number

	typing byte // 't' or 'u' while one of the two is typed
	line   line
	why    string // why what was typed is not taken
}

// twin is a call that is identical to the one in front, with the stamp of its own showing: one that comes in later is never
// among those that a person meant.
type twin struct{ id, stamp string }

// ending is what a person is about to do to a sandbox.
type ending struct {
	name   string
	remove bool // else it is stopped
}

// levelChange is what a person is about to do to the level of a session.
type levelChange struct {
	session toolward.SessionKey
	to      toolward.Level // raised to; Normal clears

	known bool // what is cleared is on the screen
	read  bool // to its last row
	now   SessionLevel
}

// takingBack is what a person reads about a call, or is about to take back.
type takingBack struct {
	turn int  // tells this showing from the one before
	only bool // its differences are shown, and nothing is asked

	known   bool // what would be done is on the screen
	read    bool // to its last row
	sent    bool
	call    UndoCall
	request TakeBack
	now     TakenBack
}
