package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/server/api"
)

// grantView is one line of the list of grants.
type grantView struct {
	ID      string
	Words   []span // what people were told it would allow
	By      []span
	Made    string
	Matches []named // how it recognizes a later call
	Used    string
	Last    string // "" if it was never used
	Left    string
	Ends    string
}

// showGrants is GET /c/{key}/grants.
func (s *Server) showGrants(w http.ResponseWriter, r *http.Request, v *visitor) error {
	p := struct {
		page
		Grants []grantView
	}{page: s.newPage(v, "Grants", "/grants")}
	list, err := s.desk.Grants(v.atDesk())
	if err != nil {
		return api.GrantProblem(err)
	}
	for _, g := range list {
		p.Grants = append(p.Grants, newGrantView(g))
	}
	return renderPage(w, http.StatusOK, "grants", p)
}

func newGrantView(g *approval.Grant) grantView {
	view := grantView{
		ID: g.ID, Words: oneLine(sentence(g.Text)), By: oneLine(g.CreatedBy), Made: moment(time.UnixMilli(g.CreatedMs)),
		Used: "never", Left: "any number", Ends: moment(time.UnixMilli(g.ExpiresMs)),
	}
	if g.MaxUses > 0 {
		view.Left = fmt.Sprintf("%d of %d", max(0, g.MaxUses-g.Uses), g.MaxUses)
	}
	if g.Uses > 0 {
		view.Used, view.Last = fmt.Sprintf("%d ×", g.Uses), moment(time.UnixMilli(g.LastUsedMs))
	}
	add := func(name, text string) {
		if text != "" {
			view.Matches = append(view.Matches, named{name, oneLine(text)})
		}
	}
	add("tool", strings.TrimSpace(g.Tool+" "+strings.Join(g.Actions, ", ")))
	add("agent", g.Agent)
	if g.Scope == approval.ScopeSession {
		add("session", string(g.Session))
	}
	name, text := matchWords(&g.Match)
	add(name, text)
	return view
}

// matchWords say by what a grant recognizes a later call.
func matchWords(m *approval.Match) (name, text string) {
	switch m.Kind {
	case toolward.GrantExact, toolward.GrantExec:
		return "digest", shortDigest(m.Digest)
	case toolward.GrantPath:
		ops := []string{string(toolward.OpWrite)}
		if len(m.Ops) > 0 {
			ops = nil
			for _, op := range m.Ops {
				ops = append(ops, string(op))
			}
		}
		return strings.Join(ops, ", ") + " in", m.Prefix
	case toolward.GrantHost:
		return "host", (&url.URL{Scheme: m.Scheme, Host: m.Host + ":" + strconv.Itoa(m.Port)}).String()
	case toolward.GrantRecipient:
		text = display.Words(slices.DeleteFunc([]string{m.Channel, m.Account, m.To, m.Thread}, func(part string) bool { return part == "" })...)
		if m.Attachments {
			text += ", with attachments"
		}
		return "recipient", text
	}
	return string(m.Kind), m.ID
}

// revokeFromPage is POST /c/{key}/grants/{id}/revoke.
func (s *Server) revokeFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if _, err := s.desk.RevokeGrant(r.Context(), v.atDesk(), r.PathValue("id")); err != nil {
		return api.GrantProblem(err)
	}
	http.Redirect(w, r, v.base+"/grants", http.StatusSeeOther)
	return nil
}
