package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// Errors that callers branch on.
var (
	// ErrNotAccepted says that nobody has accepted this server, or this tool of it, as it is now.
	ErrNotAccepted = errors.New("not accepted by a person as it is now")
	// ErrListChanged says that the server lists something else by now than what the person looked at.
	ErrListChanged = errors.New("the server lists something else by now: look again, then accept")
	// ErrNotListed says that the server has not listed its tools.
	ErrNotListed = errors.New("the server has not listed its tools")
)

// Upstream is a foreign MCP server.
type Upstream struct {
	ID     string // begins the names of its tools and stands for all of them in lists
	Launch Launch
	// Call runs a tool of the server by the server's own name.
	Call func(ctx context.Context, tool string, arguments json.RawMessage) (toolward.Result, error)
}

// Upstreams keeps what foreign servers list and what of that a person has accepted. Only tools that are both, in the
// same form to the byte of their canonical JSON, become tools of Toolward: a server that changes a definition after it
// was accepted loses that tool until a person has looked again. The methods may be called from any goroutine.
type Upstreams struct {
	store     AcceptanceStore
	checkName func(name, server string) error
	changed   func()

	mu       sync.RWMutex
	servers  map[string]*served
	accepted map[string]Acceptance
}

// served is what a server lists now.
type served struct {
	upstream Upstream
	listing  Listing
	tools    []*toolward.Tool // those that were accepted, by name
}

// UpstreamOptions says what Upstreams works with.
type UpstreamOptions struct {
	Store AcceptanceStore // required
	// CheckName refuses names that the policy would not register. Required: policy.CheckName.
	CheckName func(name, server string) error
	// Changed is told when Tools may give something else than before. Optional. It may call Tools, and several
	// goroutines may call it at once: a registration that is late is harmless, because a tool looks again when it runs.
	Changed func()
}

// OpenUpstreams reads what was accepted before. No server has listed anything yet.
func OpenUpstreams(ctx context.Context, o UpstreamOptions) (*Upstreams, error) {
	if o.Store == nil || o.CheckName == nil {
		return nil, errors.New("upstreams need a store and a check of names")
	}
	u := &Upstreams{
		store: o.Store, checkName: o.CheckName, changed: o.Changed,
		servers: map[string]*served{}, accepted: map[string]Acceptance{},
	}
	if u.changed == nil {
		u.changed = func() {}
	}
	known, err := o.Store.Acceptances(ctx)
	if err != nil {
		return nil, fmt.Errorf("open upstreams: %w", err)
	}
	for _, a := range known {
		u.accepted[a.Server] = a
	}
	return u, nil
}

// Tools lists the tools of all servers that may be registered, by name.
func (u *Upstreams) Tools() []*toolward.Tool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	var all []*toolward.Tool
	for _, id := range slices.Sorted(maps.Keys(u.servers)) {
		all = append(all, u.servers[id].tools...)
	}
	return all
}

// Listed takes all pages of a server's answer to tools/list, in their order, and returns what became of them. It is
// called after every connect and every list_changed. On an error the server has no tools.
func (u *Upstreams) Listed(s Upstream, pages ...json.RawMessage) (Listing, error) {
	defer u.changed()
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.servers, s.ID)
	if s.Call == nil {
		return Listing{}, fmt.Errorf("server %q cannot be called", s.ID)
	}
	listing, err := newListing(s, pages, u.checkName)
	if err != nil {
		return Listing{}, fmt.Errorf("tools of server %q: %w", short(s.ID), err)
	}
	now := &served{upstream: s, listing: listing}
	u.servers[s.ID] = now
	u.settle(now)
	return now.listing.clone(), nil
}

// Gone forgets what a server listed, because it has ended. What was accepted stays.
func (u *Upstreams) Gone(server string) {
	defer u.changed()
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.servers, server)
}

// Listing is what a server lists now, with the state of each tool, for the person who accepts it.
func (u *Upstreams) Listing(server string) (Listing, error) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if s := u.servers[server]; s != nil {
		return s.listing.clone(), nil
	}
	return Listing{}, ErrNotListed
}

// Accept accepts the tools that a server lists now. digest is that of the listing which the person was shown: a list
// that is exchanged under the answer is not accepted. Like a grant this holds for later calls, so it needs the same
// right.
func (u *Upstreams) Accept(ctx context.Context, server, digest string, by approval.Authority) error {
	if by == nil {
		return approval.ErrNotAllowed
	}
	if err := by.MayGrant(); err != nil {
		return err
	}
	defer u.changed()
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.servers[server]
	if s == nil {
		return ErrNotListed
	}
	if s.listing.Digest != digest {
		return ErrListChanged
	}
	a := Acceptance{Server: server, Launch: s.upstream.Launch.Digest(), Tools: map[string]string{}, By: by.Name(), AtMs: time.Now().UnixMilli()}
	for _, t := range s.listing.Tools {
		a.Tools[t.Native] = t.Digest
	}
	if err := u.keep(ctx, a); err != nil {
		return err
	}
	u.settle(s)
	return nil
}

// AcceptLaunch accepts the way a server is reached, before it has listed anything. Tools that were accepted of a
// server which was reached in another way are not accepted of this one.
func (u *Upstreams) AcceptLaunch(ctx context.Context, server string, l Launch, by approval.Authority) error {
	if err := checkServer(server); err != nil {
		return err
	}
	if by == nil {
		return approval.ErrNotAllowed
	}
	if err := by.MayGrant(); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.accepted[server]
	if a.Launch == l.Digest() {
		return nil
	}
	return u.keep(ctx, Acceptance{Server: server, Launch: l.Digest(), By: by.Name(), AtMs: time.Now().UnixMilli()})
}

// MayStart says whether a server may be started or connected to: only in the very way that a person accepted. It stops
// an entry of a configuration file, accepted once, from being exchanged for another command later.
func (u *Upstreams) MayStart(server string, l Launch) error {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if a, ok := u.accepted[server]; !ok || a.Launch != l.Digest() {
		return fmt.Errorf("server %q, by this command, address and environment: %w", short(server), ErrNotAccepted)
	}
	return nil
}

// keep writes an acceptance down before it counts. The caller holds the lock.
func (u *Upstreams) keep(ctx context.Context, a Acceptance) error {
	if err := u.store.Accept(ctx, a); err != nil {
		return fmt.Errorf("the acceptance of server %s was not recorded and does not count: %w", a.Server, err)
	}
	u.accepted[a.Server] = a
	return nil
}

// settle compares what a server lists with what was accepted. The caller holds the lock.
func (u *Upstreams) settle(s *served) {
	a, known := u.accepted[s.upstream.ID]
	known = known && a.Launch == s.upstream.Launch.Digest()
	s.tools = nil
	for i := range s.listing.Tools {
		t := &s.listing.Tools[i]
		switch digest, listed := a.Tools[t.Native]; {
		case !known || !listed:
			t.State = StateNew
		case digest != t.Digest:
			t.State = StateChanged
		default:
			t.State = StateAccepted
			s.tools = append(s.tools, u.tool(s.upstream, t.Definition))
		}
	}
	slices.SortFunc(s.tools, func(x, y *toolward.Tool) int { return strings.Compare(x.Name, y.Name) })
}

// stands reports whether a definition is still what its server lists and a person accepted.
func (u *Upstreams) stands(server string, d *Definition) bool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	s := u.servers[server]
	if s == nil {
		return false
	}
	return slices.ContainsFunc(s.listing.Tools, func(t ListedTool) bool {
		return t.Native == d.Native && t.Digest == d.Digest && t.State == StateAccepted
	})
}
