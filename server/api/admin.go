package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/server/door"
)

// Grants is the answer of GET /v1/grants.
type Grants struct {
	Grants []*approval.Grant `json:"grants"`
}

func (s *Server) apiGrants(w http.ResponseWriter, _ *http.Request, _ Caller) error {
	door.WriteJSON(w, http.StatusOK, Grants{append([]*approval.Grant{}, s.approvals.Grants()...)})
	return nil
}

func (s *Server) apiRevokeGrant(w http.ResponseWriter, r *http.Request, c Caller) error {
	grant, err := s.Revoke(r, c.By)
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, grant)
	return nil
}

// revoke ends the grant that the request names. A grant that is gone from memory only is an error that says so.
func (s *Server) Revoke(r *http.Request, by identity.Authority) (*approval.Grant, error) {
	grant, err := s.approvals.Revoke(r.Context(), by, r.PathValue("id"))
	if grant != nil {
		s.Note(r, audit.TypeGrant, map[string]any{
			"event": "revoked", "grant": grant.ID, "tool": grant.Tool, "agent": grant.Agent, "text": grant.Text, "by": by.Name(),
		})
	}
	switch {
	case err == nil:
		return grant, nil
	case grant == nil:
		return nil, door.NewProblem(http.StatusNotFound, "", "%s", err.Error())
	}
	s.log.Error("a revocation could not be recorded", "grant", grant.ID, "err", err)
	return nil, door.NewProblem(http.StatusInternalServerError, "revoke it again once the disk is well", "%s", err.Error())
}

// Tokens is the answer of GET /v1/tokens.
type Tokens struct {
	Tokens []identity.Token `json:"tokens"`
}

func (s *Server) apiTokens(w http.ResponseWriter, _ *http.Request, c Caller) error {
	list, err := s.people.Tokens(c.By)
	if err != nil {
		return AnswerProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, Tokens{append([]identity.Token{}, list...)})
	return nil
}

// NewToken is the body of POST /v1/tokens.
type NewToken struct {
	Name      string `json:"name,omitempty"`
	Metrics   bool   `json:"metrics,omitempty"` // it reads /metrics, and is no agent's
	Gateway   bool   `json:"gateway,omitempty"` // it opens the gateway protocol, and is no agent's
	Agent     string `json:"agent,omitempty"`
	Workspace string `json:"workspace,omitempty"` // absolute
	Owner     bool   `json:"owner,omitempty"`
	Life      string `json:"life,omitempty"` // such as "720h"; without it the token does not expire
}

// CreatedToken is the answer of POST /v1/tokens. The secret is shown this once.
type CreatedToken struct {
	identity.Token
	Secret string `json:"secret"`
}

func (s *Server) apiCreateToken(w http.ResponseWriter, r *http.Request, c Caller) error {
	var body NewToken
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	made, err := s.CreateToken(r, c.By, body)
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusCreated, made)
	return nil
}

func (s *Server) CreateToken(r *http.Request, by identity.Authority, body NewToken) (CreatedToken, error) {
	spec := identity.TokenSpec{Name: body.Name, Metrics: body.Metrics, Gateway: body.Gateway, Agent: body.Agent, Workspace: body.Workspace, Owner: body.Owner}
	if body.Life != "" {
		life, err := time.ParseDuration(body.Life)
		if err != nil || life <= 0 {
			return CreatedToken{}, door.NewProblem(http.StatusBadRequest, "use a duration such as 720h", "life: %s", door.QuoteShort(body.Life))
		}
		spec.Life = life
	}
	secret, token, err := s.people.CreateToken(r.Context(), by, spec, nil)
	if err != nil {
		return CreatedToken{}, door.NewProblem(http.StatusUnprocessableEntity, "", "%s", err.Error())
	}
	s.Note(r, audit.TypeConfig, map[string]any{
		"event": "token-created", "token": token.ID, "agent": token.Agent, "owner": token.Owner, "metrics": token.ForMetrics(), "gateway": token.Gateway, "by": by.Name(),
	})
	return CreatedToken{token, secret}, nil
}

