package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/identity"
)

// caller is who makes an API request.
type caller struct {
	by         identity.Authority
	connection string
	terminal   bool  // through the socket, by a command that a person typed
	why        error // why this is no signed-in person; nil if it is one, or nobody tried
}

type callerKey struct{}

func withCaller(next http.Handler, c caller) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// Status is the answer of GET /v1/status. It holds nothing that a requester must not know.
type Status struct {
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Console  string    `json:"console"`  // URL
	Mode     string    `json:"mode"`     // enforce, or shadow: what would ask runs
	Setup    bool      `json:"setup"`    // no passphrase has been set yet
	SignedIn bool      `json:"signedIn"` // the caller is a signed-in person
	Name     string    `json:"name"`     // what records call the caller
	Waiting  *int      `json:"waiting,omitempty"`
}

// mode is teg.mode as it is in force.
func (s *Server) mode() string {
	if s.observes {
		return "shadow"
	}
	return "enforce"
}

func (s *Server) apiStatus(w http.ResponseWriter, _ *http.Request, c caller) error {
	status := Status{
		Version: s.version, PID: os.Getpid(), Started: s.started, Console: s.URL(), Mode: s.mode(), Setup: s.people.NeedsSetup(),
		SignedIn: c.by.May(identity.RightWatch) == nil, Name: c.by.Name(),
	}
	if status.SignedIn {
		n := s.approvals.Count()
		status.Waiting = &n
	}
	writeJSON(w, http.StatusOK, status)
	return nil
}

// Approval is an approval as the API shows it: the record, and what an answer must bring back.
type Approval struct {
	*approval.Record
	Slug string `json:"slug"`           // short id that people may type
	Seen string `json:"seen,omitempty"` // stamp of this showing, for the answer
	Said string `json:"said"`           // what became of it, in words
}

func (s *Server) apiApprovalOf(r *approval.Record, by approval.Authority) Approval {
	a := Approval{Record: r, Slug: r.Slug(), Said: said(r)}
	if r.State == approval.StatePending {
		a.Seen = s.approvals.MarkShown(r.ID, by)
	}
	return a
}

// Approvals is the answer of GET /v1/approvals, in the order of arrival.
type Approvals struct {
	Approvals []Approval `json:"approvals"`
}

