package toolward

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Surface says through which kind of adapter a call came in.
type Surface string

// The surfaces.
const (
	SurfaceAgent Surface = "agent"        // the agent runtime
	SurfaceMCP   Surface = "mcp"          // an MCP client
	SurfaceHTTP  Surface = "http"         // the HTTP tool endpoint
	SurfaceNode  Surface = "node"         // another machine
	SurfaceCron  Surface = "cron"         // a scheduled run
	SurfaceHook  Surface = "hook-adapter" // another agent's hook

	SurfaceSandbox Surface = "sandbox" // a program in a sandbox that connects to somewhere
)

// Host says where a call runs: "sandbox", "gateway" (this machine) or "node:<id>".
type Host string

// The hosts known by name.
const (
	HostSandbox Host = "sandbox"
	HostGateway Host = "gateway"
)

// Call is one tool call as an adapter received it. Nothing in it has been checked, except that the adapter authenticated
// the caller.
type Call struct {
	ID         string          // the client's id of this call; part of the record only
	Run        string          // the agent run that the call belongs to; limits "denied before"
	Tool       string          // tool name in Toolward's words
	NativeName string          // the name the client uses, for the record; may be empty
	Arguments  json.RawMessage // exactly the bytes that arrived
	Caller     Caller
	Session    SessionKey
	Surface    Surface
	WorkDir    string // absolute directory that relative paths start from
	Host       Host
	ByClient   bool   // the client runs the tool itself; Toolward only decides and records
	Form       *Tool  `json:"-"` // with ByClient: what the client's tool of this name takes and touches, in place of ours; see Adopter
	ClientAsks bool   // with ByClient: where people must decide, the client asks the person in front of it
	Approval   string // id of an earlier, still open approval of this very call; resumes instead of asking again
	Detach     bool   // return *Pending instead of waiting for people

	// OnPending, if not nil, is told which approval the call waits for, as soon as people can answer it: once for each, and
	// mostly there is one. It must return at once. It is for adapters that tell their client what a call waits for.
	OnPending func(Pending) `json:"-"`
}

// Caller is who asks. The adapter that authenticated the client fills it in; nothing of it comes from arguments.
type Caller struct {
	Agent      string // agent id, lower case
	Depth      int    // 0 for an agent, n for its nth level of sub-agents
	Owner      bool   // proven to act for the owner; false when in doubt
	Context    string // main, group, cron, hook or subagent
	Channel    string // chat channel, if any
	Account    string
	Sender     string
	Client     string // client program and version, shown to people
	Workspace  string // absolute directory that is the agent's own
	Connection string // the connection that made the call; it may not answer its own approval
	Device     string

	// What the layers of the tool policy look at beyond the agent. For a call, Session and Surface are taken from the
	// Call; who only asks for the list of tools fills them in.
	Session         SessionKey
	Parent          SessionKey // conversation that spawned this one, if any
	Surface         Surface
	Provider, Model string // of the model that makes the call; "" if unknown
	Group           string // chat group; counts only if neither Session nor Parent names one
	SenderPhone     string // E.164
	SenderUser      string // user name; can be changed on most channels
	SenderName      string // display name; anybody can choose it
	Sandboxed       bool   // the session runs in a sandbox
	SandboxReadOnly bool   // nothing in that sandbox can be written to
	Ceiling         Ceiling
}

// Ceiling is what the policies of a parent leave to its children: an opaque text that the policy made when the child
// was spawned and that is kept with the child's session. "" is no ceiling; a text that the policy cannot read leaves
// nothing.
type Ceiling string

// caller is the caller with the facts that the call itself states, so that no adapter can state others.
func (c *Call) caller() Caller {
	caller := c.Caller
	caller.Session, caller.Surface = c.Session, c.Surface
	return caller
}

// SessionKey names a conversation: "agent:<id>:<rest>".
type SessionKey string

// NewSessionKey builds the key of a conversation of agent. It fails when a part is empty or would let one
// conversation pass for another.
func NewSessionKey(agent string, rest ...string) (SessionKey, error) {
	if agent == "" || strings.ContainsAny(agent, ": \t\r\n\x00") {
		return "", fmt.Errorf("session key: agent id %q is empty or has a colon or white space", agent)
	}
	if len(rest) == 0 {
		return "", fmt.Errorf("session key of agent %q: nothing after the agent id", agent)
	}
	for _, part := range rest {
		if part == "" || strings.ContainsAny(part, "\r\n\x00") {
			return "", fmt.Errorf("session key of agent %q: part %q is empty or has a control character", agent, part)
		}
	}
	return SessionKey("agent:" + strings.ToLower(agent) + ":" + strings.Join(rest, ":")), nil
}

// Agent returns the agent id in the key, or "" when the key is not of the form "agent:<id>:<rest>".
func (k SessionKey) Agent() string {
	rest, ok := strings.CutPrefix(string(k), "agent:")
	if !ok {
		return ""
	}
	id, tail, ok := strings.Cut(rest, ":")
	if !ok || tail == "" {
		return ""
	}
	return id
}