func (s *Server) apiRevokeToken(w http.ResponseWriter, r *http.Request, c Caller) error {
	token, err := s.RevokeToken(r, c.By)
	if err != nil {
		return err
	}
	door.WriteJSON(w, http.StatusOK, token)
	return nil
}

func (s *Server) RevokeToken(r *http.Request, by identity.Authority) (identity.Token, error) {
	token, err := s.people.RevokeToken(r.Context(), by, r.PathValue("id"))
	if err != nil {
		return identity.Token{}, door.NewProblem(http.StatusNotFound, "", "%s", err.Error())
	}
	s.Note(r, audit.TypeConfig, map[string]any{"event": "token-revoked", "token": token.ID, "by": by.Name()})
	return token, nil
}

// note records what a person did here. That it cannot be recorded does not undo it.
func (s *Server) Note(r *http.Request, kind audit.Type, data map[string]any) {
	// Whoever hangs up before it is written must not have done it unseen.
	if _, err := s.audit.Append(context.WithoutCancel(r.Context()), audit.Event{Type: kind, Data: data, Durable: true}); err != nil {
		s.log.Error("an event could not be recorded", "type", kind, "err", err)
	}
}

// SignIns is the answer of GET /v1/sign-ins.
type SignIns struct {
	SignIns []identity.Session `json:"signIns"`
}

func (s *Server) apiSignIns(w http.ResponseWriter, _ *http.Request, c Caller) error {
	list, err := s.people.Sessions(c.By)
	if err != nil {
		return AnswerProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, SignIns{append([]identity.Session{}, list...)})
	return nil
}

func (s *Server) apiEndSignIn(w http.ResponseWriter, r *http.Request, c Caller) error {
	if err := s.people.EndSession(c.By, r.PathValue("id")); err != nil {
		if errors.Is(err, identity.ErrNotSignedIn) {
			return AnswerProblem(err)
		}
		return door.NewProblem(http.StatusNotFound, "", "%s", err.Error())
	}
	door.WriteJSON(w, http.StatusOK, struct{}{})
	return nil
}

// ToolView is one tool of an explanation without a call.
type ToolView struct {
	Tool        string           `json:"tool"`
	Description string           `json:"description"`
	Visible     bool             `json:"visible"`
	Removed     *toolward.Reason `json:"removed,omitempty"` // the first layer that took it away
}

// ToolViews is the answer of POST /v1/explain without a tool: which tools the caller sees, and what makes it so.
type ToolViews struct {
	Tools       []ToolView           `json:"tools"`
	Unavailable []string             `json:"unavailable"` // tools that the policy knows and this gateway does not have
	Layers      []policy.StepView    `json:"layers"`
	Warnings    []policy.ListWarning `json:"warnings"`
	Sandbox     policy.SandboxPolicy `json:"sandbox"` // of the agent's sandboxed sessions, whether or not this is one
}

func (s *Server) apiExplain(w http.ResponseWriter, r *http.Request, _ Caller) error {
	var body ExplainRequest
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	call, err := body.call()
	if err != nil {
		return err
	}
	if body.Tool != "" {
		door.WriteJSON(w, http.StatusOK, s.gateway.Explain(r.Context(), call, toolward.ExplainOptions{Hooks: body.Hooks}))
		return nil
	}
	caller := call.Caller
	caller.Session, caller.Surface = call.Session, call.Surface // as the gateway does for a call
	door.WriteJSON(w, http.StatusOK, toolViews(s.policy(), caller))
	return nil
}

// toolViews explains what a caller sees.
func toolViews(p Policy, c toolward.Caller) ToolViews {
	out := ToolViews{
		Tools: []ToolView{}, Unavailable: []string{}, Layers: p.Layers(c), Warnings: p.ListWarnings(c), Sandbox: p.SandboxTools(c),
	}
	for _, v := range p.View(c) {
		view := ToolView{Tool: v.Tool.Name, Description: v.Tool.Description, Visible: v.Visible}
		if !v.Visible {
			view.Removed = &v.Reason
		}
		out.Tools = append(out.Tools, view)
	}
	for _, known := range p.KnownTools() {
		if !known.Available {
			out.Unavailable = append(out.Unavailable, known.Name)
		}
	}
	return out
}
