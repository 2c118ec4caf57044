package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward/sandbox/fleet"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// sandboxRhythm is how often an open page is told what sandboxes use. Nobody looks while none is open.
const sandboxRhythm = 2 * time.Second

// sharedLook is one look at the sandboxes for all pages that are open.
type sharedLook struct {
	mu    sync.Mutex
	at    time.Time
	infos []fleet.Info
	done  chan struct{} // closed when the look that is under way has ended; nil if none is
}

// lookTogether is look, but a list that is not older than a moment is good enough.
func (s *Server) lookTogether(ctx context.Context) []fleet.Info {
	l := &s.shared
	l.mu.Lock()
	if time.Since(l.at) >= sandboxRhythm/2 && l.done == nil {
		l.done = make(chan struct{})
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), api.SandboxPatience)
			defer cancel()
			infos, err := s.sandboxes.List(ctx)
			if err != nil {
				s.log.Debug("sandboxes were not all found", "err", err) // the page says so when it is loaded
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.infos, l.at = infos, time.Now()
			close(l.done)
			l.done = nil
		}()
	}
	done := l.done
	l.mu.Unlock()
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.infos)
}

// followSandboxes is GET /c/{key}/sandboxes/events: what sandboxes use, while a page is open; with name= of one, and its
// latest calls.
func (s *Server) followSandboxes(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if s.sandboxes == nil {
		return api.NoSandboxes()
	}
	if !s.streams.Enter() {
		return door.NewProblem(http.StatusServiceUnavailable, "close some of them", "%d event streams are open already", door.MaxStreams)
	}
	defer s.streams.Leave()
	ctx, cancel := s.streams.EndedBy(r)
	defer cancel()
	tail := s.audit.Tail()
	defer func() { tail.Close() }()
	out, err := door.OpenStream(w, door.WritePatience)
	if err != nil {
		return nil // the browser has gone
	}
	f := &sandboxFollower{server: s, visitor: v, out: out, name: r.URL.Query().Get("name"), news: true, parts: map[string]string{}}
	err = f.tell(ctx)
	looks, beats := time.NewTicker(sandboxRhythm), time.NewTicker(door.Heartbeat)
	defer looks.Stop()
	defer beats.Stop()
	for err == nil && ctx.Err() == nil {
		select {
		case record, open := <-tail.C:
			if !open {
				f.news = true
				tail = s.followAgain(ctx, tail)
				continue
			}
			f.news = f.news || record.Type == audit.TypeDecision || record.Type == audit.TypeOutcome || record.Type == audit.TypeSandbox
		case <-looks.C:
			// The sign-in may have ended while the page was open.
			if v.by.May(identity.RightWatch) != nil {
				_ = out.Send("reload", struct{}{})
				return nil
			}
			err = f.tell(ctx)
		case <-beats.C:
			err = out.Beat()
		case <-ctx.Done():
		}
	}
	return nil
}

// sandboxFollower is one open page of sandboxes.
type sandboxFollower struct {
	server  *Server
	visitor *visitor
	out     *door.EventStream
	name    string            // of the one that the page is about; "" for all
	news    bool              // something was recorded that may concern it
	shape   string            // of what the page shows, without its figures
	sent    bool              // there is a shape
	parts   map[string]string // by name, as they were sent last
}

// tell sends what has changed: figures alone, or what is around them.
func (f *sandboxFollower) tell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, api.SandboxPatience)
	defer cancel()
	infos := f.server.lookTogether(ctx)
	if f.name != "" {
		infos = slices.DeleteFunc(infos, func(i fleet.Info) bool { return i.Name != f.name })
	}
	list := make([]api.Sandbox, len(infos))
	for i := range infos {
		list[i].Info = infos[i]
	}
	api.SortSandboxes(list)
	infos = infos[:0]
	for i := range list[:min(len(list), sandboxesShown)] {
		infos = append(infos, list[i].Info)
	}
	shown := f.server.api.WithUsage(ctx, infos)
	boxes, _ := boxViews(f.visitor, shown)
	if err := f.tellShape(boxes); err != nil {
		return err
	}
	numbers := map[string]api.Figures{}
	for _, b := range boxes {
		numbers[b.Name] = b.Figures
	}
	if err := f.out.Send("figures", numbers); err != nil {
		return err
	}
	if f.name == "" {
		return f.tellPart("engines", "engines", f.server.newEnginesPart())
	}
	if !f.news || len(infos) == 0 {
		return nil
	}
	f.news = false
	commands, events, _ := f.server.api.SandboxHistory(ctx, &infos[0])
	if err := f.tellPart("calls", "boxcalls", newCallsPart(f.visitor, commands)); err != nil {
		return err
	}
	return f.tellPart("life", "boxlife", newLifePart(f.visitor, events))
}

// tellShape replaces the boxes of the page if anything but a figure has changed.
func (f *sandboxFollower) tellShape(boxes []boxView) error {
	still := slices.Clone(boxes)
	for i := range still {
		still[i].Figures = api.Figures{}
	}
	part := boxesPart{still, f.name != ""}
	shape, err := renderPart("boxes", part)
	if err != nil || f.sent && shape == f.shape {
		return err
	}
	f.shape, f.sent, part.Boxes = shape, true, boxes
	html, err := renderPart("boxes", part)
	if err != nil {
		return err
	}
	return f.out.Send("boxes", cardEvent{html})
}

// tellPart replaces a part of the page if it is another one by now.
func (f *sandboxFollower) tellPart(event, template string, data any) error {
	html, err := renderPart(template, data)
	if err != nil || html == f.parts[event] {
		return err
	}
	f.parts[event] = html
	return f.out.Send(event, cardEvent{html})
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

func newCallsPart(v *visitor, commands []api.SandboxCommand) (part callsPart) {
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
	fleet.EventProtected: "protected paths were made inside:",
}

func newLifePart(v *visitor, events []api.SandboxEvent) (part lifePart) {
	for _, e := range events {
		seq := strconv.FormatInt(e.Seq, 10)
		words, known := eventWords[e.Event]
		if !known {
			words = strings.ToLower(string(e.Event))
		}
		part.Events = append(part.Events, eventView{
			Words: words, Why: oneLine(api.Shortened(strings.TrimSpace(strings.Join(e.Paths, ", ") + " " + e.Why))), Session: oneLine(e.Session),
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
