package attacks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/mcp"
	"github.com/toolward/toolward/schema"
)

// foreignServer is a scripted MCP server: what it lists, page by page, and how it is reached.
type foreignServer struct {
	launch  mcp.Launch
	pages   []json.RawMessage
	cursor  string // of the page that comes next, while a list is not complete
	differs int    // 1 + the page that is another one the second time it is asked for; 0: none
	calls   int
}

// mcpPlay plays the steps of one case.
type mcpPlay struct {
	*world
	servers map[string]*foreignServer
	shown   []string // texts that a model would be shown
	flagged bool     // people were told that something is odd
	fetched []string // addresses that somebody tried to reach
}

func judgeMCP(t *testing.T, c *attack) (outcome, error) {
	if err := setupOnly(c, "upstream"); err != nil {
		return outcome{}, err
	}
	p := &mcpPlay{world: newWorld(t), servers: map[string]*foreignServer{}}
	p.watchNetwork()
	var last outcome
	for _, step := range c.Attempt.steps("steps") {
		o, err := p.step(step)
		if err != nil {
			return outcome{}, err
		}
		last = o
	}
	last.took = p.watch.longest
	switch c.Want {
	case string(contained):
		return p.judgeSchema(c, last)
	case string(sanitized):
		return p.judgeTexts(c, last)
	}
	return last, nil
}

