package console

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// passkeyPrefix is where a browser at the door asks for a question to its passkey, and below which it answers. The path
// of the answer is derived from the cookie that it needs, as the console's is (cookie.go).
const passkeyPrefix = "/sign-in/passkey"

const passkeyCookie = "toolward-passkey"

// PasskeyQuestion is the answer of POST /sign-in/passkey.
type PasskeyQuestion struct {
	Question any    `json:"question"` // options of navigator.credentials.get
	Answer   string `json:"answer"`   // path to post the answer to
}

// askPasskey is POST /sign-in/passkey.
func (s *Server) askPasskey(w http.ResponseWriter, r *http.Request) error {
	site, err := s.passkeySite(r)
	if err != nil {
		return err
	}
	token, question, err := s.passkeys.BeginSignIn(site)
	if err != nil {
		return passkeyProblem(err)
	}
	path := passkeyPrefix + "/" + pathKey(token)
	http.SetCookie(w, &http.Cookie{
		Name: passkeyCookie, Value: token, Path: path, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.address.IsEncrypted(r),
	})
	door.WriteJSON(w, http.StatusOK, PasskeyQuestion{question, path})
	return nil
}

// PasskeyAnswer is the body of POST /sign-in/passkey/{key}.
type PasskeyAnswer struct {
	Answer json.RawMessage `json:"answer"`
	For    string          `json:"for,omitempty"` // approval that the person was on the way to
}

