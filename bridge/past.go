package bridge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/schema"
)

// readable are clients whose calls can be told in Toolward's words and whose agents cannot be guarded by a hook of ours.
var readable = []*client{
	{name: "codex", title: "Codex", tools: codexTools, directory: ".codex", managed: noManagedSettings},
	{name: "gemini", title: "Gemini CLI", tools: geminiTools, aliases: geminiAliases, directory: ".gemini", managed: noManagedSettings},
	{name: "copilot", title: "GitHub Copilot CLI", tools: copilotTools, directory: ".copilot", managed: noManagedSettings},
	{name: "opencode", title: "opencode", tools: opencodeTools, aliases: opencodeAliases, directory: ".config/opencode", managed: noManagedSettings},
}

// noManagedSettings: what is asked of them does not depend on an administrator's settings.
func noManagedSettings() string { return "" }

// PastCall is a call that a client made once.
type PastCall struct {
	Client, Session, Agent string // Agent is the client's id of a sub-agent; "" in the main thread
	Project, WorkDir       string // absolute
	ID, Tool               string // by the client's own name
	Arguments              json.RawMessage
}

// Past tells calls of the past as the hooks of their clients would have put them to a gateway.
type Past struct{ guests map[string]*guest }

// NewPast needs of a handler's configuration what says where things are and what commands do.
func NewPast(c Config) (*Past, error) {
	h := &Handler{config: c, log: slog.New(slog.DiscardHandler), guests: map[string]*guest{}}
	var err error
	if h.open, err = schema.Compile(openSchema, schema.Options{Foreign: true}); err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	for _, row := range slices.Concat(clients, readable) {
		if h.guests[row.name], err = h.guest(row); err != nil {
			return nil, err
		}
	}
	return &Past{h.guests}, nil
}

// Title is what people call a client; "" if it is not known.
func (p *Past) Title(client string) string {
	if g := p.guests[client]; g != nil {
		return g.title
	}
	return ""
}

// Call is the call as a gateway would have been asked about it. known is false if no row of the client's table says what its
// tool, or one of its arguments, means: it is judged as an unknown tool then.
func (p *Past) Call(past *PastCall) (call toolward.Call, known bool, err error) {
	g := p.guests[past.Client]
	if g == nil {
		return call, false, fmt.Errorf("%q is no client that is known", past.Client)
	}
	s, err := g.claudeSession(&claudeEvent{
		Session: plainPart(past.Session), Agent: plainPart(past.Agent), WorkDir: past.WorkDir, CallID: past.ID, Tool: past.Tool, Input: past.Arguments,
	}, environment{project: projectOf(past)})
	if err != nil {
		return call, false, err
	}
	row := s.row()
	call, _, err = s.call()
	return call, row != nil && row.knows(past.Arguments), err
}

// projectOf is the directory of the conversation, as the client would name it to its hook.
func projectOf(past *PastCall) string {
	if dir := cmp.Or(past.Project, past.WorkDir); filepath.IsAbs(dir) && !strings.ContainsRune(dir, 0) {
		return dir
	}
	return ""
}

// plainPart makes a client's id one that can be part of a session key: some clients use other characters.
func plainPart(id string) string {
	id = strings.Map(func(c rune) rune {
		if c < 0x80 && plainID(string(c)) {
			return c
		}
		return '-'
	}, id)
	return id[:min(len(id), 128)]
}
