package identity

import (
	"cmp"
	"context"
	"fmt"
)

// Speaker is the agent in whose name a program calls tools.
type Speaker struct {
	Agent     string
	Workspace string // absolute, without symbolic links
	Owner     bool   // its calls count as the owner's
	TokenID   string // "" for a program of this machine that showed no token
}

// WorkspaceCheck returns the real path of a directory, or an error if it cannot be an agent's workspace.
type WorkspaceCheck func(dir string) (string, error)

// Bearer is who calls with the secret of an agent token. An unknown secret is [ErrToken]. The workspace is checked at every call,
// not only when the token was made: its directory may have become a link to somebody's home since.
func (k *Keeper) Bearer(ctx context.Context, secret string, check WorkspaceCheck) (Speaker, error) {
	token, err := k.Token(ctx, secret)
	if err != nil {
		return Speaker{}, err
	}
	workspace, err := check(token.Workspace)
	if err != nil {
		return Speaker{}, err
	}
	return Speaker{Agent: token.Agent, Workspace: workspace, Owner: token.Owner, TokenID: token.ID}, nil
}

// Local is who calls from this machine without a token, under the name of an agent. Its workspace is the configured one if there
// is one: a program must not widen its own. Else it is the directory that the program names. It is never the owner.
func Local(agent, configured, named string, check WorkspaceCheck) (Speaker, error) {
	if err := CheckAgent(agent); err != nil {
		return Speaker{}, err
	}
	dir := cmp.Or(configured, named)
	if dir == "" {
		return Speaker{}, fmt.Errorf("agent %s has no workspace: name one with --workspace, or in the configuration", agent)
	}
	workspace, err := check(dir)
	if err != nil {
		return Speaker{}, err
	}
	return Speaker{Agent: agent, Workspace: workspace}, nil
}
