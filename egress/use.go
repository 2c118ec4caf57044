package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/sandbox/fleet"
)

// users are the sessions that have used a sandbox since it was started. One that has let go of it still counts: what it
// started may run on. Otherwise a session in lockdown could leave a program behind that connects when a calm one is at work.
type users struct {
	list     []*user
	commands []*Use // that run now, in the order in which they began
	begun    uint64 // how many have
}

// user is one session.
type user struct {
	call  toolward.Call // whose run and caller it is; the latest
	holds int           // calls of it that use the sandbox now
	life  any           // of the sandbox, when it was used last; nil: it was not started yet
	used  time.Time
	// former: it has used the sandbox under an earlier gateway, and what it has left there may run on. It counts until it is
	// calm and an hour has passed, or the sandbox has ended.
	former bool
}

// Bounds of users.
const (
	maxUsers = 1024
	// forgetAfter is how long a calm session that has let go of a sandbox still counts.
	forgetAfter = time.Hour
)

// Use is the use of a sandbox by one call.
type Use struct {
	proxies *Proxies
	name    string
	user    *user
	command string // "" if the call runs none

	left      atomic.Bool
	unreached []string // guarded by Proxies.mu
}

var errManyUsers = errors.New("too many sessions have used the sandbox since it was started: toolward sandbox recreate makes it anew")

// Enter notes that a call is about to use the sandbox of a name. What it starts there may connect to somewhere, also while
// the sandbox is being made. command is the text that it will run, as it was judged; "" if it runs none.
func (p *Proxies) Enter(name string, call *toolward.Call, command string) (*Use, error) {
	if err := p.remotes.begin(call.Caller.Workspace); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.uses[name]
	if all == nil {
		all = &users{}
		p.uses[name] = all
	}
	i := slices.IndexFunc(all.list, func(u *user) bool { return u.call.Session == call.Session })
	if i < 0 {
		if len(all.list) >= maxUsers {
			return nil, errManyUsers
		}
		i = len(all.list)
		all.list = append(all.list, &user{})
	}
	u := all.list[i]
	u.call = toolward.Call{Run: call.Run, Caller: call.Caller, Session: call.Session}
	u.holds++
	u.used = time.Now()
	use := &Use{proxies: p, name: name, user: u, command: command}
	if command != "" {
		all.commands = append(all.commands, use)
		all.begun++
	}
	return use, nil
}

// recall notes who has used a sandbox under an earlier gateway. The caller holds the mutex.
func (p *Proxies) recall(name string, sessions []fleet.Former) {
	all := p.uses[name]
	if all == nil {
		all = &users{}
		p.uses[name] = all
	}
	for _, f := range sessions {
		session := toolward.SessionKey(f.Session)
		if i := slices.IndexFunc(all.list, func(u *user) bool { return u.call.Session == session }); i >= 0 {
			all.list[i].former = true
			continue
		}
		caller := toolward.Caller{Agent: f.Agent, Session: session}
		all.list = append(all.list, &user{call: toolward.Call{Caller: caller, Session: session}, used: time.Now(), former: true})
	}
}

// release says that nothing runs any more of what earlier gateways had used.
func (a *users) release() {
	for _, u := range a.list {
		u.former = false
	}
}

// Started says which life of the sandbox the call has got: a value that is another one after each start. What used an
// earlier life has ended with it.
func (u *Use) Started(life any) {
	p := u.proxies
	p.mu.Lock()
	defer p.mu.Unlock()
	u.user.life = life
	if all := p.uses[u.name]; all != nil {
		all.list = slices.DeleteFunc(all.list, func(other *user) bool {
			return !other.former && other.life != nil && other.life != life && other.holds == 0
		})
	}
}

// Leave says that the call is over.
func (u *Use) Leave() {
	p := u.proxies
	u.left.Store(true)
	this := func(other *Use) bool { return other == u }
	p.mu.Lock()
	w := p.ways[u.name]
	defer func() {
		p.mu.Unlock()
		if w != nil {
			w.over(this)
		}
	}()
	u.user.holds--
	u.user.used = time.Now()
	if all := p.uses[u.name]; all != nil {
		all.commands = slices.DeleteFunc(all.commands, this)
	}
	if p.ways[u.name] == nil || u.user.life == nil && u.user.holds == 0 {
		p.forget(u.name) // no connection of it can come, or it has not come as far as to start anything
	}
}

// forget drops who does not use a sandbox now. The caller holds the mutex.
func (p *Proxies) forget(name string) {
	all := p.uses[name]
	if all == nil {
		return
	}
	open := p.ways[name] != nil
	all.list = slices.DeleteFunc(all.list, func(u *user) bool { return !u.former && u.holds == 0 && (!open || u.life == nil) })
	if len(all.list) == 0 {
		delete(p.uses, name)
	}
}

var errNobody = errors.New("no session uses the sandbox")

// callers are in whose name a connection is asked for: of each agent that shares the sandbox its tensest session, and of
// equally tense ones that which is at work now. A session in lockdown must not connect under the name of a calm one, nor one
// agent by what another may do.
func (p *Proxies) callers(ctx context.Context, name string) ([]toolward.Call, error) {
	type weighed struct {
		user
		level toolward.Level
	}
	p.mu.Lock()
	var all []weighed
	if found := p.uses[name]; found != nil {
		for _, u := range found.list {
			all = append(all, weighed{user: *u})
		}
	}
	p.mu.Unlock()
	for i := range all {
		w := &all[i]
		var err error
		if w.level, _, err = p.options.Levels.Level(ctx, &w.call); err != nil {
			return nil, fmt.Errorf("level of %s: %w", w.call.Session, err)
		}
	}
	calm := func(w weighed) bool {
		return w.holds == 0 && w.level == toolward.Normal && time.Since(w.used) > forgetAfter
	}
	slices.SortStableFunc(all, func(a, b weighed) int {
		return cmp.Or(
			cmp.Compare(a.call.Caller.Agent, b.call.Caller.Agent), cmp.Compare(a.level, b.level),
			cmp.Compare(min(b.holds, 1), min(a.holds, 1)), b.used.Compare(a.used),
		)
	})
	var calls []toolward.Call
	for _, w := range all {
		if calm(w) {
			p.forgetCalm(name, w.call.Session)
			continue
		}
		if n := len(calls); n == 0 || calls[n-1].Caller.Agent != w.call.Caller.Agent {
			calls = append(calls, w.call)
		}
	}
	if len(calls) == 0 {
		return nil, errNobody
	}
	return calls, nil
}

// forgetCalm drops a session that has let go of a sandbox long ago and was calm when it was looked at.
func (p *Proxies) forgetCalm(name string, session toolward.SessionKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all := p.uses[name]; all != nil {
		all.list = slices.DeleteFunc(all.list, func(u *user) bool {
			return u.call.Session == session && u.holds == 0 && time.Since(u.used) > forgetAfter
		})
	}
}