// signInWithPasskey is POST /sign-in/passkey/{key}.
func (s *Server) signInWithPasskey(w http.ResponseWriter, r *http.Request) error {
	site, err := s.passkeySite(r)
	if err != nil {
		return err
	}
	var body PasskeyAnswer
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	asked, ok := cookieOf(r, passkeyCookie)
	if !ok {
		return passkeyProblem(identity.ErrPasskeyLate)
	}
	http.SetCookie(w, &http.Cookie{Name: passkeyCookie, Path: r.URL.Path, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	token, err := s.desk.SignInWithPasskey(r.Context(), s.address.SourceOf(r), asked, site, body.Answer)
	if err != nil {
		return passkeyProblem(err)
	}
	http.SetCookie(w, signInCookie(token, s.address.IsEncrypted(r)))
	door.WriteJSON(w, http.StatusOK, map[string]string{"to": consolePrefix + pathKey(token) + afterSignIn(body.For)})
	return nil
}

// passkeyProblem says why a passkey was refused. 401 would be taken for "the sign-in has ended".
func passkeyProblem(err error) error {
	switch {
	case desk.CodeOf(err) == desk.Locked:
		return api.Problem(err)
	case errors.Is(err, identity.ErrNotSignedIn):
		return api.AnswerProblem(err)
	case errors.Is(err, identity.ErrNoPasskey):
		return door.NewProblem(http.StatusNotFound, "", "%s", err.Error())
	case errors.Is(err, identity.ErrPasskeySuspect):
		return door.NewProblem(http.StatusForbidden, "", "%s", identity.ErrPasskeySuspect.Error())
	case errors.Is(err, identity.ErrPasskey), errors.Is(err, identity.ErrPasskeyLate), errors.Is(err, identity.ErrPassphrase):
		return door.NewProblem(http.StatusForbidden, "", "%s", err.Error())
	case errors.Is(err, identity.ErrPasskeyHere):
		return door.NewProblem(http.StatusConflict, "", "%s", err.Error())
	}
	if rate := new(identity.RateError); errors.As(err, &rate) {
		return door.NewProblem(http.StatusTooManyRequests, "", "%s", rate.Error())
	}
	return err
}

// passkeyView is one line of the list of passkeys.
type passkeyView struct {
	ID, Raw    string
	Name, Site []span
	Made, Used string
	Synced     bool
	Suspect    string // when; "" for nothing wrong
}

type passkeysPage struct {
	accessPage
	Passkeys []passkeyView
	Why      string // they cannot be used at this address because
	Usable   bool   // one of them can prove presence here
}

// showPasskeys is GET /c/{key}/passkeys.
func (s *Server) showPasskeys(w http.ResponseWriter, r *http.Request, v *visitor) error {
	var notices []notice
	switch {
	case r.URL.Query().Has("added"):
		notices = append(notices, notice{"", "The passkey is added. The next time, sign in with it."})
	case r.URL.Query().Has("removed"):
		notices = append(notices, notice{"", "The passkey is removed, and every sign-in that it opened has ended."})
	}
	return s.renderPasskeys(w, r, v, http.StatusOK, notices...)
}

func (s *Server) renderPasskeys(w http.ResponseWriter, r *http.Request, v *visitor, status int, notices ...notice) error {
	p := passkeysPage{accessPage: s.newAccessPage(v, "Passkeys", "/passkeys")}
	p.Notices = notices
	var site identity.Site
	if site, p.Why = s.siteOf(r); p.Why == "" {
		p.Script, p.Usable = "passkeys.js", s.passkeys.Any(site.Name)
	}
	if s.passkeys != nil {
		list, err := s.desk.Passkeys(v.atDesk())
		if err != nil {
			return api.AnswerProblem(err)
		}
		for _, key := range list {
			view := passkeyView{
				ID: key.ID, Raw: key.Name, Name: oneLine(key.Name), Site: oneLine(key.Site), Made: moment(key.Created), Used: "never", Synced: key.Synced,
			}
			if !key.Used.IsZero() {
				view.Used = moment(key.Used)
			}
			if !key.Suspect.IsZero() {
				view.Suspect = moment(key.Suspect)
			}
			p.Passkeys = append(p.Passkeys, view)
		}
	}
	return renderPage(w, status, "passkeys", p)
}

// askPresence is POST /c/{key}/passkeys/presence: a question to a passkey, to prove that the person is there.
func (s *Server) askPresence(w http.ResponseWriter, r *http.Request, v *visitor) error {
	site, err := s.passkeySite(r)
	if err != nil {
		return err
	}
	question, err := s.desk.AskPresence(v.atDesk(), site)
	if err != nil {
		return passkeyProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, PasskeyQuestion{Question: question})
	return nil
}

// NewPasskey is the body of POST /c/{key}/passkeys/new: one of the two, shown at this moment.
type NewPasskey struct {
	Passphrase string          `json:"passphrase,omitempty"`
	Answer     json.RawMessage `json:"answer,omitempty"` // to the question of /passkeys/presence
}

// beginPasskey is POST /c/{key}/passkeys/new.
func (s *Server) beginPasskey(w http.ResponseWriter, r *http.Request, v *visitor) error {
	site, err := s.passkeySite(r)
	if err != nil {
		return err
	}
	var body NewPasskey
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	shown := identity.Presence{Passphrase: body.Passphrase, Answer: body.Answer}
	question, err := s.desk.BeginPasskey(r.Context(), v.atDesk(), s.address.SourceOf(r), site, shown)
	if err != nil {
		return passkeyProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, PasskeyQuestion{Question: question})
	return nil
}

// NamedPasskey is the body of POST /c/{key}/passkeys.
type NamedPasskey struct {
	Name   string          `json:"name"`
	Answer json.RawMessage `json:"answer"` // to the question of /passkeys/new
}

// addPasskey is POST /c/{key}/passkeys.
func (s *Server) addPasskey(w http.ResponseWriter, r *http.Request, v *visitor) error {
	site, err := s.passkeySite(r)
	if err != nil {
		return err
	}
	var body NamedPasskey
	if err := door.ReadJSON(r, &body); err != nil {
		return err
	}
	if _, err := s.desk.AddPasskey(r.Context(), v.atDesk(), site, body.Name, body.Answer); err != nil {
		return nameProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, map[string]string{"to": v.base + "/passkeys?added=1"})
	return nil
}

// nameProblem is passkeyProblem for what may be about the name that the person typed.
func nameProblem(err error) error {
	switch desk.CodeOf(err) {
	case desk.Invalid:
		return door.NewProblem(http.StatusUnprocessableEntity, "", "%s", err.Error())
	case desk.Unrecorded:
		return api.Problem(err)
	}
	return passkeyProblem(err)
}

// renamePasskey is POST /c/{key}/passkeys/{id}/rename.
func (s *Server) renamePasskey(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := parseForm(r); err != nil {
		return err
	}
	if err := s.desk.RenamePasskey(r.Context(), v.atDesk(), r.PathValue("id"), r.PostForm.Get("name")); err != nil {
		err := nameProblem(err)
		p := door.ProblemOf(err)
		if p.Status != http.StatusUnprocessableEntity {
			return err
		}
		return s.renderPasskeys(w, r, v, p.Status, notice{"warn", sentence(p.Message)})
	}
	http.Redirect(w, r, v.base+"/passkeys", http.StatusSeeOther)
	return nil
}

// removePasskey is POST /c/{key}/passkeys/{id}/remove. It may end the very sign-in that asks for it; the next page is
// the door then.
func (s *Server) removePasskey(w http.ResponseWriter, r *http.Request, v *visitor) error {
	gone, err := s.desk.RemovePasskey(r.Context(), v.atDesk(), r.PathValue("id"))
	switch {
	case err == nil:
		http.Redirect(w, r, v.base+"/passkeys?removed=1", http.StatusSeeOther)
		return nil
	case gone.ID != "":
		s.log.Error("a removed passkey is still in the store", "passkey", gone.ID, "err", err)
		return door.NewProblem(http.StatusInternalServerError, "start the gateway again once the disk is well, and look", "%s", err.Error())
	}
	return passkeyProblem(err)
}
