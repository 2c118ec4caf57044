package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
)

// Identity is who is at the other end of a connection. It comes from the token that an HTTP request carries, or
// from the local socket; never from anything that the client writes into a message.
type Identity struct {
	Agent     string // agent id, lower case
	Workspace string // absolute directory
	Owner     bool   // the token says that its bearer acts for the owner
	TokenID   string // name of the token, not the secret; "local" on the local socket

	// Connection names what the calls come over. Whoever holds it may not answer its approvals. Empty: the token,
	// or the stream.
	Connection string

	stream string // names the stream of a stdio client, whose calls are one conversation
}

// check reports what makes an identity unusable: without a name and a token of its own a caller could share
// another's session, and with it another's grants.
func (id Identity) check() error {
	switch {
	case id.Agent == "" || id.Agent != strings.ToLower(id.Agent):
		return fmt.Errorf("agent id %q must be given in lower case", id.Agent)
	case id.TokenID == "" || strings.ContainsAny(id.TokenID, ": \t\r\n\x00"):
		return fmt.Errorf("token id %q is empty or has a colon or white space", id.TokenID)
	}
	return nil
}

// principal is what a requestState is bound to: the token, not only the agent. It stops one client from resuming
// the call of another that happens to run the same agent.
func (id Identity) principal() string { return id.Agent + ":" + id.TokenID }

func (id Identity) connection() string {
	name := "mcp:" + id.TokenID
	if id.stream != "" {
		name += ":" + id.stream
	}
	return cmp.Or(id.Connection, name)
}

// caller is what the gateway is told. clientInfo is the client's own word and only shown to people.
func (id Identity) caller(clientInfo *sdk.Implementation) toolward.Caller {
	return toolward.Caller{
		Agent:      id.Agent,
		Owner:      id.Owner,
		Context:    "main",
		Client:     clientName(clientInfo),
		Workspace:  id.Workspace,
		Connection: id.connection(),
	}
}

// session is the conversation that a call belongs to. A client without connections gets one for each day (UTC), so
// that what it has seen is not forgotten from call to call.
func (id Identity) session(client string, now time.Time) (toolward.SessionKey, error) {
	client = cmp.Or(client, id.stream, now.UTC().Format(time.DateOnly))
	return toolward.NewSessionKey(id.Agent, "mcp", id.TokenID, client)
}

// owns reports whether a session key taken from a requestState is one of this identity's.
func (id Identity) owns(session toolward.SessionKey) bool {
	return strings.HasPrefix(string(session), "agent:"+id.Agent+":mcp:"+id.TokenID+":")
}

func clientName(info *sdk.Implementation) string {
	if info == nil {
		return ""
	}
	name := strings.ToValidUTF8(strings.TrimSpace(info.Name+" "+info.Version), "\uFFFD")
	return truncate(name, 100)
}

// truncate shortens text to at most limit bytes without cutting a character; the mark at its end says so, and also
// keeps a shortened tool name from being the name of a tool.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}

// identityKey is the context key of a stream's identity, extraIdentity the key of an HTTP request's in its token.
type identityKey struct{}

const extraIdentity = "toolward/identity"

var errNoIdentity = errors.New("nobody has authenticated this connection")

// identityOf returns who sent a request. Over HTTP every request proves itself anew, so the context of the
// connection's first request, which lives as long as the connection, is not looked at.
func identityOf(ctx context.Context, req sdk.Request) (Identity, error) {
	if extra := req.GetExtra(); extra != nil {
		return identityOfToken(extra.TokenInfo)
	}
	if id, ok := ctx.Value(identityKey{}).(Identity); ok {
		return id, nil
	}
	return Identity{}, errNoIdentity
}

func identityOfToken(token *auth.TokenInfo) (Identity, error) {
	if token != nil {
		if id, ok := token.Extra[extraIdentity].(Identity); ok {
			return id, nil
		}
	}
	return Identity{}, errNoIdentity
}

// maxRuns bounds how many sessions' runs are remembered.
const maxRuns = 4096

// runs numbers the runs of sessions: a run ends when its session has been idle for some time. MCP has no word for
// the end of a run, and "denied before" holds for one run only.
type runs struct {
	idle time.Duration

	mu   sync.Mutex
	last map[toolward.SessionKey]run
}

type run struct {
	id   string
	seen time.Time
}

// current returns the id of the session's run, and starts a new one if the last has ended.
func (r *runs) current(session toolward.SessionKey, now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	current, ok := r.last[session]
	if !ok || now.Sub(current.seen) > r.idle {
		current.id = rand.Text()
		r.makeRoom(now)
	}
	current.seen = now
	if r.last == nil {
		r.last = make(map[toolward.SessionKey]run)
	}
	r.last[session] = current
	return current.id
}

// makeRoom forgets ended runs when there are many, and if all are alive the one that has been idle longest.
func (r *runs) makeRoom(now time.Time) {
	if len(r.last) < maxRuns {
		return
	}
	var oldest toolward.SessionKey
	for session, run := range r.last {
		if now.Sub(run.seen) > r.idle {
			delete(r.last, session)
			continue
		}
		if oldest == "" || run.seen.Before(r.last[oldest].seen) {
			oldest = session
		}
	}
	if len(r.last) >= maxRuns {
		delete(r.last, oldest)
	}
}

// calls counts the calls in flight of each session, so that one client cannot fill the gateway with them.
type calls struct {
	limit int

	mu    sync.Mutex
	count map[string]int
}

// enter counts a call in, unless there are too many.
func (c *calls) enter(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count[key] >= c.limit {
		return false
	}
	if c.count == nil {
		c.count = make(map[string]int)
	}
	c.count[key]++
	return true
}

func (c *calls) leave(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count[key]--; c.count[key] == 0 {
		delete(c.count, key)
	}
}
