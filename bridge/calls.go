package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/hookclient"
	"github.com/toolward/toolward/bridge/ticket"
)

// callKey names one tool call of a client.
type callKey struct{ session, id string }

// call is a call that was answered, until its outcome is known.
type call struct {
	key     callKey
	agent   string          // the client's id of the sub-agent, "" in the main thread
	pass    *toolward.Pass  // nil if it was refused
	updated json.RawMessage // the arguments that the client was told to run instead; nil: its own
	ticket  *ticket.Ticket  // by which its command is started; nil: the client runs it itself
	digest  [32]byte        // of the client's arguments
	answer  hookclient.Answer
	asks    bool          // the client put it to its person
	ready   chan struct{} // closed when the answer is there

	answeredAt time.Time // under the lock of calls
	size       int       // bytes of arguments that it keeps in memory

	newer, older *call // in the order of arrival
}

// decided is what became of a call.
type decided struct {
	answer  hookclient.Answer
	pass    *toolward.Pass  // only with an answer that lets the call run
	updated json.RawMessage // the arguments that the client is told to run; nil: its own
	ticket  *ticket.Ticket  // of a confined command
}

// calls holds the calls whose outcome is awaited. It holds no goroutine and no timer for them, and no more than its
// limit: the oldest goes first, with an unknown outcome.
type calls struct {
	limit int
	log   *slog.Logger

	mu     sync.Mutex
	byKey  map[callKey]*call
	bytes  int // of all of them
	newest *call
	oldest *call
}

// maxOpenBytes bounds the arguments of all open calls: big ones must not fill the daemon where many would not.
const maxOpenBytes = 64 << 20

func newCalls(limit int, log *slog.Logger) *calls {
	return &calls{limit: limit, log: log, byKey: map[callKey]*call{}}
}

// sharedFor is how long an answer holds for a second hook that asks about the same call. A client starts its hooks
// together; a later one is a new call, whatever its id.
const sharedFor = 2 * time.Second

// begin takes up a call. If the client asks about the same call with the same arguments at the same time, because
// its hook is installed twice, the earlier one is returned, and its answer holds for both: a person is not asked
// twice about one call.
func (c *calls) begin(key callKey, agent string, digest [32]byte) (mine, earlier *call) {
	c.mu.Lock()
	known := c.byKey[key]
	if known != nil && known.digest == digest && (known.answeredAt.IsZero() || time.Since(known.answeredAt) < sharedFor) {
		c.mu.Unlock()
		return nil, known
	}
	mine = &call{key: key, agent: agent, digest: digest, ready: make(chan struct{})}
	var dropped *call
	if known != nil {
		c.unlink(known) // its answer must not count for what has the same id now
	}
	if len(c.byKey) >= c.limit {
		dropped = c.oldest
		c.unlink(dropped)
	}
	c.link(mine)
	c.mu.Unlock()
	if known != nil {
		c.conclude(known, toolward.StatusUnknown, "the client used the call's id again")
	}
	if dropped != nil {
		c.conclude(dropped, toolward.StatusUnknown, "too many calls without an outcome")
	}
	return mine, nil
}

// answered makes the answer known.
func (c *calls) answered(one *call, d decided) {
	pass := d.pass
	c.mu.Lock()
	one.pass, one.answer, one.updated, one.ticket = pass, d.answer, d.updated, d.ticket
	one.answeredAt = time.Now()
	one.asks = pass != nil && pass.ClientAsks()
	gone := c.byKey[one.key] != one
	var dropped []*call
	if pass != nil && !gone {
		one.size = pass.Request().Params.Len() + len(pass.Request().Call.Arguments) + len(d.updated)
		c.bytes += one.size
		dropped = c.makeRoom(one)
	}
	close(one.ready)
	c.mu.Unlock()
	if gone {
		c.conclude(one, toolward.StatusUnknown, "the session ended before the call was answered")
	}
	for _, old := range dropped {
		c.conclude(old, toolward.StatusUnknown, "too much is kept of calls without an outcome")
	}
}

