package console

import (
	"context"
	"net/http"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// logRhythm is how often the log beside the queue is brought up to date at most. An agent that reads a hundred
// files a second must not make the page flicker, nor the daemon render what nobody can follow.
const logRhythm = 300 * time.Millisecond

// syncRhythm is how soon everything that waits is listed anew after events were lost.
const syncRhythm = 500 * time.Millisecond

// configRhythm is how often an open console looks for a changed configuration.
const configRhythm = 2 * time.Second

// follow is GET /c/{key}/events: the console's live updates. While it is open its person counts as an approver.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if !s.streams.Enter() {
		return door.NewProblem(http.StatusServiceUnavailable, "close some of them", "%d consoles are open already", door.MaxStreams)
	}
	defer s.streams.Leave()
	ctx, cancel := s.streams.EndedBy(r)
	defer cancel()
	news, err := s.approvals.Subscribe(v.by, door.EventBuffer)
	if err != nil {
		return err
	}
	defer news.Close()
	presence, err := s.approvals.Attach(approval.Approver{Name: "console", By: v.by, Connection: v.connection()})
	if err != nil {
		return err
	}
	defer presence.Close()
	tail, err := s.desk.FollowRecords(v.atDesk())
	if err != nil {
		return api.Problem(err)
	}
	defer func() { tail.Close() }()

	out, err := door.OpenStream(w, door.WritePatience)
	if err != nil {
		return nil // the browser has gone; there is nobody to tell
	}
	f := &follower{server: s, visitor: v, out: out, request: r, arranged: arrangementOf(r.URL.Query())}
	err = f.sync()
	beats, looks := time.NewTicker(door.Heartbeat), time.NewTicker(configRhythm)
	defer beats.Stop()
	defer looks.Stop()
	for err == nil && ctx.Err() == nil {
		select {
		case event, open := <-news.C:
			if !open {
				_ = out.Send("reload", struct{}{}) // signed out, or the daemon ends
				return nil
			}
			err = f.tell(event)
		case record, open := <-tail.C:
			if !open {
				tail, err = s.followAgain(ctx, v, tail)
				continue
			}
			f.remember(record)
		case <-f.due:
			err = f.flushLog()
		case <-f.again:
			err = f.sync()
		case <-looks.C:
			err = f.lookAtConfig()
		case <-beats.C:
			err = out.Beat()
		case <-ctx.Done():
		}
	}
	if err != nil {
		s.log.Debug("a console's stream ended", "err", err) // most often the browser has gone
	}
	return nil
}

// followAgain replaces a tail that ended because more happened than anybody can read. With an error it is the old one.
func (s *Server) followAgain(ctx context.Context, v *visitor, old *audit.Tail) (*audit.Tail, error) {
	old.Close()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	tail, err := s.desk.FollowRecords(v.atDesk())
	if err != nil {
		return old, err
	}
	return tail, nil
}

// follower is one open console page.
type follower struct {
	server   *Server
	visitor  *visitor
	out      *door.EventStream
	request  *http.Request
	arranged arrangement
	config   string           // revision of the waiting configuration that the page shows
	latest   []audit.Record   // decisions that the page does not show yet, oldest first
	due      <-chan time.Time // when to show them; nil while there are none
	again    <-chan time.Time // when to list everything anew; nil if the page knows all
}

type syncEvent struct {
	Now int64    `json:"now"`
	IDs []string `json:"ids"`
}

type cardEvent struct {
	HTML string `json:"html"`
}

type goneEvent struct {
	ID      string `json:"id"`
	Said    string `json:"said"`
	Outcome string `json:"outcome"`
}

type countEvent struct {
	Waiting  int    `json:"waiting"`
	Headline string `json:"headline"`
	Subline  string `json:"subline"`
}

// sync tells the page everything that waits now: after connecting, and after events were lost.
func (f *follower) sync() error {
	f.again = nil
	list, err := f.server.api.Waiting(f.request, f.visitor.atDesk())
	if err != nil {
		return err
	}
	event := syncEvent{Now: time.Now().UnixMilli(), IDs: []string{}}
	for _, r := range list {
		event.IDs = append(event.IDs, r.ID)
	}
	if err := f.out.Send("sync", event); err != nil {
		return err
	}
	f.arranged.sort(list)
	for _, r := range list[:min(len(list), maxCards)] {
		if err := f.card(r); err != nil {
			return err
		}
	}
	return f.count()
}

func (f *follower) tell(event approval.Event) error {
	if event.Missed {
		f.syncSoon()
	}
	r := event.Approval
	if event.Type == approval.EventResolved {
		if err := f.out.Send("gone", goneEvent{r.ID, api.Said(&r), outcomeOf(&r)}); err != nil {
			return err
		}
		if f.server.approvals.Count() >= maxCards {
			f.syncSoon() // one that did not fit on the page may move up
		}
		return f.count()
	}
	switch {
	case f.server.approvals.Count() <= maxCards:
		if err := f.card(&r); err != nil {
			return err
		}
	case f.arranged.Risk:
		f.syncSoon() // it may come before those that are on the page
	}
	return f.count()
}

// syncSoon lists everything anew in a moment. In a flood of calls that is once for many of them: listing is the one
// thing here that costs more the more is waiting.
func (f *follower) syncSoon() {
	if f.again == nil {
		f.again = time.After(syncRhythm)
	}
}

// card sends a card, stamped with the moment at which it is sent.
func (f *follower) card(r *approval.Record) error {
	c := newCard(f.visitor.base, r, time.Now())
	c.Seen, c.Arranged = f.server.approvals.MarkShown(r, f.visitor.by), f.arranged.Query()
	html, err := renderPart("card", c)
	if err != nil {
		return err
	}
	return f.out.Send("card", cardEvent{html})
}

func (f *follower) count() error {
	n := f.server.approvals.Count()
	head, sub := headline(n)
	return f.out.Send("count", countEvent{n, head, sub})
}

// lookAtConfig shows, replaces or removes the card of a changed configuration.
func (f *follower) lookAtConfig() error {
	card := f.server.configCard(f.visitor)
	revision := ""
	if card != nil {
		revision = card.Revision
	}
	if revision == f.config {
		return nil
	}
	f.config = revision
	html := ""
	if card != nil {
		var err error
		if html, err = renderPart("configcard", configPart{f.visitor.base, card}); err != nil {
			return err
		}
	}
	return f.out.Send("config", cardEvent{html})
}

// configPart is what the template of the card needs of a page.
type configPart struct {
	Base   string
	Config *configCard
}

// remember keeps the newest decisions for the next showing.
func (f *follower) remember(r audit.Record) {
	if r.Type != audit.TypeDecision {
		return
	}
	if len(f.latest) == logLength {
		f.latest = append(f.latest[:0], f.latest[1:]...)
	}
	f.latest = append(f.latest, r)
	if f.due == nil {
		f.due = time.After(logRhythm)
	}
}

func (f *follower) flushLog() error {
	f.due = nil
	for i := range f.latest {
		html, err := renderPart("entry", newEntry(f.visitor.base, &f.latest[i]))
		if err != nil {
			return err
		}
		if err := f.out.Send("entry", cardEvent{html}); err != nil {
			return err
		}
	}
	f.latest = f.latest[:0]
	return nil
}
