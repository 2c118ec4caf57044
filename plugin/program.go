package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
)

// Back-off of a program that ends: the first restart comes soon, later ones less so.
const (
	firstPause  = 100 * time.Millisecond
	longPause   = 30 * time.Second
	steadyAfter = time.Minute // a program that ran so long starts again with the first pause
)

// programs holds the running programs. A program whose entry is the same in two configurations is the same program.
type programs struct {
	mu     sync.Mutex
	byKey  map[string]*program
	closed bool
}

// program is a plug-in's program, which is started again whenever it ends.
type program struct {
	key  string
	argv []string
	env  []string
	log  *slog.Logger
	refs int // sets that use it; guarded by programs.mu

	quit  chan struct{}
	ended chan struct{}

	mu      sync.Mutex
	running *process
	why     error         // why it is not running
	next    time.Time     // when it is started again
	changed chan struct{} // closed when any of these changes
}

// hold returns the program of an entry, started if it was not yet.
func (s *programs) hold(id string, e Entry, r *Runner) *program {
	key, _ := json.Marshal([]any{id, e.Command, e.Env})
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byKey[string(key)]; p != nil {
		p.refs++
		return p
	}
	p := &program{
		key: string(key), argv: e.Command, env: environment(e.Env, r.environ), refs: 1,
		log: r.log.With("plugin", id), quit: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}),
	}
	if s.closed {
		p.why = errClosed
		close(p.quit)
		close(p.ended)
		return p
	}
	if s.byKey == nil {
		s.byKey = map[string]*program{}
	}
	s.byKey[p.key] = p
	go p.supervise(r)
	return p
}

var errClosed = errors.New("the gateway is ending")

// drop ends the program when no set uses it any more.
func (s *programs) drop(p *program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.refs--; p.refs == 0 && s.byKey[p.key] == p {
		delete(s.byKey, p.key)
		close(p.quit)
	}
}

// close ends all programs and waits for them, but not for one that hangs in the kernel.
func (s *programs) close() {
	s.mu.Lock()
	all := s.byKey
	s.byKey, s.closed = nil, true
	for _, p := range all {
		close(p.quit)
	}
	s.mu.Unlock()
	limit := time.After(2 * time.Second)
	for _, p := range all {
		select {
		case <-p.ended:
		case <-limit:
			return
		}
	}
}

// environment is all that a program gets of ours: where programs are, and the variables that its entry names. The
// gateway's own environment may hold keys of other parts.
func environment(names []string, lookup func(string) (string, bool)) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	for _, name := range names {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// supervise keeps the program running.
func (p *program) supervise(r *Runner) {
	defer close(p.ended)
	pause := firstPause
	for {
		start := time.Now()
		running, err := p.start(r)
		if err == nil {
			p.set(running, nil, time.Time{})
			select {
			case <-running.done:
			case <-p.quit:
				running.end(errClosed)
				<-running.done
				p.set(nil, errClosed, time.Time{})
				return
			}
			err = running.reason()
		}
		if time.Since(start) > steadyAfter {
			pause = firstPause
		}
		p.log.Error("a plug-in's program is not running", "err", err, "again in", pause)
		p.set(nil, err, time.Now().Add(pause))
		select {
		case <-time.After(pause):
		case <-p.quit:
			p.set(nil, errClosed, time.Time{})
			return
		}
		pause = min(2*pause, longPause)
	}
}

func (p *program) start(r *Runner) (*process, error) {
	if err := trustworthy(p.argv[0]); err != nil {
		return nil, err
	}
	running, err := startProcess(p.argv, p.env, func(text string) {
		p.log.Warn("a plug-in says", "text", shortened(r.redact.String(text)))
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.argv[0], err)
	}
	return running, nil
}

// trustworthy refuses a program that others than the gateway's user and root can change: it would speak for a guard.
func trustworthy(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s can be changed by everybody: chmod o-w it", path)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && !ownedByUs(info) {
		return fmt.Errorf("%s belongs to another user: it must be yours or root's", path)
	}
	return nil
}

func ownedByUs(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}

func (p *program) set(running *process, why error, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.why, p.next = running, why, next
	close(p.changed)
	p.changed = make(chan struct{})
}

// ask asks the program. One that is about to start is waited for; one that is not is an error at once.
func (p *program) ask(ctx context.Context, event []byte, hook Name, call []byte) (reply, error) {
	for {
		p.mu.Lock()
		running, why, next, changed := p.running, p.why, p.next, p.changed
		p.mu.Unlock()
		if running != nil {
			return running.ask(ctx, hook, event, call)
		}
		if deadline, ok := ctx.Deadline(); why != nil && (next.IsZero() || ok && next.After(deadline)) {
			return reply{}, fmt.Errorf("its program is not running: %w", why)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return reply{}, ctx.Err()
		}
	}
}
