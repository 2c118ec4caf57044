package protocol

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/schema"
	"github.com/toolward/toolward/server/door"
)

// Gate decides about calls and runs them. The gateway implements it.
type Gate interface {
	Call(context.Context, toolward.Call) (toolward.Result, error)
	Explain(context.Context, toolward.Call, toolward.ExplainOptions) toolward.Trace
}

// Options says what a server works with. All parts are required unless they say otherwise.
type Options struct {
	Config    Config
	Tokens    Tokens // made for the gateway protocol; optional
	Pairings  *identity.Pairings
	Approvals *approval.Manager
	Audit     *audit.Log
	Gate      Gate
	Desk      *desk.Desk // what people may do

	Policy func() Policy    // the one in force
	Agents func() AgentList // those of the configuration
	// CallAs says as which agent a call over HTTP runs, by the bearer token that it came with. It is ErrNoAgent for a
	// token that is no agent's.
	CallAs func(ctx context.Context, token string) (Agent, error)

	Paired func(identity.PairEvent) // told about devices; must not block; optional
	// Trouble says what keeps calls from running now, in words; "" if nothing does. Optional.
	Trouble func() string

	Home    string // shown to operator.admin only
	Version string
	Log     *slog.Logger
}

// ErrNoAgent means that a token is no agent's.
var ErrNoAgent = errors.New("the token is no agent's")

// Server speaks the gateway protocol. Its methods may be called from any goroutine.
type Server struct {
	pairings  *identity.Pairings
	approvals *approval.Manager
	audit     *audit.Log
	gate      Gate
	desk      *desk.Desk
	policy    func() Policy
	agents    func() AgentList
	callAs    func(context.Context, string) (Agent, error)
	paired    func(identity.PairEvent)
	trouble   func() string
	home      string
	version   string
	log       *slog.Logger
	started   time.Time

	keeper       *doorkeeper
	connectCheck *schema.Schema
	methods      map[string]*method
	repeats      *repeats
	asks         *asks
	events       *eventLine
	cachedHealth healthCache

	presenceVersion, healthVersion atomic.Int64
	moved                          chan struct{} // somebody has connected or left

	mu      sync.Mutex
	conns   map[*conn]struct{}
	greeted int // connections that have not said connect yet
	closed  bool

	stop context.CancelFunc // ends ticks and connections
	ctx  context.Context
	busy sync.WaitGroup
}

// Bounds and rhythms of connections.
const (
	maxConnections  = 4096
	maxHandshakes   = 256
	handshakeTime   = 10 * time.Second
	maxFirstFrame   = 64 << 10
	maxFrame        = 25 << 20
	tickEvery       = 30 * time.Second
	pingEvery       = 30 * time.Second
	pongPatience    = 25 * time.Second
	maxInFlight     = 256     // requests of one connection that are being answered
	maxWrongRole    = 10      // calls in a row that the role may not make
	maxParamsQueued = 2 << 20 // bytes of parameters of one connection that are being worked on, besides one frame
)

// New makes a server. It serves connections as an [http.Handler]; Close ends them.
func New(o Options) (*Server, error) {
	if o.Pairings == nil || o.Approvals == nil || o.Audit == nil || o.Gate == nil || o.Desk == nil || o.Policy == nil || o.Agents == nil || o.CallAs == nil {
		return nil, errors.New("gateway protocol: a part is missing")
	}
	proxies, err := door.ParseProxies(o.Config.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("gateway protocol: trusted proxies: %w", err)
	}
	check, err := connectShape().compile()
	if err != nil {
		return nil, fmt.Errorf("gateway protocol: %w", err)
	}
	s := &Server{
		pairings: o.Pairings, approvals: o.Approvals, audit: o.Audit, gate: o.Gate, desk: o.Desk, policy: o.Policy,
		agents: o.Agents, callAs: o.CallAs, paired: o.Paired, trouble: o.Trouble, home: o.Home, version: o.Version, log: o.Log, started: time.Now(), connectCheck: check,
		keeper: &doorkeeper{
			config: o.Config, proxies: door.Proxies{Trusted: proxies, RealIPFallback: o.Config.AllowRealIPFallback}, tokens: o.Tokens,
			limits: door.NewLimiter(door.LimitSettings{}), browsers: door.NewLimiter(door.LimitSettings{CountsLoopback: true}),
		},
		repeats: newRepeats(), conns: map[*conn]struct{}{}, moved: make(chan struct{}, 1),
	}
	s.keeper.lockedOut = s.lockedOut
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.asks = newAsks(s)
	if s.methods, err = compileMethods(); err != nil {
		return nil, fmt.Errorf("gateway protocol: %w", err)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.events = newEventLine()
	s.pairings.Watch(s.pairEvent)
	s.busy.Go(s.tick)
	s.busy.Go(s.tellPresence)
	s.busy.Go(func() { s.events.run(s.ctx) })
	return s, nil
}

// IsUpgrade reports whether a request wants to become a WebSocket.
func IsUpgrade(r *http.Request) bool {
	for _, value := range r.Header.Values("Upgrade") {
		for _, word := range strings.Split(value, ",") {
			if strings.EqualFold(strings.TrimSpace(word), "websocket") {
				return true
			}
		}
	}
	return false
}

// credentialNames are parameters of an address that would put a secret into logs and histories.
var credentialNames = []string{"token", "password", "auth", "access_token", "deviceToken", "secret", "key"}

// ServeHTTP makes a request a connection, and serves it until it ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	for _, name := range credentialNames {
		if query.Has(name) {
			http.Error(w, "credentials in an address are refused: they end up in logs; send them in the connect frame", http.StatusBadRequest)
			return
		}
	}
	c, err := s.enter()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.leave(c)
	c.serve(w, r)
}