// watchNetwork notes every request of the default HTTP client, which is what a schema compiler would use.
func (p *mcpPlay) watchNetwork() {
	real := http.DefaultTransport
	http.DefaultTransport = transport(func(r *http.Request) (*http.Response, error) {
		p.fetched = append(p.fetched, r.URL.String())
		return nil, errors.New("no network here")
	})
	p.t.Cleanup(func() { http.DefaultTransport = real })
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (p *mcpPlay) step(s fields) (outcome, error) {
	switch op := s.text("op"); op {
	case "upstream.list":
		return p.list(s)
	case "approve.server":
		return p.approve(s)
	case "call":
		return p.call(s)
	case "restart.upstream":
		return p.restart(s)
	case "config.change":
		return p.reconfigure(s)
	case "connect":
		return p.connect(s)
	case "show":
		return p.show(s)
	default:
		return outcome{}, unsupported{"mcp " + op}
	}
}

func (p *mcpPlay) server(id string) *foreignServer {
	s := p.servers[id]
	if s == nil {
		s = &foreignServer{launch: mcp.Launch{Command: "/usr/bin/node", Args: []string{id + ".js"}}}
		p.servers[id] = s
	}
	return s
}

// list is a server's answer to tools/list, whole or one page of it.
func (p *mcpPlay) list(s fields) (outcome, error) {
	if err := s.only("upstream.list", "op", "server", "tools", "raw", "notify", "page1", "nextCursor", "cursor", "secondListDiffers"); err != nil {
		return outcome{}, err
	}
	server := p.server(s.text("server"))
	page, err := json.Marshal(map[string]any{"tools": s["tools"]})
	if err != nil {
		return outcome{}, err
	}
	if s.has("raw") {
		page = json.RawMessage(s.text("raw"))
	}
	if s.text("cursor") == "" || s.text("cursor") != server.cursor {
		server.pages, server.differs = nil, 0
	}
	server.pages = append(server.pages, page)
	if s.flag("secondListDiffers") {
		server.differs = len(server.pages)
	}
	if server.cursor = s.text("nextCursor"); server.cursor == "" {
		p.listed(s.text("server"))
	}
	return outcome{}, nil
}

// listed hands a complete list to the registration. A list that is refused leaves the server without tools.
func (p *mcpPlay) listed(id string) {
	server := p.server(id)
	p.watch.time(func() {
		_, _ = p.upstreams.Listed(mcp.Upstream{
			ID: id, Launch: server.launch,
			Call: func(_ context.Context, tool string, _ json.RawMessage) (toolward.Result, error) {
				server.calls++
				return toolward.TextResult("ran " + tool), nil
			},
		}, server.pages...)
	})
}

// approve has op1 accept what the server lists, and the operator call each of its tools safe.
func (p *mcpPlay) approve(s fields) (outcome, error) {
	if err := s.only("approve.server", "op", "server"); err != nil {
		return outcome{}, err
	}
	id := s.text("server")
	listing, err := p.upstreams.Listing(id)
	if errors.Is(err, mcp.ErrNotListed) {
		return outcome{answer: denied, why: "the list was refused"}, nil
	}
	person, err := op1()
	if err != nil {
		return outcome{}, err
	}
	if err := p.upstreams.Accept(context.Background(), id, listing.Digest, person); err != nil {
		return outcome{}, err
	}
	for _, tool := range listing.Tools {
		p.set("safe", "teg", "tools", tool.Name)
	}
	p.compile()
	if n := p.server(id).differs; n > 0 {
		p.server(id).pages[n-1] = otherDescriptions(p.server(id).pages[n-1])
		p.listed(id)
	}
	return outcome{answer: allowed}, nil
}

// otherDescriptions changes every definition of a page.
func otherDescriptions(page json.RawMessage) json.RawMessage {
	return json.RawMessage(strings.ReplaceAll(string(page), `"description":"`, `"description":"Now something else. `))
}

// call calls a tool of a server by every name that it could go by. It is allowed if the server gets it under any.
func (p *mcpPlay) call(s fields) (outcome, error) {
	if err := s.only("call", "op", "server", "tool", "args", "raw"); err != nil {
		return outcome{}, err
	}
	id, native := s.text("server"), s.text("tool")
	server := p.servers[id]
	if server == nil {
		return outcome{}, unsupported{"call of a server that lists no tools"}
	}
	names := []string{id + "__" + native, native}
	if listing, err := p.upstreams.Listing(id); err == nil {
		if i := slices.IndexFunc(listing.Tools, func(t mcp.ListedTool) bool { return t.Native == native }); i >= 0 {
			names[0] = listing.Tools[i].Name
		}
	}
	var first outcome
	for i, name := range names {
		o, reached := p.callAs(server, name, s)
		if reached {
			return o, nil
		}
		if i == 0 {
			first = o
		}
	}
	return first, nil
}

func (p *mcpPlay) callAs(server *foreignServer, name string, s fields) (o outcome, reached bool) {
	caller, _ := p.main("s1")
	call := p.newCall(caller, name, s["args"])
	if s.has("raw") {
		call.Arguments = json.RawMessage(s.text("raw"))
	}
	a := p.admit(call)
	o = p.outcome(a)
	if a.answer != allowed {
		return o, false
	}
	before := server.calls
	result, err := a.pass.Run(context.Background())
	if err != nil || result.IsError || server.calls == before {
		return outcome{answer: denied, why: fmt.Sprintf("admitted as %s, but not run: %v %v", name, result.Content, err)}, false
	}
	return o, true
}

// restart ends a server and starts it again; it lists what it listed before, or something else.
func (p *mcpPlay) restart(s fields) (outcome, error) {
	if err := s.only("restart.upstream", "op", "server", "tools"); err != nil {
		return outcome{}, err
	}
	id := s.text("server")
	p.upstreams.Gone(id)
	if s.has("tools") {
		return p.list(fields{"server": id, "tools": s["tools"]})
	}
	p.listed(id)
	return outcome{answer: allowed}, nil
}

// reconfigure changes how a server is started.
func (p *mcpPlay) reconfigure(s fields) (outcome, error) {
	if err := s.only("config.change", "op", "server", "command", "args", "env", "url"); err != nil {
		return outcome{}, err
	}
	launch := &p.server(s.text("server")).launch
	if s.has("command") {
		launch.Command = s.text("command")
	}
	if s.has("args") {
		launch.Args = s.list("args")
	}
	if s.has("url") {
		launch.URL = s.text("url")
	}
	for name, value := range s.object("env") {
		if launch.Env == nil {
			launch.Env = map[string]string{}
		}
		launch.Env[name] = fmt.Sprint(value)
	}
	return outcome{}, nil
}

// connect starts a server, if it may be started without asking.
func (p *mcpPlay) connect(s fields) (outcome, error) {
	if err := s.only("connect", "op", "server"); err != nil {
		return outcome{}, err
	}
	id := s.text("server")
	var err error
	p.watch.time(func() { err = p.upstreams.MayStart(id, p.server(id).launch) })
	if err != nil {
		return outcome{answer: asked, why: err.Error()}, nil
	}
	p.listed(id)
	return outcome{answer: allowed}, nil
}

// show shows the listed tools to a model, which sees them once they are accepted, or to the person who accepts.
func (p *mcpPlay) show(s fields) (outcome, error) {
	if err := s.only("show", "op", "to"); err != nil {
		return outcome{}, err
	}
	for _, id := range sorted(p.servers) {
		listing, err := p.upstreams.Listing(id)
		if err != nil {
			return outcome{}, err
		}
		switch to := s.text("to"); to {
		case "human":
			p.flagged = p.flagged || len(listing.Rejected) > 0
			for _, tool := range listing.Tools {
				p.flagged = p.flagged || len(tool.Odd) > 0
				p.shown = append(p.shown, tool.Description, string(tool.Schema))
			}
		case "model":
			if _, err := p.approve(fields{"server": id}); err != nil {
				return outcome{}, err
			}
			caller, _ := p.main("s1")
			for _, tool := range p.gateway.Tools(caller) {
				if tool.Plugin == id {
					p.shown = append(p.shown, tool.Description, string(tool.Schema))
				}
			}
		default:
			return outcome{}, unsupported{"show to " + to}
		}
	}
	return outcome{}, nil
}

// judgeTexts: what is shown hides nothing and is bounded, and people are told what was done to it.
func (p *mcpPlay) judgeTexts(c *attack, o outcome) (outcome, error) {
	if err := c.Check.only("check", "clean_or_flagged"); err != nil {
		return outcome{}, err
	}
	o.answer = sanitized
	if len(p.shown) == 0 && !p.flagged {
		o.answer, o.why = harmful, "nothing was shown"
	}
	for _, text := range p.shown {
		if display.HasInvisible(text) || len(text) > 20_000 || strings.Contains(text, strings.Repeat("\n", 8)) {
			o.answer, o.why = harmful, "shown: "+display.Line(text[:min(len(text), 300)])
		}
	}
	if !p.flagged {
		o.answer, o.why = harmful, "nobody is told that the text is odd"
	}
	return o, nil
}

// judgeSchema: whatever was answered, nothing was fetched, and what models are shown of a tool that was taken is an
// object without unions at its root. A schema that refers to anything outside itself is not taken at all.
func (p *mcpPlay) judgeSchema(c *attack, o outcome) (outcome, error) {
	if err := c.Check.only("check", "no_fetch", "bounded"); err != nil {
		return outcome{}, err
	}
	o.why = fmt.Sprintf("the call: %s (%s)", o.answer, o.why)
	o.answer = contained
	if len(p.fetched) > 0 {
		o.answer, o.why = harmful, fmt.Sprintf("fetched %q", p.fetched)
	}
	for _, tool := range p.upstreams.Tools() {
		shown, err := schema.Prepare("openai", tool.Schema)
		var root struct {
			Type                string
			AnyOf, OneOf, AllOf []any
		}
		if err == nil {
			err = json.Unmarshal(shown, &root)
		}
		if err != nil || root.Type != "object" || root.AnyOf != nil || root.OneOf != nil || root.AllOf != nil {
			o.answer, o.why = harmful, fmt.Sprintf("models are shown %.200s (%v)", shown, err)
		}
		if refersOut(tool.Schema) {
			o.answer, o.why = harmful, fmt.Sprintf("taken with a reference out of itself: %.200s", tool.Schema)
		}
	}
	return o, nil
}

// refersOut looks for references that do not begin with "#".
func refersOut(schema json.RawMessage) bool {
	for _, keyword := range []string{`"$ref":"`, `"$dynamicRef":"`, `"$recursiveRef":"`} {
		for _, rest := range strings.Split(string(schema), keyword)[1:] {
			if !strings.HasPrefix(rest, "#") {
				return true
			}
		}
	}
	return false
}
