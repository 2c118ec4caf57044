package api

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// apiOptions are the parts that the API works on. All are required unless they say otherwise.
type Options struct {
	Home    string
	Address *door.Address
	Streams *door.Streams

	People    *identity.Keeper
	Approvals *approval.Manager
	Gateway   Explainer
	Policy    func() Policy
	Desk      *desk.Desk // what people may do
	Sandboxes Sandboxes  // optional

	Notices     func() []string // optional
	ObserveOnly bool
	Version     string
	Stop        func()
	Log         *slog.Logger
}

// apiServer answers the HTTP API. Its methods may be called from any goroutine.
type Server struct {
	home    string
	address *door.Address
	streams *door.Streams

	people    *identity.Keeper
	approvals *approval.Manager
	gateway   Explainer
	policy    func() Policy
	desk      *desk.Desk
	sandboxes Sandboxes

	notices  func() []string
	observes bool
	version  string
	stop     func()
	log      *slog.Logger

	started time.Time
	handler http.Handler // of all routes
}
