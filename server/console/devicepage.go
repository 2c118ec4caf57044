package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// scopeWords are what the scopes of a device mean, for people who decide about them.
var scopeWords = map[string]string{
	identity.ScopeRead:      "see calls, decisions and sessions",
	identity.ScopeWrite:     "send calls, and see what there is to see",
	identity.ScopeApprovals: "answer calls that wait, as you",
	identity.ScopePairing:   "let other devices in, as far as its own scopes go",
	identity.ScopeAdmin:     "everything that you may do",
}

// scopeView is one scope in its own name and in words.
type scopeView struct{ Name, Words []span }

func scopesOf(scopes []string) []scopeView {
	var out []scopeView
	for _, s := range scopes {
		out = append(out, scopeView{oneLine(s), oneLine(cmp.Or(scopeWords[s], "nothing that this version knows"))})
	}
	return out
}

// pendingView is a device that waits for a person.
type pendingView struct {
	ID, Seen      string
	Name          []span
	Client, Where []span
	Key           []span
	Role          []span
	Scopes        []scopeView
	Why, Asked    string
	Known         bool
}

var pairReasons = map[identity.PairReason]string{
	identity.NotPaired:       "It was never here before.",
	identity.RoleUpgrade:     "It is paired, and wants to be something else, too.",
	identity.ScopeUpgrade:    "It is paired, and wants more than it has.",
	identity.MetadataUpgrade: "It is paired, and says that it is another kind of device by now. If you did not change it, refuse.",
}

// pairedView is a device that may connect.
type pairedView struct {
	ID, Seen      string
	Name          []span
	Client, Key   []span
	Roles, Person []span
	Scopes        []scopeView
	Vouched       bool // for all of its scopes
	Unvouched     bool // a person vouched for none of it
	Paired, Last  string
	Tokens        []deviceTokenView
}

// deviceTokenView is the credential of a device for one role.
type deviceTokenView struct {
	Role []span
	Raw  string
	Said string
	Live bool
}

type devicesPage struct {
	accessPage
	Off     bool
	Pending []pendingView
	Paired  []pairedView
}

// showDevices is GET /c/{key}/devices.
func (s *Server) showDevices(w http.ResponseWriter, r *http.Request, v *visitor) error {
	var notices []notice
	if said := deviceNews[r.URL.Query().Get("done")]; said != "" {
		notices = append(notices, notice{"", said})
	}
	return s.renderDevices(w, v, http.StatusOK, notices...)
}

var deviceNews = map[string]string{
	"approved": "The device is paired. Whoever holds its key has your rights as far as its scopes go.",
	"rejected": "The device is refused. It may ask again.",
	"removed":  "The device is forgotten, and its connections have ended.",
	"rotated":  "The token is replaced. The device gets the new one when it connects with the gateway's own secret or token; the old one is worth nothing.",
	"revoked":  "The token is revoked.",
}

func (s *Server) renderDevices(w http.ResponseWriter, v *visitor, status int, notices ...notice) error {
	pending, paired, err := s.desk.Devices(v.atDesk())
	off := desk.CodeOf(err) == desk.NotKept
	if err != nil && !off {
		return api.DeviceProblem(err)
	}
	p := devicesPage{accessPage: s.newAccessPage(v, "Devices", "/devices"), Off: off}
	p.Notices = notices
	for i := range pending {
		p.Pending = append(p.Pending, newPendingView(&pending[i]))
	}
	for i := range paired {
		p.Paired = append(p.Paired, newPairedView(&paired[i]))
	}
	return renderPage(w, status, "devices", p)
}

func newPendingView(r *identity.PairRequest) pendingView {
	return pendingView{
		ID: r.ID, Seen: r.Stamp(), Name: oneLine(cmp.Or(r.Name, r.ClientID, "a device without a name")),
		Client: oneLine(strings.Join(slices.DeleteFunc([]string{r.ClientID, r.Platform, r.Family}, func(s string) bool { return s == "" }), ", ")),
		Where:  oneLine(cmp.Or(r.IP, "this machine")), Key: oneLine(r.DeviceID), Role: oneLine(string(r.Role)), Scopes: scopesOf(r.Scopes),
		Why: pairReasons[r.Reason], Asked: moment(r.Created), Known: r.Repair,
	}
}

