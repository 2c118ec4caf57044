package console

import (
	"log/slog"
	"net/http"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// Options are the parts that the pages show. All are required unless they say otherwise.
type Options struct {
	API     *api.Server
	Address *door.Address
	Streams *door.Streams

	People    *identity.Keeper
	Approvals *approval.Manager
	Policy    func() api.Policy
	Desk      *desk.Desk         // what people may do
	Passkeys  *identity.Passkeys // optional
	Sandboxes api.Sandboxes      // optional
	Metrics   http.Handler       // optional

	Notices     func() []string // optional
	ObserveOnly bool
	Log         *slog.Logger
}

// Server serves the pages. Its methods may be called from any goroutine.
type Server struct {
	api     *api.Server
	address *door.Address
	streams *door.Streams

	people    *identity.Keeper
	approvals *approval.Manager
	policy    func() api.Policy
	desk      *desk.Desk
	passkeys  *identity.Passkeys
	sandboxes api.Sandboxes
	metrics   http.Handler

	notices  func() []string
	observes bool
	log      *slog.Logger

	shared  sharedList // of the sandboxes
	present presences
}

// New makes the console.
func New(o *Options) *Server {
	return &Server{
		api: o.API, address: o.Address, streams: o.Streams,
		people: o.People, approvals: o.Approvals, policy: o.Policy, desk: o.Desk,
		passkeys: o.Passkeys, sandboxes: o.Sandboxes, metrics: o.Metrics, observes: o.ObserveOnly, notices: o.Notices, log: o.Log,
	}
}
