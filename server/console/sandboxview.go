package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox/fleet"

	"github.com/toolward/toolward/server/api"
)

// boxView is one sandbox as a page shows it.
type boxView struct {
	Name        string // raw, for forms and links
	Shown       []span
	Owner       []span
	Shares      string // who shares it
	Href        string
	State, Kind string // in words; running, stopped or gone
	Engine      []span
	Enforces    string
	Created     time.Time
	Image       []span
	ImageNote   string
	Odd         bool // the image is not the configured one
	Network     []span
	Workspace   string
	Path        []span
	Limits      []api.Limit
	Users       string
	Sessions    []sessionRef
	Outdated    bool
	Guessed     bool // limits and the like are what the configuration says
	Figures     api.Figures
}

func newBoxView(v *visitor, one *api.Sandbox, now time.Time) boxView {
	b := boxView{
		Name: one.Name, Shown: oneLine(one.Name), Owner: oneLine("agent " + one.Agent), Href: sandboxLink(v, one.Name), Created: one.Created,
		Shares: api.ShareWords(&one.Info), Engine: oneLine(one.Engine), Enforces: one.Level, Odd: !one.ImageMatch,
		Network: oneLine(api.NetworkWords(one.Network)), Workspace: api.WorkspaceWords(&one.Info), Path: oneLine(one.WorkspaceDir),
		Limits: api.LimitsOf(&one.Limits), Outdated: one.Outdated, Guessed: one.ByConfiguration, Figures: api.FiguresOf(one, now),
	}
	if one.Agent == "" {
		b.Owner = oneLine("all agents")
	}
	b.State, b.Kind = api.StateWords(&one.Info)
	image, note := api.ImageText(&one.Info)
	b.Image, b.ImageNote = oneLine(image), note
	for _, key := range one.Sessions[:min(len(one.Sessions), 8)] {
		b.Sessions = append(b.Sessions, sessionRef{oneLine(key), v.base + "/sessions/one?" + url.Values{"session": {key}}.Encode()})
	}
	switch {
	case one.Users == 0:
		b.Users = "nobody now"
	case len(one.Sessions) > len(b.Sessions):
		b.Users = fmt.Sprintf("%s, of %d sessions:", counted(one.Users, "call"), len(one.Sessions))
	default:
		b.Users = counted(one.Users, "call") + " of"
	}
	return b
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func sandboxLink(v *visitor, name string) string {
	return v.base + "/sandboxes/one?" + url.Values{"name": {name}}.Encode()
}

// seenOf names a sandbox as it is now: one that was made anew under the same name is another one. It stops a page that
// somebody left open from ending what it never showed.
func seenOf(i *fleet.Info) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", i.Engine, i.EngineID, i.Created.UnixMilli()))
	return hex.EncodeToString(sum[:8])
}

// callView is a call in a sandbox as a page shows it.
type callView struct {
	Kind                           string
	Tool, About, How, End, Session []span
	Time                           time.Time
	Clock, Seq, Href               string
}

// callsPart and lifePart are parts of a page that the event stream replaces.
type callsPart struct{ Calls []callView }

type lifePart struct{ Events []eventView }

type eventView struct {
	Words            string
	Why, Session     []span
	Odd              bool
	Time             time.Time
	Clock, Seq, Href string
}

func newCallsPart(v *visitor, commands []desk.SandboxCommand) (part callsPart) {
	for i := range commands {
		c := &commands[i]
		seq := strconv.FormatInt(c.Seq, 10)
		part.Calls = append(part.Calls, callView{
			Kind: c.Verdict, Tool: oneLine(c.Tool), About: oneLine(c.About), How: oneLine(c.How), End: oneLine(c.EndedWords()), Session: oneLine(c.Session),
			Time: c.At, Clock: clockOf(c.At), Seq: seq, Href: v.base + "/record/" + seq,
		})
	}
	return part
}

var eventWords = map[fleet.EventKind]string{
	fleet.EventCreated: "made", fleet.EventStarted: "started", fleet.EventRecreated: "made anew",
	fleet.EventKept: "kept, although it is not what the configuration says", fleet.EventStopped: "stopped", fleet.EventRemoved: "removed",
	fleet.EventEnded: "ended", fleet.EventAdopted: "taken over from an earlier run", fleet.EventFailed: "could not be made",
	fleet.EventLeft: "left running by a gateway that ended", fleet.EventFound: "found again by the next gateway",
	fleet.EventProtected: "protected paths were made inside:", fleet.EventListening: "a program listens:",
	desk.EventForwarded: "opened to this machine:", desk.EventForwardEnded: "no longer open to this machine:",
}

func newLifePart(v *visitor, events []desk.SandboxEvent) (part lifePart) {
	for _, e := range events {
		seq := strconv.FormatInt(e.Seq, 10)
		words, known := eventWords[e.Event]
		if !known {
			words = strings.ToLower(string(e.Event))
		}
		part.Events = append(part.Events, eventView{
			Words: words, Why: oneLine(desk.Shortened(e.About())), Session: oneLine(e.Session),
			Odd:  e.Event == fleet.EventEnded || e.Event == fleet.EventFailed || e.Event == fleet.EventProtected,
			Time: e.At, Clock: clockOf(e.At), Seq: seq, Href: v.base + "/record/" + seq,
		})
	}
	return part
}

// clockOf is a time of a list that is read to the second.
func clockOf(t time.Time) string {
	if sameDay(t, time.Now()) {
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("2 Jan 15:04")
}
