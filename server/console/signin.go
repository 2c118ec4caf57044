package console

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// doorPage is the sign-in and the set-up page.
type doorPage struct {
	page
	Host    string
	For     string // id of the approval that the person was on the way to, or ""
	Passkey bool   // one may open the console at this address
	Other   string // origin at which one may, if not at this one
}

// afterSignIn is where a person goes on to, below the console's own path: one approval, or the queue. Only a plain
// id is taken from a request, so that nobody can be sent elsewhere.
func afterSignIn(id string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		return "/"
	}
	return "/approvals/" + id
}

// showDoor is GET / and GET /approvals/{id}: set-up at the first start, else the sign-in. A browser that is signed in
// goes on by script, since only its own storage knows the console's path.
func (s *Server) showDoor(w http.ResponseWriter, r *http.Request) error {
	return s.renderDoor(w, r, http.StatusOK)
}

func (s *Server) renderDoor(w http.ResponseWriter, r *http.Request, status int, notices ...notice) error {
	p := doorPage{page: page{Title: "Sign in", Script: "door.js", Notices: notices}, Host: s.address.OriginOf(r)}
	if id := cmp.Or(r.PathValue("id"), r.PostForm.Get("for")); afterSignIn(id) != "/" {
		p.For = id
	}
	if site, why := s.siteOf(r); why == "" {
		p.Passkey = s.passkeys.Any(site.Name)
	} else {
		p.Other = s.passkeysElsewhere(r)
	}
	name := "signin"
	if s.people.NeedsSetup() {
		name, p.Title = "setup", "Choose a passphrase"
	}
	return renderPage(w, status, name, p)
}

// signIn is POST /sign-in.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(r); err != nil {
		return err
	}
	token, _, err := s.people.SignInWeb(r.Context(), s.address.SourceOf(r), r.PostForm.Get("browser"), r.PostForm.Get("passphrase"))
	if err != nil {
		p := api.SignInProblem(err)
		if p.Status == http.StatusForbidden {
			return err // nothing that the person did: shown as an internal error, told to the log
		}
		// 401 would be taken for "the sign-in has ended"; to the browser a wrong passphrase is an ordinary page.
		return s.renderDoor(w, r, http.StatusForbidden, notice{"warn", sentence(p.Message)})
	}
	s.enter(w, r, token)
	return nil
}

// setUp is POST /setup: the first passphrase, by somebody who can read the daemon's terminal.
func (s *Server) setUp(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(r); err != nil {
		return err
	}
	passphrase := r.PostForm.Get("passphrase")
	if passphrase != r.PostForm.Get("again") {
		return s.renderDoor(w, r, http.StatusUnprocessableEntity, notice{"warn", "The two passphrases differ."})
	}
	source := s.address.SourceOf(r)
	if err := s.people.SetUp(r.Context(), source, r.PostForm.Get("code"), passphrase); err != nil {
		return s.renderDoor(w, r, http.StatusUnprocessableEntity, notice{"warn", sentence(api.SignInProblem(err).Message)})
	}
	token, _, err := s.people.SignInWeb(r.Context(), source, "", passphrase)
	if err != nil {
		return err
	}
	s.enter(w, r, token)
	return nil
}

func (s *Server) enter(w http.ResponseWriter, r *http.Request, token string) {
	http.SetCookie(w, signInCookie(token, s.address.IsEncrypted(r)))
	http.Redirect(w, r, consolePrefix+pathKey(token)+afterSignIn(r.PostForm.Get("for")), http.StatusSeeOther)
}

// KnownBrowser is the answer of GET /c/{key}/browser.
type KnownBrowser struct {
	Token string `json:"token"` // goes with the passphrase at the next sign-in
}

// tellBrowser is GET /c/{key}/browser: what lets this browser sign in later while others guess.
func (s *Server) tellBrowser(w http.ResponseWriter, _ *http.Request, v *visitor) error {
	token, err := s.people.BrowserToken(v.by)
	if err != nil {
		return api.AnswerProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, KnownBrowser{token})
	return nil
}

// signOut is POST /c/{key}/sign-out.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request, v *visitor) error {
	s.people.SignOut(v.by)
	http.SetCookie(w, endedSignInCookie(v.key))
	http.Redirect(w, r, "/?out=1", http.StatusSeeOther)
	return nil
}

// signInView is one line of the list of sign-ins.
type signInView struct {
	ID     string
	Via    string
	Source []span
	By     []span // the passkey that opened it
	Since  string
	Seen   string
	Here   bool
}

// showSignIns is GET /c/{key}/sign-ins.
func (s *Server) showSignIns(w http.ResponseWriter, r *http.Request, v *visitor) error {
	list, err := s.desk.SignIns(v.atDesk())
	if err != nil {
		return api.Problem(err)
	}
	p := struct {
		accessPage
		SignIns []signInView
	}{accessPage: s.newAccessPage(v, "Sign-ins", "/sign-ins")}
	keys := map[string]string{}
	if s.passkeys != nil {
		known, err := s.desk.Passkeys(v.atDesk())
		if err != nil {
			return api.AnswerProblem(err)
		}
		for _, key := range known {
			keys[key.ID] = key.Name
		}
	}
	names := map[identity.Surface]string{
		identity.Console: "Browser", identity.Terminal: "Terminal", identity.Foreground: "Terminal of the gateway",
	}
	for _, one := range list {
		p.SignIns = append(p.SignIns, signInView{
			ID: one.ID, Via: names[one.Via], Source: oneLine(one.Source), By: oneLine(keys[one.Passkey]), Since: moment(one.Started),
			Seen: moment(one.LastSeen), Here: one.ID == v.by.SignIn(),
		})
	}
	return renderPage(w, http.StatusOK, "signins", p)
}

// endSignIn is POST /c/{key}/sign-ins/{id}/end.
func (s *Server) endSignIn(w http.ResponseWriter, r *http.Request, v *visitor) error {
	id := r.PathValue("id")
	if id == v.by.SignIn() {
		return s.signOut(w, r, v)
	}
	if err := s.desk.EndSignIn(v.atDesk(), id); err != nil {
		return door.NewProblem(http.StatusNotFound, "", "%s", err.Error())
	}
	http.Redirect(w, r, v.base+"/sign-ins", http.StatusSeeOther)
	return nil
}