// enter makes room for a connection.
func (s *Server) enter() (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errors.New("the gateway is shutting down")
	case len(s.conns) >= maxConnections || s.greeted >= maxHandshakes && !s.pushOut():
		return nil, errors.New("too many connections")
	}
	c := &conn{server: s, id: rand.Text(), greeting: true, since: time.Now(), finished: make(chan struct{})}
	c.queue = newQueue(func(frame []byte) (bool, int) { return c.wire.try(frame) }, c.cutOff)
	s.conns[c] = struct{}{}
	s.greeted++
	s.busy.Add(1)
	return c, nil
}

// pushOut ends the connection that has gone longest without saying who it is, so that many that never do keep nobody out who says it
// at once. It reports whether there was one. The caller holds the lock.
func (s *Server) pushOut() bool {
	var oldest *conn
	for c := range s.conns {
		if c.greeting && c.cancel != nil && !c.pushedOut && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	oldest.pushedOut = true
	oldest.cancel()
	s.greeted--
	return true
}

// welcome counts a connection as one that has connected.
func (s *Server) welcome(c *conn, in *admitted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.admitted, c.greeting, c.since = in, false, time.Now()
	if !c.pushedOut {
		s.greeted--
	}
	s.somebodyMoved()
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	if c.greeting && !c.pushedOut {
		s.greeted--
	} else if !c.greeting {
		s.somebodyMoved()
	}
	s.mu.Unlock()
	s.asks.left(c)
	s.busy.Done()
}

// connected lists the connections that were let in.
func (s *Server) connected() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		if c.admitted != nil {
			list = append(list, c)
		}
	}
	return list
}

// hasDevice reports whether a device is connected.
func (s *Server) hasDevice(id string) bool {
	if id == "" {
		return false
	}
	for _, c := range s.connected() {
		if c.admitted.deviceID == id {
			return true
		}
	}
	return false
}

// broadcast sends an event to everybody it is meant for. It never waits for anybody. only narrows it further; nil does
// not.
func (s *Server) broadcast(name string, payload any, only func(*conn) bool) {
	s.send(name, payload, nil, only)
}

// broadcastState sends an event that is a state of its own, with its number.
func (s *Server) broadcastState(name string, payload any) {
	s.send(name, payload, s.stateVersion(), nil)
}

func (s *Server) send(name string, payload any, version *stateVersion, only func(*conn) bool) {
	head, err := eventHead(name, payload, version)
	if err != nil {
		s.log.Error("an event could not be sent", "event", name, "err", err)
		return
	}
	on := addressed{name: name, droppable: eventRuleOf(name).droppable}
	tell := func(some []*conn) {
		e := newEvent(head)
		for _, c := range some {
			if only != nil && !only(c) {
				continue
			}
			c.queue.offer(func(buffered int64) delivery {
				return on.deliver(buffered, c.admitted.role, c.admitted.scopes)
			}, e)
		}
	}
	all := s.connected()
	if len(all) <= fewConns {
		tell(all)
		return
	}
	var telling sync.WaitGroup // and nothing else is told meanwhile: each connection gets its events in order
	for some := range slices.Chunk(all, max(fewConns, len(all)/runtime.GOMAXPROCS(0)+1)) {
		telling.Go(func() { tell(some) })
	}
	telling.Wait()
}

// fewConns are told one after the other; more of them by all processors.
const fewConns = 128

func (s *Server) tick() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			s.broadcast("tick", map[string]any{"ts": now.UnixMilli()}, nil)
			s.HealthNews()
		case <-s.ctx.Done():
			return
		}
	}
}

// Close tells everybody that the gateway ends, and closes all connections. It returns when none is left, or with ctx.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	s.broadcast("shutdown", map[string]any{"reason": "service restart"}, nil)
	for _, c := range all {
		c.queue.close(closing{closeRestart, "service restart"})
		c.endGreeting()
	}
	s.asks.close()
	done := make(chan struct{})
	go func() { s.busy.Wait(); close(done) }()
	var err error
	timer := time.AfterFunc(time.Second, s.stop) // whoever does not take the last frames is cut off
	defer timer.Stop()
	for _, c := range all {
		select {
		case <-c.finished:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	s.stop()
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	return err
}
