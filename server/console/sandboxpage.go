package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/door"
)

// sandboxesShown is how many sandboxes a page shows, and looks at.
const sandboxesShown = 100

// sandboxesPage is the list of sandboxes.
type sandboxesPage struct {
	page
	boxesPart
	Off    bool
	Beyond int // that are not shown
	Modes  []modeView
	None   bool // nothing is sandboxed
	enginesPart
	Prunes bool // the person may
}

// boxesPart is a list of sandboxes, or the one that a page is about.
type boxesPart struct {
	Boxes []boxView
	One   bool
}

// enginesPart is what the engines can enforce here.
type enginesPart struct{ Engines []engineView }

func (s *Server) newEnginesPart() (part enginesPart) {
	for _, e := range s.api.SandboxEngines() {
		part.Engines = append(part.Engines, newEngineView(&e))
	}
	return part
}

// modeView is which sessions of an agent are sandboxed.
type modeView struct {
	Agent  []span
	Mode   string
	Words  string
	Why    []span
	Key    []span
	Engine []span
}

// engineView is what an engine can enforce here.
type engineView struct {
	Name    []span
	Words   string
	Works   bool
	Version []span
	Checks  []checkView
}

type checkView struct {
	OK               bool
	Name, Found, Fix []span
}

// showSandboxes is GET /c/{key}/sandboxes.
func (s *Server) showSandboxes(w http.ResponseWriter, r *http.Request, v *visitor) error {
	p := sandboxesPage{page: s.newPage(v, "Sandboxes", "/sandboxes"), Off: s.sandboxes == nil, Prunes: v.atDesk().May(desk.EndSandboxes) == nil}
	p.Style = "sandboxes.css"
	if p.Off {
		return renderPage(w, http.StatusOK, "sandboxes", p)
	}
	p.Script, p.Live = "sandboxes.js", true
	if said := endedNews(r.URL.Query()); said != "" {
		p.Notices = append(p.Notices, notice{"", said})
	}
	list, warning := s.api.ListSandboxes(r.Context())
	if warning != "" {
		p.Notices = append(p.Notices, notice{"warn", "Not everything could be found out: " + sentence(warning)})
	}
	p.Boxes, p.Beyond = boxViews(v, list)
	for _, m := range s.api.SandboxModes() {
		p.Modes = append(p.Modes, newModeView(&m))
	}
	p.None = allOff(p.Modes)
	p.enginesPart = s.newEnginesPart()
	return renderPage(w, http.StatusOK, "sandboxes", p)
}

func allOff(modes []modeView) bool {
	for _, m := range modes {
		if m.Mode != string(settings.ModeOff) {
			return false
		}
	}
	return true
}

// boxViews are those that a page shows.
func boxViews(v *visitor, list []api.Sandbox) (boxes []boxView, beyond int) {
	api.SortSandboxes(list)
	now := time.Now()
	for i := range list[:min(len(list), sandboxesShown)] {
		boxes = append(boxes, newBoxView(v, &list[i], now))
	}
	return boxes, max(0, len(list)-sandboxesShown)
}

var modeWords = map[settings.Mode]string{
	settings.ModeOff: "no session is sandboxed", settings.ModeNonMain: "every session but the main one is sandboxed", settings.ModeAll: "every session is sandboxed",
}

func newModeView(m *api.SandboxMode) modeView {
	view := modeView{
		Agent: oneLine(m.Agent), Mode: string(m.Mode), Words: modeWords[m.Mode], Why: oneLine(m.Why), Key: oneLine(m.From.Key), Engine: oneLine(m.Engine),
	}
	if m.Agent == "" {
		view.Agent = oneLine("every agent that the configuration does not name")
	}
	return view
}

func newEngineView(e *api.SandboxEngine) engineView {
	view := engineView{Name: oneLine(e.Engine), Version: oneLine(e.Version), Works: e.Works}
	switch {
	case e.Trying:
		view.Words = "is being tried"
	case e.Works:
		view.Words = "enforces " + e.Level
	default:
		view.Words = "does not work here"
	}
	for _, c := range e.Checks {
		view.Checks = append(view.Checks, checkView{c.OK, oneLine(c.Name), oneLine(c.Found), oneLine(c.Fix)})
	}
	return view
}

