package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox/fleet"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

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
	tail, err := s.desk.FollowRecords(v.atDesk())
	if err != nil {
		return api.Problem(err)
	}
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
				tail, err = s.followAgain(ctx, v, tail)
				continue
			}
			f.news = f.news || record.Type == audit.TypeDecision || record.Type == audit.TypeOutcome || record.Type == audit.TypeSandbox
		case <-looks.C:
			// The sign-in may have ended while the page was open.
			if v.atDesk().May(desk.SeeSandboxes) != nil {
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
	infos := f.server.shared.get(ctx, f.server.sandboxes, f.server.log)
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
	if len(infos) == 0 {
		return nil
	}
	if err := f.tellPorts(ctx, infos[0]); err != nil || !f.news {
		return err
	}
	f.news = false
	commands, events, _, err := f.server.desk.SandboxHistory(ctx, f.visitor.atDesk(), &infos[0])
	if err != nil {
		return err
	}
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
