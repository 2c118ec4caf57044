package console

import (
	"net/http"
	"strings"
	"time"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// accessPage is the frame of the pages about who has access.
type accessPage struct {
	page
	Tabs []navItem
}

func (s *Server) newAccessPage(v *visitor, title, here string) accessPage {
	p := accessPage{page: s.newPage(v, title, "/sign-ins")}
	p.Style = "sessions.css"
	for _, tab := range []navItem{
		{Name: "Sign-ins", Path: "/sign-ins"},
		{Name: "Devices", Path: "/devices"},
		{Name: "Tokens", Path: "/tokens"},
		{Name: "Passkeys", Path: "/passkeys"},
		{Name: "Passphrase", Path: "/passphrase"},
	} {
		tab.Here = tab.Path == here
		p.Tabs = append(p.Tabs, tab)
	}
	return p
}

// tokenView is one line of the list of tokens.
type tokenView struct {
	ID                string
	For, Name         []span
	Prefix, Workspace []span
	Owner, Live       bool
	Made, Used, Ends  string
}

// madeToken is a token that was made a moment ago, with its secret.
type madeToken struct {
	For    []span
	Secret string
	Use    string
}

// tokensPage is the list of tokens with the form for a new one.
type tokensPage struct {
	accessPage
	Tokens []tokenView
	Made   *madeToken
	Form   api.NewToken // as it was sent, if it was wrong
	Lives  []choice
}

// lives are the lives of tokens that the form offers.
var lives = []choice{{Value: "720h", Name: "in 30 days"}, {Value: "2160h", Name: "in 90 days"}, {Value: "8760h", Name: "in a year"}, {Value: "", Name: "never"}}

// showTokens is GET /c/{key}/tokens.
func (s *Server) showTokens(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.renderTokens(w, v, http.StatusOK, nil, api.NewToken{Life: "2160h"})
}

func (s *Server) renderTokens(w http.ResponseWriter, v *visitor, status int, made *madeToken, form api.NewToken, notices ...notice) error {
	list, err := s.desk.Tokens(v.atDesk())
	if err != nil {
		return api.Problem(err)
	}
	p := tokensPage{accessPage: s.newAccessPage(v, "Tokens", "/tokens"), Made: made, Form: form}
	p.Notices = notices
	for _, life := range lives {
		life.Here = life.Value == form.Life
		p.Lives = append(p.Lives, life)
	}
	for i := range list {
		p.Tokens = append(p.Tokens, newTokenView(&list[i]))
	}
	return renderPage(w, status, "tokens", p)
}

func newTokenView(t *identity.Token) tokenView {
	view := tokenView{
		ID: t.ID, For: tokenFor(t), Name: oneLine(t.Name), Prefix: oneLine(t.Prefix), Workspace: oneLine(t.Workspace), Owner: t.Owner,
		Made: moment(t.Created), Used: "never", Ends: "never", Live: t.Revoked.IsZero(),
	}
	if !t.LastUsed.IsZero() {
		view.Used = moment(t.LastUsed)
	}
	switch {
	case !t.Revoked.IsZero():
		view.Ends = "revoked " + moment(t.Revoked)
	case !t.Expires.IsZero() && t.Expires.Before(time.Now()):
		view.Ends = "ended " + moment(t.Expires)
	case !t.Expires.IsZero():
		view.Ends = moment(t.Expires)
	}
	return view
}

func tokenFor(t *identity.Token) []span {
	if t.ForMetrics() {
		return oneLine("metrics")
	}
	if t.Gateway {
		return oneLine("gateway protocol")
	}
	return oneLine(t.Agent)
}

// createFromPage is POST /c/{key}/tokens. The answer is the only page that ever holds the secret.
func (s *Server) createFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := parseForm(r); err != nil {
		return err
	}
	form := api.NewToken{
		Name: strings.TrimSpace(r.PostForm.Get("name")), Agent: strings.TrimSpace(r.PostForm.Get("agent")),
		Workspace: strings.TrimSpace(r.PostForm.Get("workspace")), Owner: r.PostForm.Get("owner") == "yes", Life: r.PostForm.Get("life"),
	}
	secret, made, err := s.createToken(r, v, &form)
	if err != nil {
		p := door.ProblemOf(err)
		return s.renderTokens(w, v, p.Status, nil, form, notice{"warn", sentence(p.Message)})
	}
	shown := &madeToken{
		For: tokenFor(&made), Secret: secret,
		Use: "Give it to the agent's MCP client as the bearer token of " + s.address.ConsoleURL() + "/mcp.",
	}
	return s.renderTokens(w, v, http.StatusOK, shown, api.NewToken{Life: "2160h"})
}

func (s *Server) createToken(r *http.Request, v *visitor, form *api.NewToken) (secret string, made identity.Token, err error) {
	spec, err := form.Spec()
	if err != nil {
		return "", identity.Token{}, err
	}
	if secret, made, err = s.desk.CreateToken(r.Context(), v.atDesk(), spec); err != nil {
		return "", identity.Token{}, api.TokenProblem(err)
	}
	return secret, made, nil
}

// revokeTokenFromPage is POST /c/{key}/tokens/{id}/revoke.
func (s *Server) revokeTokenFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if _, err := s.desk.RevokeToken(r.Context(), v.atDesk(), r.PathValue("id")); err != nil {
		return api.RevokedTokenProblem(err)
	}
	http.Redirect(w, r, v.base+"/tokens", http.StatusSeeOther)
	return nil
}

// showPassphrase is GET /c/{key}/passphrase.
func (s *Server) showPassphrase(w http.ResponseWriter, _ *http.Request, v *visitor) error {
	return renderPage(w, http.StatusOK, "passphrase", s.newAccessPage(v, "Passphrase", "/passphrase"))
}

// changeFromPage is POST /c/{key}/passphrase.
func (s *Server) changeFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := parseForm(r); err != nil {
		return err
	}
	p := s.newAccessPage(v, "Passphrase", "/passphrase")
	status, said := http.StatusOK, notice{"", "The passphrase is changed. Every other sign-in has ended." + s.passkeysStay(v)}
	fresh := r.PostForm.Get("passphrase")
	if fresh != r.PostForm.Get("again") {
		status, said = http.StatusUnprocessableEntity, notice{"warn", "The two new passphrases differ."}
	} else if err := s.desk.ChangePassphrase(r.Context(), v.atDesk(), r.PostForm.Get("old"), fresh); err != nil {
		why := door.ProblemOf(api.PassphraseProblem(err))
		if why.Status == http.StatusUnauthorized {
			why.Status = http.StatusForbidden // 401 would be taken for "the sign-in has ended"
		}
		status, said = why.Status, notice{"warn", sentence(why.Message)}
	}
	p.Notices = append(p.Notices, said)
	return renderPage(w, status, "passphrase", p)
}

// passkeysStay reminds whoever changes a passphrase of the keys that open without it. Somebody who had the passphrase
// could have added one.
func (s *Server) passkeysStay(v *visitor) string {
	if s.passkeys == nil {
		return ""
	}
	if known, err := s.desk.Passkeys(v.atDesk()); err != nil || len(known) == 0 {
		return ""
	}
	return " Passkeys stay valid: look whether you know each of them."
}
