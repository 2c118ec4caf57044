package console

import (
	"time"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/console/difference"
)

// page is what every page's frame shows.
type page struct {
	Title   string
	Script  string // ES module under /web/, if any
	Style   string // further style sheet under /web/, if any
	Base    string // path of the signed-in person's console, "" outside
	Nav     []navItem
	Waiting int
	Live    bool
	Observe bool     // the gateway only observes
	Trouble []string // what people must know of the gateway itself
	Notices []notice
}

type navItem struct {
	Name, Path string
	Here       bool
	Count      bool
}

// notice is one message above a page's content. Kind is "", "warn" or "crit".
type notice struct{ Kind, Text string }

// card is one call as a person sees it.
type card struct {
	Base         string
	ID           string
	Severity     string
	SeverityName string
	Agent        []span
	AgentNote    []span
	Level        string
	LevelName    string
	Title        string
	TitleObject  []span
	Created      time.Time
	Expires      time.Time
	Seconds      int    // from creation to deadline
	Left         int    // from now to deadline
	Says         *block // the description of whoever asks
	Blocks       []block
	Outline      []outlineItem // what the command would do
	Targets      []named
	Reasons      []reason
	Params       []namedSpans
	Facts        []named
	Digest       string // first 12 characters
	Seen         string // signed time of rendering
	Always       []offer
	Narrows      bool   // one of them can be kept for less than it says
	NoAlways     string // why "always" is not offered
	Answerable   bool
	Cut          bool // not all arguments are shown
	First        bool
	Rank         int    // 0 for critical calls, larger for calmer ones
	Session      string // raw, to tell sessions apart
	SessionName  []span
	Same         string       // identical calls have the same one; "" if that cannot be told
	Batch        []desk.Shown // this and the identical calls below it; nil if it is the only one
	Leads        bool         // the first one of its session, where sessions stand apart
	Arranged     string       // order of the page
	Said         []span       // what became of it
	Outcome      string       // allowed, denied or ""
}

type block struct {
	Name  string // for those who do not see the caption beside it
	Label string
	Where []span
	Text  []span
	Diff  *difference.View
	Size  string
	Cut   bool // not all of the call is shown
}

type named struct {
	Name  string
	Value []span
}

type namedSpans struct{ Name, Value []span }

type reason struct {
	Text    []span
	Rule    []span
	Finding bool
}

type offer struct {
	Key     string
	Words   []span
	Narrows bool // it can be kept for a shorter time, or for a number of calls
}

// entry is one line of recent decisions.
type entry struct {
	ID     string
	Kind   string // allow or deny
	Agent  []span
	Tool   []span
	What   []span
	How    []span
	Time   time.Time
	Clock  string
	Digest string // first 12 characters; "" if the call had none
	Href   string // its record
}
