package console

import (
	"sync"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/server/api"
)

// glimpseLife is how long somebody counts as there after a page was loaded. It is for browsers without script, which
// have no event stream, and for phones that drop theirs when the screen goes dark.
const glimpseLife = 2 * time.Minute

// glimpses are the people who looked at a page a moment ago, by sign-in.
type glimpses struct {
	mu   sync.Mutex
	seen map[string]*glimpse
}

type glimpse struct {
	presence *approval.Presence
	timer    *time.Timer
}

// looked notes that a person has just loaded a page.
func (s *Server) looked(v *visitor) error {
	g, id := &s.glimpses, v.by.Session()
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.seen[id]; known != nil && known.timer.Reset(glimpseLife) {
		known.presence.Active()
		return nil
	}
	presence, err := s.approvals.Attach(approval.Approver{Name: "console", By: v.by, Connection: v.connection()})
	if err != nil {
		return api.AnswerProblem(err)
	}
	if g.seen == nil {
		g.seen = map[string]*glimpse{}
	}
	fresh := &glimpse{presence: presence}
	fresh.timer = time.AfterFunc(glimpseLife, func() {
		presence.Close()
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.seen[id] == fresh {
			delete(g.seen, id)
		}
	})
	g.seen[id] = fresh
	return nil
}