// endedNews says what was done; the query holds nothing but words and numbers of ours.
func endedNews(query url.Values) string {
	switch query.Get("done") {
	case "stopped":
		return "Everything that ran in the sandbox has ended. The next call starts it again."
	case "removed":
		return "The sandbox is removed. The next call makes it anew."
	case "pruned":
		n := func(name string) int { n, _ := strconv.Atoi(query.Get(name)); return max(0, n) }
		if n("stopped")+n("removed")+n("failed") == 0 {
			return "There was nothing to end: every sandbox is in use, or neither old nor long unused."
		}
		said := fmt.Sprintf("%d stopped, %d removed.", n("stopped"), n("removed"))
		if failed := n("failed"); failed > 0 {
			said += fmt.Sprintf(" %d could not be ended; the record says why.", failed)
		}
		return said
	}
	return portNews(query)
}

// sandboxPage is one sandbox.
type sandboxPage struct {
	page
	Box       boxView
	Seen      string
	May       bool // end it
	Facts     []named
	Mounts    []mountView
	Protected [][]span
	Unknown   bool // which paths are protected
	Ports     portsPart
	Calls     callsPart
	Life      lifePart
	Settings  []settingView
	Lost      []string
}

// Part is what the event stream replaces of the page.
func (p *sandboxPage) Part() boxesPart { return boxesPart{[]boxView{p.Box}, true} }

type mountView struct {
	Inside, Outside []span
	Kind            string
	Writable        bool
}

type settingView struct{ Key, Value, From []span }

// showSandbox is GET /c/{key}/sandboxes/one.
func (s *Server) showSandbox(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.renderSandbox(w, r, v, http.StatusOK)
}

func (s *Server) renderSandbox(w http.ResponseWriter, r *http.Request, v *visitor, status int, notices ...notice) error {
	if s.sandboxes == nil {
		return api.NoSandboxes()
	}
	d, err := s.api.DescribeSandbox(r, v.atDesk())
	if err != nil {
		return err
	}
	p := sandboxPage{
		page: s.newPage(v, "Sandbox", "/sandboxes"), Box: newBoxView(v, &api.Sandbox{Info: d.Info, Usage: d.Usage}, time.Now()), Seen: seenOf(&d.Info),
		May: v.atDesk().May(desk.EndSandboxes) == nil, Facts: factsOfSandbox(d.Detail), Unknown: !d.ProtectedKnown, Lost: lostWords(d.Detail),
		Ports: newPortsPart(v, &d.Info, d.MorePorts, d.Forwards), Calls: newCallsPart(v, d.Commands), Life: newLifePart(v, d.Events),
	}
	p.Style, p.Script, p.Live = "sandboxes.css", "sandboxes.js", true
	p.Notices = notices
	if said := endedNews(r.URL.Query()); said != "" && status == http.StatusOK {
		p.Notices = append(p.Notices, notice{"", said})
	}
	if d.Warning != "" {
		p.Notices = append(p.Notices, notice{"warn", d.Warning})
	}
	for _, m := range d.Mounts {
		p.Mounts = append(p.Mounts, mountView{oneLine(m.Target), oneLine(m.Source), string(m.Kind), m.Writable})
	}
	for _, path := range d.Protected {
		p.Protected = append(p.Protected, oneLine(path))
	}
	for _, setting := range d.Settings {
		value := setting.Value
		if value == "" {
			value = "–"
		}
		p.Settings = append(p.Settings, settingView{oneLine(setting.Key), oneLine(desk.Shortened(value)), oneLine(setting.From.Level)})
	}
	return renderPage(w, status, "sandbox", &p)
}

// runsAs is who runs inside. The native engine puts another user in the place of the machine's root, whatever it is asked for.
func runsAs(d *fleet.Detail) string {
	if d.Engine == sandbox.EngineNative && strings.HasPrefix(d.User, "0:") {
		return "a user without rights, in the place of root"
	}
	return d.User
}

