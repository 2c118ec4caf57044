package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// portsPart is what listens in a sandbox, and what of it is open on this machine. The event stream replaces it.
type portsPart struct {
	Base, Name, Seen string
	May              bool // open and close
	Ports            []portView
	More             bool
}

// portView is one port.
type portView struct {
	Number  string
	Program []span
	Listens bool // now
	Local   bool
	// At is where it is open; "" if it is not. Why says why that is another number.
	At, Why string
}

func newPortsPart(v *visitor, i *fleet.Info, more bool, forwards []api.PortForward) portsPart {
	part := portsPart{Base: v.base, Name: i.Name, Seen: seenOf(i), May: v.atDesk().May(desk.ForwardPorts) == nil, More: more}
	at := map[uint16]int{}
	for _, p := range i.Ports {
		at[p.Port] = len(part.Ports)
		part.Ports = append(part.Ports, portView{Number: strconv.Itoa(int(p.Port)), Program: oneLine(p.Program), Listens: true, Local: p.Local})
	}
	for _, f := range forwards {
		place, listens := at[f.Port]
		if !listens {
			place = len(part.Ports)
			part.Ports = append(part.Ports, portView{Number: strconv.Itoa(int(f.Port)), Local: true})
		}
		part.Ports[place].At, part.Ports[place].Why = f.URL(), f.Why
	}
	return part
}

// tellPorts sends what listens now, if that has changed.
func (f *sandboxFollower) tellPorts(ctx context.Context, i fleet.Info) error {
	ports, err := f.server.desk.SandboxPorts(ctx, f.visitor.atDesk(), i.Name)
	if err != nil { // it does not run, or does not answer
		ports.Ports = nil
	}
	i.Ports = ports.Ports
	return f.tellPart("ports", "boxports", newPortsPart(f.visitor, &i, ports.More, ports.Forwards))
}

// forwardFromPage is POST /c/{key}/sandboxes/forward. A page of another origin cannot send it, also one that is itself behind a forward, at
// another port of this host: browsers give it the cookie only with a path that it does not know.
func (s *Server) forwardFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.changePort(w, r, v, "forwarded", func(name string, port uint16) error {
		_, err := s.desk.ForwardPort(r.Context(), v.atDesk(), name, port, 0)
		return err
	})
}

// unforwardFromPage is POST /c/{key}/sandboxes/unforward.
func (s *Server) unforwardFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.changePort(w, r, v, "closed", func(name string, port uint16) error {
		return s.desk.StopForward(r.Context(), v.atDesk(), name, port)
	})
}

// changePort opens or closes a port of the very sandbox that the page showed.
func (s *Server) changePort(w http.ResponseWriter, r *http.Request, v *visitor, done string, change func(name string, port uint16) error) error {
	now, err := s.postedSandbox(r)
	if err != nil {
		return err
	}
	port, err := api.PortOf(r.PostForm.Get("port"))
	if err != nil {
		return err
	}
	if r.PostForm.Get("seen") != seenOf(&now.Info) {
		return s.renderSandbox(w, r, v, http.StatusConflict, notice{"warn", "Nothing was changed: the sandbox is another one than the page showed. Look at it again."})
	}
	if err := change(now.Name, port); err != nil {
		p := door.ProblemOf(api.ForwardProblem(err))
		return s.renderSandbox(w, r, v, p.Status, notice{"warn", "Nothing was changed: " + sentence(p.Message)})
	}
	http.Redirect(w, r, sandboxLink(v, now.Name)+"&"+url.Values{"done": {done}, "port": {strconv.Itoa(int(port))}}.Encode()+"#ports", http.StatusSeeOther)
	return nil
}

// portNews says what was done about a port; the query holds nothing but words and numbers of ours.
func portNews(query url.Values) string {
	port, err := api.PortOf(query.Get("port"))
	if err != nil {
		return ""
	}
	number := strconv.Itoa(int(port))
	return strings.ReplaceAll(map[string]string{
		"forwarded": "Port # is open on this machine, to every program and browser on it.", "closed": "Port # is no longer open on this machine.",
	}[query.Get("done")], "#", number)
}