func (s *Server) apiApprovals(w http.ResponseWriter, r *http.Request, c caller) error {
	var list []*approval.Record
	var err error
	switch state := r.URL.Query().Get("state"); state {
	case "", "pending":
		list, err = s.waiting(r, c.by)
	case "recent":
		list, err = s.approvals.Recent(r.Context(), c.by, 100)
	default:
		return problem(http.StatusBadRequest, "use state=pending or state=recent", "unknown state %s", quoteShort(state))
	}
	if err != nil {
		return answerProblem(err)
	}
	out := Approvals{Approvals: make([]Approval, 0, len(list))}
	for _, rec := range list {
		out.Approvals = append(out.Approvals, s.apiApprovalOf(rec, c.by))
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (s *Server) apiApproval(w http.ResponseWriter, r *http.Request, c caller) error {
	rec, err := s.approvals.Get(r.Context(), c.by, r.PathValue("id"))
	if err != nil {
		return answerProblem(err)
	}
	writeJSON(w, http.StatusOK, s.apiApprovalOf(rec, c.by))
	return nil
}

// Answer is the body of POST /v1/approvals/{id}.
type Answer struct {
	Decision string `json:"decision"`           // allow-once, allow-always or deny
	Reason   string `json:"reason,omitempty"`   // with deny: at most 500 characters, for the model
	Proposal int    `json:"proposal,omitempty"` // with allow-always: which of the proposals; the first is 0
	Life     string `json:"life,omitempty"`     // with allow-always: shorter than proposed, such as "10m"
	Uses     int64  `json:"uses,omitempty"`     // with allow-always: how many later calls it allows; 0 is any number
	// Seen is the stamp that the approval was listed with. In a terminal it may be left out when a person typed
	// the id; the approval must then be half a second old.
	Seen string `json:"seen,omitempty"`
}

// narrow is what an "always" keeps less than its proposal.
func (a *Answer) narrow() (n approval.Narrow, err error) {
	n.Uses = a.Uses
	if a.Life != "" {
		if n.Life, err = time.ParseDuration(a.Life); err != nil || n.Life <= 0 {
			return n, problem(http.StatusBadRequest, "write it as 10m or 24h", "life %s is not a time", quoteShort(a.Life))
		}
	}
	return n, nil
}

func (s *Server) apiResolve(w http.ResponseWriter, r *http.Request, c caller) error {
	var a Answer
	if err := readJSON(r, &a); err != nil {
		return err
	}
	if p := checkAnswer(a.Decision, a.Reason); p != nil {
		return p
	}
	narrow, err := a.narrow()
	if err != nil {
		return err
	}
	rec, err := s.approvals.Resolve(r.Context(), approval.Response{
		ID: r.PathValue("id"), Decision: a.Decision, Reason: a.Reason, Proposal: a.Proposal, Narrow: narrow, By: c.by,
		Connection: c.connection, Shown: a.Seen, Typed: c.terminal && a.Seen == "",
	})
	if err != nil && rec == nil {
		return answerProblem(err)
	}
	if err != nil {
		s.log.Error("an answer counts, but could not be recorded", "approval", rec.ID, "err", err)
	}
	writeJSON(w, http.StatusOK, s.apiApprovalOf(rec, c.by))
	return nil
}

// WatchEvent is the data of the events "approval" and "resolved" of GET /v1/approvals/events. The event "sync" has
// an Approvals: everything that waits now; it comes first and whenever events were lost.
type WatchEvent = Approval

// apiWatch follows approvals. Whoever watches counts as an approver, so it needs the right to answer.
func (s *Server) apiWatch(w http.ResponseWriter, r *http.Request, c caller) error {
	if !s.streams.enter() {
		return problem(http.StatusServiceUnavailable, "close some of them", "%d event streams are open already", maxStreams)
	}
	defer s.streams.leave()
	ctx, cancel := endedBy(r, s.stopping)
	defer cancel()
	news, err := s.approvals.Subscribe(c.by, eventBuffer)
	if err != nil {
		return answerProblem(err)
	}
	defer news.Close()
	presence, err := s.approvals.Attach(approval.Approver{Name: "watch", By: c.by, Connection: c.connection})
	if err != nil {
		return answerProblem(err)
	}
	defer presence.Close()
	out, err := openStream(w, writePatience)
	if err != nil {
		return nil // the reader has gone; there is nobody to tell
	}
	sync := func() error {
		list, err := s.waiting(r, c.by)
		if err != nil {
			return err
		}
		all := Approvals{Approvals: make([]Approval, 0, len(list))}
		for _, rec := range list {
			all.Approvals = append(all.Approvals, s.apiApprovalOf(rec, c.by))
		}
		return out.send("sync", all)
	}
	err = sync()
	beats := time.NewTicker(heartbeat)
	defer beats.Stop()
	for err == nil && ctx.Err() == nil {
		select {
		case event, open := <-news.C:
			switch {
			case !open:
				return nil
			case event.Missed:
				err = sync()
			case event.Type == approval.EventRequested:
				err = out.send("approval", s.apiApprovalOf(&event.Approval, c.by))
			default:
				err = out.send("resolved", s.apiApprovalOf(&event.Approval, c.by))
			}
		case <-beats.C:
			err = out.beat()
		case <-ctx.Done():
		}
	}
	return nil
}

// ExplainRequest is the body of POST /v1/explain: the call to explain. Nothing is asked, run or recorded.
type ExplainRequest struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Agent     string          `json:"agent"`
	Session   string          `json:"session,omitempty"` // default: a session of the agent that has seen nothing
	WorkDir   string          `json:"workDir,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Depth     int             `json:"depth,omitempty"`
	Owner     bool            `json:"owner,omitempty"`
	Context   string          `json:"context,omitempty"`
	Host      string          `json:"host,omitempty"`
	Hooks     bool            `json:"hooks,omitempty"` // call plug-ins too

	// What layers of the tool policy look at besides.
	Surface   toolward.Surface `json:"surface,omitempty"` // default: mcp
	Provider  string           `json:"provider,omitempty"`
	Model     string           `json:"model,omitempty"`
	Sandboxed bool             `json:"sandboxed,omitempty"`
	Sender    string           `json:"sender,omitempty"`
}

func (e *ExplainRequest) call() (toolward.Call, error) {
	agent := strings.ToLower(e.Agent)
	key := toolward.SessionKey(e.Session)
	if e.Session == "" {
		var err error
		if key, err = toolward.NewSessionKey(agent, "explain"); err != nil {
			return toolward.Call{}, problem(http.StatusBadRequest, "name the agent, for instance \"main\"", "%s", err.Error())
		}
	}
	if len(e.Arguments) == 0 {
		e.Arguments = json.RawMessage("{}")
	}
	call := toolward.Call{
		Tool: e.Tool, Arguments: e.Arguments, Session: key, Surface: cmp.Or(e.Surface, toolward.SurfaceMCP),
		WorkDir: e.WorkDir, Host: toolward.Host(e.Host),
		Caller: toolward.Caller{
			Agent: agent, Depth: e.Depth, Owner: e.Owner, Context: e.Context, Workspace: e.Workspace,
			Provider: e.Provider, Model: e.Model, Sandboxed: e.Sandboxed, Sender: e.Sender,
		},
	}
	if call.Caller.Context == "" {
		call.Caller.Context = "main"
	}
	if call.WorkDir == "" {
		call.WorkDir = e.Workspace
	}
	if call.Host == "" {
		call.Host = toolward.HostGateway
	}
	return call, nil
}

func (s *Server) apiShutdown(w http.ResponseWriter, _ *http.Request, c caller) error {
	s.log.Info("shutdown asked for", "by", c.by.Name())
	writeJSON(w, http.StatusOK, struct {
		Stopping bool `json:"stopping"`
	}{true})
	go s.stop() // after the answer: stopping waits for requests in flight
	return nil
}