func newPairedView(d *identity.PairedDevice) pairedView {
	view := pairedView{
		ID: d.ID, Seen: d.Stamp(), Name: oneLine(cmp.Or(d.Name, d.ClientID, "a device without a name")),
		Client: oneLine(strings.Join(slices.DeleteFunc([]string{d.ClientID, d.Platform, d.IP}, func(s string) bool { return s == "" }), ", ")),
		Key:    oneLine(d.ID), Person: oneLine(d.Person), Scopes: scopesOf(d.Scopes), Paired: moment(d.Approved), Last: "never",
		Vouched: len(d.Vouched) > 0 && identity.CoversAll(d.Vouched, d.Scopes), Unvouched: len(d.Vouched) == 0,
	}
	if !d.Seen.IsZero() {
		view.Last = moment(d.Seen)
	}
	var roles []string
	for _, role := range d.Roles {
		roles = append(roles, string(role))
		t, have := d.Tokens[role]
		if !have {
			continue
		}
		token := deviceTokenView{Role: oneLine(string(role)), Raw: string(role), Live: t.Revoked.IsZero(), Said: "made " + moment(t.Created)}
		if !t.Rotated.IsZero() {
			token.Said = "replaced " + moment(t.Rotated)
		}
		if !token.Live {
			token.Said = "revoked " + moment(t.Revoked)
		}
		view.Tokens = append(view.Tokens, token)
	}
	view.Roles = oneLine(strings.Join(roles, ", "))
	return view
}

// approveFromPage is POST /c/{key}/devices/{id}/approve: for exactly what the page showed.
func (s *Server) approveFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := parseForm(r); err != nil {
		return err
	}
	_, err := s.desk.ApproveDeviceSeen(r.Context(), v.atDesk(), r.PathValue("id"), r.PostForm.Get("seen"))
	return s.deviceDone(w, r, v, "approved", err)
}

// rejectFromPage is POST /c/{key}/devices/{id}/reject.
func (s *Server) rejectFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	_, err := s.desk.RejectDevice(r.Context(), v.atDesk(), r.PathValue("id"))
	return s.deviceDone(w, r, v, "rejected", err)
}

// removeFromPage is POST /c/{key}/devices/{id}/remove.
func (s *Server) removeFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.deviceDone(w, r, v, "removed", s.desk.RemoveDevice(r.Context(), v.atDesk(), r.PathValue("id")))
}

// rotateFromPage is POST /c/{key}/devices/{id}/tokens/{role}/rotate. The new token is told to the device only.
func (s *Server) rotateFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	// Whoever closes the page at once has still replaced it.
	ctx := context.WithoutCancel(r.Context())
	_, err := s.desk.RotateDeviceToken(ctx, v.atDesk(), r.PathValue("id"), identity.Role(r.PathValue("role")), nil)
	return s.deviceDone(w, r, v, "rotated", err)
}

// revokeDeviceTokenFromPage is POST /c/{key}/devices/{id}/tokens/{role}/revoke.
func (s *Server) revokeDeviceTokenFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	_, err := s.desk.RevokeDeviceToken(r.Context(), v.atDesk(), r.PathValue("id"), identity.Role(r.PathValue("role")))
	return s.deviceDone(w, r, v, "revoked", err)
}

// deviceDone shows the devices again after one thing was done to one of them, or was not.
func (s *Server) deviceDone(w http.ResponseWriter, r *http.Request, v *visitor, done string, err error) error {
	switch desk.CodeOf(err) {
	case "":
		http.Redirect(w, r, v.base+"/devices?done="+done, http.StatusSeeOther)
		return nil
	case desk.NotAllowed, desk.NotKept:
		return api.DeviceProblem(err)
	case desk.Unknown:
		return s.renderDevices(w, v, http.StatusNotFound, notice{"warn", "That device waits or is paired no more: somebody else was first, or five minutes are over."})
	case desk.Changed:
		return s.renderDevices(w, v, http.StatusConflict, notice{"warn", "Nothing was approved: the device asks for something else by now. Look at it again."})
	}
	p := door.ProblemOf(api.DeviceProblem(err))
	if p.Status == http.StatusInternalServerError {
		return err
	}
	return s.renderDevices(w, v, p.Status, notice{"warn", sentence(p.Message)})
}