// makeRoom takes out the oldest calls, but never keep, until the rest fits. The caller holds the lock.
func (c *calls) makeRoom(keep *call) (dropped []*call) {
	for c.bytes > maxOpenBytes && c.oldest != keep {
		old := c.oldest
		c.unlink(old)
		dropped = append(dropped, old)
	}
	return dropped
}

// take removes a call and returns it; nil if it is not known.
func (c *calls) take(key callKey) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.byKey[key]
	if one != nil {
		c.unlink(one)
	}
	return one
}

// drop removes this very call.
func (c *calls) drop(one *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[one.key] != one {
		return false
	}
	c.unlink(one)
	return true
}

// everything selects all calls.
func everything(*call) bool { return true }

// closeAll ends the selected calls: no outcome was seen.
func (c *calls) closeAll(ctx context.Context, selected func(*call) bool) {
	c.mu.Lock()
	var ended []*call
	for one := c.oldest; one != nil; {
		next := one.newer
		if selected(one) {
			c.unlink(one)
			ended = append(ended, one)
		}
		one = next
	}
	c.mu.Unlock()
	for _, one := range ended {
		c.closeUnseen(ctx, one)
	}
}

// closeUnseen ends a call without an outcome. If the client was to ask its person and nothing came of it, the person
// declined; otherwise nobody knows.
func (c *calls) closeUnseen(ctx context.Context, one *call) {
	select {
	case <-one.ready:
	default:
		return // answered closes it
	}
	status, why := toolward.StatusUnknown, "the client reported no outcome"
	if one.asks {
		status, why = toolward.StatusUnused, "the person at the client did not agree"
	}
	c.finish(ctx, one, toolward.OutcomeRecord{Status: status, Error: why})
}

func (c *calls) conclude(one *call, status toolward.Status, why string) {
	select {
	case <-one.ready:
		c.finish(context.Background(), one, toolward.OutcomeRecord{Status: status, Error: why})
	default:
	}
}

// finish records the outcome.
func (c *calls) finish(ctx context.Context, one *call, outcome toolward.OutcomeRecord) {
	if one.ticket != nil && one.ticket.Void() && outcome.Status == toolward.StatusUnknown {
		outcome.Status, outcome.Error = toolward.StatusUnused, join(outcome.Error, "its command was not started")
	}
	if one.pass == nil {
		return
	}
	if err := one.pass.Close(context.WithoutCancel(ctx), outcome); err != nil {
		c.log.Error("the outcome of a client's call could not be recorded", "call", one.key.id, "err", err)
	}
}

// link puts a call at the end. The caller holds the lock.
func (c *calls) link(one *call) {
	c.byKey[one.key] = one
	one.older = c.newest
	if c.newest != nil {
		c.newest.newer = one
	} else {
		c.oldest = one
	}
	c.newest = one
}

// unlink takes a call out of both orders. The caller holds the lock.
func (c *calls) unlink(one *call) {
	delete(c.byKey, one.key)
	c.bytes -= one.size
	if one.older != nil {
		one.older.newer = one.newer
	} else {
		c.oldest = one.newer
	}
	if one.newer != nil {
		one.newer.older = one.older
	} else {
		c.newest = one.older
	}
	one.older, one.newer = nil, nil
}

// ran reports whether the arguments that the client says it ran are those that it was allowed to run.
func (c *call) ran(input json.RawMessage) bool {
	if c.updated == nil {
		return c.pass.Matches(input)
	}
	var allowed, reported any
	return decodeExactly(c.updated, &allowed) == nil && decodeExactly(input, &reported) == nil && equalJSON(allowed, reported)
}

// decodeExactly keeps numbers as they are written.
func decodeExactly(raw json.RawMessage, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(v)
}

func equalJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(x, y)
}
