package api

import (
	"net/http"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/server/door"
)

// Grants is the answer of GET /v1/grants.
type Grants struct {
	Grants []*approval.Grant `json:"grants"`
}

func (s *Server) apiGrants(w http.ResponseWriter, _ *http.Request, c Caller) error {
	list, err := s.desk.Grants(c.visitor())
	if err != nil {
		return GrantProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, Grants{append([]*approval.Grant{}, list...)})
	return nil
}

func (s *Server) apiRevokeGrant(w http.ResponseWriter, r *http.Request, c Caller) error {
	grant, err := s.desk.RevokeGrant(r.Context(), c.visitor(), r.PathValue("id"))
	if err != nil {
		return GrantProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, grant)
	return nil
}

// GrantProblem says why a grant was not revoked, or only until the next start.
func GrantProblem(err error) error {
	switch desk.CodeOf(err) {
	case desk.Unknown:
		return door.NewProblem(http.StatusNotFound, "", "%s", err.Error())
	case desk.Failed:
		return door.NewProblem(http.StatusInternalServerError, "revoke it again once the disk is well", "%s", err.Error())
	}
	return Problem(err)
}

// Tokens is the answer of GET /v1/tokens.
type Tokens struct {
	Tokens []identity.Token `json:"tokens"`
}

func (s *Server) apiTokens(w http.ResponseWriter, _ *http.Request, c Caller) error {
	list, err := s.desk.Tokens(c.visitor())
	if err != nil {
		return Problem(err)
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
	spec, err := body.Spec()
	if err != nil {
		return err
	}
	secret, made, err := s.desk.CreateToken(r.Context(), c.visitor(), spec)
	if err != nil {
		return TokenProblem(err)
	}
	door.WriteJSON(w, http.StatusCreated, CreatedToken{made, secret})
	return nil
}

// Spec is the token that is wanted.
func (t *NewToken) Spec() (identity.TokenSpec, error) {
	spec := identity.TokenSpec{Name: t.Name, Metrics: t.Metrics, Gateway: t.Gateway, Agent: t.Agent, Workspace: t.Workspace, Owner: t.Owner}
	if t.Life != "" {
		life, err := time.ParseDuration(t.Life)
		if err != nil || life <= 0 {
			return spec, door.NewProblem(http.StatusBadRequest, "use a duration such as 720h", "life: %s", door.QuoteShort(t.Life))
		}
		spec.Life = life
	}
	return spec, nil
}

func (s *Server) apiRevokeToken(w http.ResponseWriter, r *http.Request, c Caller) error {
	token, err := s.desk.RevokeToken(r.Context(), c.visitor(), r.PathValue("id"))
	if err != nil {
		return RevokedTokenProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, token)
	return nil
}

// TokenProblem says why no token was made.
func TokenProblem(err error) error {
	switch desk.CodeOf(err) {
	case desk.NotAllowed, desk.Unrecorded, desk.Locked:
		return Problem(err)
	}
	return door.NewProblem(http.StatusUnprocessableEntity, "", "%s", err.Error())
}

// RevokedTokenProblem says why a token was not revoked, or only until the next start.
func RevokedTokenProblem(err error) error {
	if desk.CodeOf(err) == desk.NotAllowed {
		return Problem(err)
	}
	return door.NewProblem(http.StatusNotFound, "", "%s", err.Error())
}

// SignIns is the answer of GET /v1/sign-ins.
type SignIns struct {
	SignIns []identity.SignIn `json:"signIns"`
}

func (s *Server) apiSignIns(w http.ResponseWriter, _ *http.Request, c Caller) error {
	list, err := s.desk.SignIns(c.visitor())
	if err != nil {
		return Problem(err)
	}
	door.WriteJSON(w, http.StatusOK, SignIns{append([]identity.SignIn{}, list...)})
	return nil
}

func (s *Server) apiEndSignIn(w http.ResponseWriter, r *http.Request, c Caller) error {
	if err := s.desk.EndSignIn(c.visitor(), r.PathValue("id")); err != nil {
		if desk.CodeOf(err) == desk.NotAllowed {
			return Problem(err)
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
	Tools       []ToolView            `json:"tools"`
	Unavailable []string              `json:"unavailable"` // tools that the policy knows and this gateway does not have
	Layers      []visible.StepView    `json:"layers"`
	Warnings    []visible.ListWarning `json:"warnings"`
	Sandbox     visible.SandboxPolicy `json:"sandbox"` // of the agent's sandboxed sessions, whether or not this is one
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
