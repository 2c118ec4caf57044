package gateway

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/toolward/toolward/hostdaemon"
	"github.com/toolward/toolward/mcp"
	"github.com/toolward/toolward/sandbox/settings"
)

// Person is whose agents a gateway guards that has a user of its own. Such a gateway decides and runs nothing: what it started would
// have the rights of its own user, which are those over its state.
type Person struct {
	UID    uint32
	Home   string // where the person's files lie, which HOME must say
	Socket string // where programs of the person connect
}

// ForPerson is the person of this name, if this process may be the machine's gateway: root has said so in [hostdaemon.File].
func ForPerson(name, stateDir string) (*Person, error) {
	daemon, err := hostdaemon.Of(stateDir)
	if err != nil {
		return nil, err
	}
	switch own := os.Geteuid(); {
	case !daemon.System:
		return nil, fmt.Errorf("%s names no gateway of this machine: the administrator runs toolward install --system", hostdaemon.File)
	case own == 0:
		return nil, errors.New("a gateway for another user's agents does not run as root")
	case uint32(own) != daemon.UID:
		return nil, fmt.Errorf("%s names uid %d as the user of this machine's gateway, and this process runs as uid %d", hostdaemon.File, daemon.UID, own)
	}
	account, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	switch {
	case err != nil:
		return nil, err
	case uid == 0:
		return nil, errors.New("agents that run as root can do everything, to the gateway as well")
	case uint32(uid) == daemon.UID:
		return nil, fmt.Errorf("agents of %s would have the gateway's own rights", name)
	}
	return &Person{UID: uint32(uid), Home: account.HomeDir, Socket: daemon.Socket}, nil
}

// clients are users besides the gateway's own whose programs it serves.
func (p *Person) clients() []uint32 {
	if p == nil {
		return nil
	}
	return []uint32{p.UID}
}

// socket is where programs of the person connect; "" if there is only the gateway's own user.
func (p *Person) socket() string {
	if p == nil {
		return ""
	}
	return p.Socket
}

// errRunsNothing is what MCP clients are told by a gateway that has a user of its own.
var errRunsNothing = errors.New("this gateway has a user of its own and runs no tools, which would have its rights instead of yours: it guards clients that run their tools themselves")

// mayServe is the identity of an MCP client, if there are tools for it.
func (g *Gateway) mayServe(id mcp.Identity, err error) (mcp.Identity, error) {
	if g.person != nil && err == nil {
		return mcp.Identity{}, errRunsNothing
	}
	return id, err
}

// runsHere says by what mode commands run where there are no sandboxes to ask for.
func (g *Gateway) runsHere() {
	g.machine.Mode, g.machine.Due, g.machine.Why = settings.ModeOff, false, "the gateway has a user of its own and runs nothing"
}

// SetupCodeFile holds the code for the first passphrase in the home of a gateway that root started as a service.
const SetupCodeFile = "setup-code"
