package console

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
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
	Audit     *audit.Log
	Levels    api.Levels
	Policy    func() api.Policy
	Devices   *identity.Pairings // optional
	Passkeys  *identity.Passkeys // optional
	Sandboxes api.Sandboxes      // optional
	Metrics   http.Handler       // optional

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
	audit     *audit.Log
	levels    api.Levels
	policy    func() api.Policy
	devices   *identity.Pairings
	passkeys  *identity.Passkeys
	sandboxes api.Sandboxes
	metrics   http.Handler

	observes bool
	log      *slog.Logger

	shared   sharedLook // at the sandboxes
	glimpses glimpses
}

// New makes the console.
func New(o *Options) *Server {
	return &Server{
		api: o.API, address: o.Address, streams: o.Streams,
		people: o.People, approvals: o.Approvals, audit: o.Audit, levels: o.Levels, policy: o.Policy, devices: o.Devices,
		passkeys: o.Passkeys, sandboxes: o.Sandboxes, metrics: o.Metrics, observes: o.ObserveOnly, log: o.Log,
	}
}

// Routes adds the console's pages to the TCP door. Everything under /c/{key}/ needs a signed-in person.
func (s *Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /web/{version}/{file}", serveWeb)
	mux.HandleFunc("GET /{$}", s.page(s.showDoor))
	mux.HandleFunc("GET /approvals/{id}", s.page(s.showDoor)) // where links in clients and chats lead
	mux.HandleFunc("POST /sign-in", s.page(s.signIn))
	mux.HandleFunc("POST /setup", s.page(s.setUp))
	mux.HandleFunc("POST "+passkeyPrefix, s.page(s.askPasskey))
	mux.HandleFunc("POST "+passkeyPrefix+"/{key}", s.page(s.signInWithPasskey))

	person := func(pattern string, handle func(http.ResponseWriter, *http.Request, *visitor) error) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /c/{key}"+path, s.page(s.visited(handle)))
	}
	person("GET /{$}", s.showQueue)
	person("GET /events", s.follow)
	person("GET /approvals/{id}", s.showOne)
	person("POST /approvals/{id}", s.answer)
	person("POST /approvals", s.answerAll)
	person("GET /approvals/{id}/past/{proposal}", s.showPast)
	person("GET /decisions", s.showDecisions)
	person("GET /record/{seq}", s.showRecord)
	person("GET /log", s.showLog)
	person("GET /log/events", s.followLog)
	person("GET /tools", s.showMatrix)
	person("GET /tools/one", s.showOutlook)
	person("GET /tools/layers", s.showLayers)
	person("GET /sessions", s.showSessions)
	person("GET /sessions/one", s.showSession)
	person("POST /sessions/floor", s.setFloorFromPage)
	person("POST /sessions/clear", s.clearFromPage)
	person("GET /anomalies", s.showAnomalies)
	person("GET /sandboxes", s.showSandboxes)
	person("GET /sandboxes/one", s.showSandbox)
	person("GET /sandboxes/events", s.followSandboxes)
	person("POST /sandboxes/stop", s.stopFromPage)
	person("POST /sandboxes/recreate", s.recreateFromPage)
	person("POST /sandboxes/prune", s.pruneFromPage)
	person("GET /grants", s.showGrants)
	person("POST /grants/{id}/revoke", s.revokeFromPage)
	person("GET /sign-ins", s.showSignIns)
	person("POST /sign-ins/{id}/end", s.endSignIn)
	person("GET /tokens", s.showTokens)
	person("POST /tokens", s.createFromPage)
	person("POST /tokens/{id}/revoke", s.revokeTokenFromPage)
	person("GET /passkeys", s.showPasskeys)
	person("POST /passkeys/presence", s.askPresence)
	person("POST /passkeys/new", s.beginPasskey)
	person("POST /passkeys", s.addPasskey)
	person("POST /passkeys/{id}/rename", s.renamePasskey)
	person("POST /passkeys/{id}/remove", s.removePasskey)
	person("GET /devices", s.showDevices)
	person("POST /devices/{id}/approve", s.approveFromPage)
	person("POST /devices/{id}/reject", s.rejectFromPage)
	person("POST /devices/{id}/remove", s.removeFromPage)
	person("POST /devices/{id}/tokens/{role}/rotate", s.rotateFromPage)
	person("POST /devices/{id}/tokens/{role}/revoke", s.revokeDeviceTokenFromPage)
	person("GET /passphrase", s.showPassphrase)
	person("POST /passphrase", s.changeFromPage)
	person("POST /sign-out", s.signOut)
	person("POST /config", s.applyFromPage)

	mux.HandleFunc("/c/{key}/v1/", door.JSON(s.log, func(w http.ResponseWriter, r *http.Request) error {
		v, err := s.visitorOf(r)
		if err != nil {
			return err
		}
		http.StripPrefix(v.base, s.api.As(api.Caller{By: v.by, Connection: v.connection()})).ServeHTTP(w, r)
		return nil
	}))
	if s.metrics != nil {
		person("GET /metrics", func(w http.ResponseWriter, r *http.Request, _ *visitor) error {
			s.metrics.ServeHTTP(w, r)
			return nil
		})
	}
	mux.HandleFunc("/", s.page(func(http.ResponseWriter, *http.Request) error {
		return door.NewProblem(http.StatusNotFound, "", "there is no such page")
	}))
}

// page turns an error of a handler into a page, or JSON for the console's script.
func (s *Server) page(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := door.Run(s.log, handle, w, r)
		switch {
		case p == nil:
		case r.Header.Get("Accept") == "application/json":
			door.WriteJSON(w, p.Status, p)
		case p.Status == http.StatusUnauthorized:
			http.Redirect(w, r, afterSignIn(r.PathValue("id"))+"?out=1", http.StatusSeeOther)
		default:
			s.showProblem(w, r, p)
		}
	}
}