// factsOfSandbox is what confines a sandbox beyond what the list says.
func factsOfSandbox(d *fleet.Detail) (facts []named) {
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, named{name, oneLine(text)})
		}
	}
	add("Scope key", d.ScopeKey)
	add("Engine's id", d.EngineID)
	add("Works in", d.Workdir)
	add("Runs as", runsAs(d))
	add("Runtime", d.Runtime)
	add("In memory", strings.Join(d.Tmpfs, ", "))
	add("Variables", strings.Join(d.Env, ", "))
	var loose []string
	for _, one := range []struct {
		is    bool
		words string
	}{{d.RootWritable, "the image's root can be changed"}, {d.Ptrace, "debuggers may trace processes"}, {d.Hardlinks, "files with several names can be read"}} {
		if one.is {
			loose = append(loose, one.words)
		}
	}
	add("Looser than usual", strings.Join(loose, "; "))
	add("May be missing", strings.Join(d.DegradeOK, ", "))
	add("Ends by itself", pruneWords(d))
	return facts
}

func pruneWords(d *fleet.Detail) string {
	var words []string
	if d.IdleAfter > 0 {
		how := "stopped"
		if d.IdleAction == settings.PruneRemove {
			how = "removed"
		}
		words = append(words, how+" after "+api.AgoWords(d.IdleAfter)+" without use")
	}
	if d.MaxAge > 0 {
		words = append(words, "removed after "+api.AgoWords(d.MaxAge))
	}
	if len(words) == 0 {
		return "never"
	}
	return strings.Join(words, ", ")
}

// lostWords say what making a sandbox anew loses.
func lostWords(d *fleet.Detail) []string {
	lost := []string{"Commands that run in it end, also those in the background.", "What is in memory file systems is gone: " + strings.Join(d.Tmpfs, ", ") + "."}
	if len(d.Tmpfs) == 0 {
		lost[1] = "What is in memory file systems, such as /tmp, is gone."
	}
	if d.RootWritable {
		lost = append(lost, "What was installed or changed in the image's root is gone.")
	}
	return lost
}

// stopFromPage is POST /c/{key}/sandboxes/stop.
func (s *Server) stopFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.endFromPage(w, r, v, desk.StopSandbox)
}

// recreateFromPage is POST /c/{key}/sandboxes/recreate: the sandbox is removed, so that the next call makes it anew.
func (s *Server) recreateFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	return s.endFromPage(w, r, v, desk.RemoveSandbox)
}

// postedSandbox is the one that a form names.
func (s *Server) postedSandbox(r *http.Request) (*fleet.Detail, error) {
	if s.sandboxes == nil {
		return nil, api.NoSandboxes()
	}
	if err := parseForm(r); err != nil {
		return nil, err
	}
	name := r.PostForm.Get("name")
	r.URL.RawQuery = url.Values{"name": {name}}.Encode() // of the page that is shown if nothing is done
	ctx, cancel := context.WithTimeout(r.Context(), api.SandboxPatience)
	defer cancel()
	return s.api.FindSandbox(ctx, name)
}

// endFromPage ends the very sandbox that the page showed.
func (s *Server) endFromPage(w http.ResponseWriter, r *http.Request, v *visitor, how desk.Ending) error {
	now, err := s.postedSandbox(r)
	if err != nil {
		return err
	}
	name := now.Name
	if r.PostForm.Get("seen") != seenOf(&now.Info) {
		return s.renderSandbox(w, r, v, http.StatusConflict, notice{"warn", "Nothing was ended: the sandbox has changed since the page showed it. Look at it again."})
	}
	if err := s.desk.EndSandbox(r.Context(), v.atDesk(), name, how); err != nil {
		why := api.SandboxProblem(name, err)
		var p *door.Problem
		if !errors.As(why, &p) || p.Status == http.StatusNotFound {
			return why
		}
		return s.renderSandbox(w, r, v, p.Status, notice{"warn", "It was not ended: " + sentence(p.Message)})
	}
	to := v.base + "/sandboxes?done=" + how.Done
	if how.Done == desk.StopSandbox.Done {
		to = sandboxLink(v, name) + "&done=" + how.Done
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// pruneFromPage is POST /c/{key}/sandboxes/prune.
func (s *Server) pruneFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	pruned, err := s.desk.PruneSandboxes(r.Context(), v.atDesk())
	if err != nil {
		return api.PruneProblem(err)
	}
	query := url.Values{
		"done": {"pruned"}, "stopped": {strconv.Itoa(len(pruned.Stopped))}, "removed": {strconv.Itoa(len(pruned.Removed))}, "failed": {strconv.Itoa(len(pruned.Failed))},
	}
	http.Redirect(w, r, v.base+"/sandboxes?"+query.Encode(), http.StatusSeeOther)
	return nil
}
