package gateway

import (
	"context"
	"errors"
	"io"

	"github.com/toolward/toolward/hostdaemon"
	"github.com/toolward/toolward/mcp"
)

// ErrNotRunning says that no gateway answers, or no longer.
var ErrNotRunning = errors.New("the gateway does not run")

// notRunning keeps the words of the error that says so.
type notRunning struct{ error }

func (notRunning) Is(target error) bool { return target == ErrNotRunning }

// JoinMCP joins two streams of an MCP client to the gateway that runs on this machine or in a home, in the name of an agent.
func JoinMCP(ctx context.Context, home, agent, workspace string, in io.Reader, out io.Writer) error {
	daemon, err := hostdaemon.Of(home)
	if err != nil {
		return err
	}
	err = mcp.Pipe(ctx, daemon, mcp.Hello{Agent: agent, Workspace: workspace}, in, out)
	if errors.Is(err, mcp.ErrNoDaemon) || errors.Is(err, mcp.ErrDaemonGone) {
		return notRunning{err}
	}
	return err
}
