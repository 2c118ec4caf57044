package gateway

import (
	"context"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/egress"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/sandbox"
)

// egressGuard dials connections out of sandboxes. It is nil, which is the public internet and nothing else, but in programs
// that are built for live tests.
var egressGuard *netguard.Guard

// openEgress opens what decides about connections out of sandboxes. None comes before there is a sandbox, which is after
// everything else was opened.
func (g *Gateway) openEgress() (err error) {
	g.egress, err = egress.New(egress.Options{
		Dir: filepath.Join(g.home, "sandbox", "egress"), Remotes: filepath.Join(g.home, "sandbox", "remotes.json"), Levels: g.sessions, Guard: egressGuard, Log: g.log,
		Gate: func() egress.Gate {
			if g.Gateway == nil {
				return nil
			}
			return g.Gateway
		},
		Own:      g.isOwnPort,
		Settings: func() *settings.Settings { return g.sandboxes.Settings() },
	})
	return err
}

// isOwnPort reports whether the gateway itself listens at a port of this machine; as long as it is not known where, everywhere.
func (g *Gateway) isOwnPort(port uint16) bool {
	if g.server == nil {
		return true
	}
	u, err := url.Parse(g.server.URL())
	return err != nil || u.Port() == strconv.Itoa(int(port))
}

// acquire has the sandbox of a call, if it still is the one that the call was judged in. In whose name programs inside connect
// is known before the first of them runs.
func (g *Gateway) acquire(ctx context.Context, call *toolward.Call, request settings.Request, name, identity, command string) (sandbox.Handle, *egress.Use, func(), error) {
	use, err := g.egress.Enter(name, call, command)
	if err != nil {
		return nil, nil, nil, err
	}
	lease, err := g.sandboxes.AcquireJudged(ctx, request, identity)
	if err != nil {
		use.Leave()
		return nil, nil, nil, err
	}
	use.Started(lease.Handle)
	return lease, use, sync.OnceFunc(func() { lease.Release(); use.Leave() }), nil
}
