package console

import (
	"sync"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/server/api"
)

// presenceLife is how long somebody counts as there after a page was loaded. It is for browsers without script, which
// have no event stream, and for phones that drop theirs when the screen goes dark.
const presenceLife = 2 * time.Minute

// presences are the people who loaded a page a moment ago, by sign-in.
type presences struct {
	mu   sync.Mutex
	seen map[string]*pageLoad
}

// pageLoad keeps somebody present for a while.
type pageLoad struct {
	presence *approval.Presence
	timer    *time.Timer
}

// note says that a person has just loaded a page.
func (p *presences) note(approvals *approval.Manager, v *visitor) error {
	id := v.by.SignIn()
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.seen[id]; known != nil && known.timer.Reset(presenceLife) {
		known.presence.Active()
		return nil
	}
	presence, err := approvals.Attach(approval.Approver{Name: "console", By: v.by, Connection: v.connection()})
	if err != nil {
		return api.AnswerProblem(err)
	}
	if p.seen == nil {
		p.seen = map[string]*pageLoad{}
	}
	fresh := &pageLoad{presence: presence}
	fresh.timer = time.AfterFunc(presenceLife, func() {
		presence.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.seen[id] == fresh {
			delete(p.seen, id)
		}
	})
	p.seen[id] = fresh
	return nil
}
