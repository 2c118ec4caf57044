package allowlist

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward/modes"
)

// FileName is the name of the file in the state directory. Its format is known to other tools.
const FileName = "exec-approvals.json"

// Names of agents with a meaning of their own.
const (
	AnyAgent     = "*"    // what holds for every agent
	MainAgent    = "main" // the agent of a call that names none
	defaultAgent = "default"
)

// File is the content of exec-approvals.json.
type File struct {
	Socket   Socket
	Defaults modes.Settings
	Agents   map[string]*AgentFile
}

// Socket is where approvals of other tools arrive. It is kept for them.
type Socket struct {
	Path  string
	Token Token
}

// Token is a secret: it goes into the file and nowhere else.
type Token string

// String hides the token.
func (Token) String() string { return "(hidden)" }

// GoString hides the token.
func (Token) GoString() string { return "(hidden)" }

// MarshalJSON hides the token.
func (Token) MarshalJSON() ([]byte, error) { return []byte(`"(hidden)"`), nil }

// AgentFile is what the file says about one agent.
type AgentFile struct {
	modes.Settings
	Allowlist []Entry `json:"allowlist,omitempty"`
}

// Entry lets commands of one program run without a question.
type Entry struct {
	ID      string `json:"id,omitempty"`
	Pattern string `json:"pattern"`
	// Effects are what the program may do by its arguments: any of read, write, network. Nil leaves it to the preset;
	// a list that is empty leaves only what has no effects.
	Effects []string `json:"effects,omitzero"`
	// Argv, if set, is the only argv that the entry covers: the program as it was resolved, and its arguments.
	Argv []string `json:"argv,omitempty"`
	// Host, if it is [OnMachine], has the program run on the machine also where other commands run in a sandbox.
	Host string `json:"host,omitempty"`
	// ArgPattern is a restriction that other tools write and this one cannot read. An entry that has it covers nothing.
	ArgPattern string `json:"argPattern,omitempty"`
	// GivenBy is the paired device or passkey of whoever gave it by answering; "" for the passphrase, and for who wrote the file.
	GivenBy          string `json:"givenBy,omitempty"`
	LastUsedAt       int64  `json:"lastUsedAt,omitempty"` // milliseconds since 1970
	LastUsedCommand  string `json:"lastUsedCommand,omitempty"`
	LastResolvedPath string `json:"lastResolvedPath,omitempty"`
}

// OnMachine is the only host that an entry can name: the gateway's own.
const OnMachine = "gateway"

// The effects that an entry can name.
const (
	EffectRead    = "read"
	EffectWrite   = "write"
	EffectNetwork = "network"
)

var entryEffects = []string{EffectRead, EffectWrite, EffectNetwork}

// Listed is an entry together with the agent under whose name it stands.
type Listed struct {
	Entry
	Agent string
}

// settings are those of the file for an agent: its own, else those of every agent, else the defaults; each by itself.
func (f *File) settings(agent string) modes.Settings {
	s := modes.Settings{}
	for _, name := range []string{agent, AnyAgent} {
		if a := f.Agents[name]; a != nil {
			s = s.Over(a.Settings)
		}
	}
	return s.Over(f.Defaults)
}

// allowlist is what an agent may use: the entries of every agent, then its own, never those of another.
func (f *File) allowlist(agent string) []Listed {
	var listed []Listed
	for _, name := range slices.Compact([]string{AnyAgent, agent}) {
		if a := f.Agents[name]; a != nil {
			for _, e := range a.Allowlist {
				if e.ArgPattern == "" {
					listed = append(listed, Listed{e, name})
				}
			}
		}
	}
	return listed
}

// agent is the part of an agent, made if it is not there.
func (f *File) agent(name string) *AgentFile {
	if f.Agents == nil {
		f.Agents = map[string]*AgentFile{}
	}
	if f.Agents[name] == nil {
		f.Agents[name] = &AgentFile{}
	}
	return f.Agents[name]
}

// Allow adds an entry for an agent and reports whether that changed anything. The same program, or the same argv, is
// listed once: its entry gets the effects of both.
func (f *File) Allow(agent string, e Entry, nowMs int64) bool {
	if e.Pattern = strings.TrimSpace(e.Pattern); e.Pattern == "" {
		return false
	}
	a := f.agent(agent)
	same := func(other Entry) bool {
		return other.Pattern == e.Pattern && other.ArgPattern == "" && slices.Equal(other.Argv, e.Argv)
	}
	i := slices.IndexFunc(a.Allowlist, same)
	if i < 0 {
		e.ID, e.LastUsedAt = newID(), nowMs
		a.Allowlist = append(a.Allowlist, e)
		return true
	}
	old := &a.Allowlist[i]
	changed := e.Host != "" && old.Host != e.Host
	if changed {
		old.Host = e.Host
	}
	old.GivenBy = cmp.Or(e.GivenBy, old.GivenBy) // it ends with whoever widened it last and can be taken away
	switch {
	case old.Effects == nil:
		return changed
	case e.Effects == nil:
		old.Effects = nil
		return true
	}
	before := len(old.Effects)
	for _, effect := range e.Effects {
		if !slices.Contains(old.Effects, effect) {
			old.Effects = append(old.Effects, effect)
		}
	}
	return changed || len(old.Effects) > before
}

// Remove takes the entries of a pattern, or the one of an id, from an agent, and the agent with its last content. It
// reports whether there were any.
func (f *File) Remove(agent, pattern string) bool {
	a := f.Agents[agent]
	pattern = strings.TrimSpace(pattern)
	if a == nil || pattern == "" {
		return false
	}
	before := len(a.Allowlist)
	a.Allowlist = slices.DeleteFunc(a.Allowlist, func(e Entry) bool { return e.Pattern == pattern || e.ID == pattern })
	if len(a.Allowlist) == 0 && a.Settings == (modes.Settings{}) {
		delete(f.Agents, agent)
	}
	return len(a.Allowlist) < before
}

// Encode writes the file as it stands on disk, with the token.
func (f *File) Encode() ([]byte, error) {
	socket := map[string]string{}
	if f.Socket.Path != "" {
		socket["path"] = f.Socket.Path
	}
	if f.Socket.Token != "" {
		socket["token"] = string(f.Socket.Token)
	}
	return f.encode(socket)
}

// MarshalJSON writes the file for people and other programs: without the token.
func (f *File) MarshalJSON() ([]byte, error) {
	socket := map[string]string{}
	if f.Socket.Path != "" {
		socket["path"] = f.Socket.Path
	}
	return f.encode(socket)
}

func (f *File) encode(socket map[string]string) ([]byte, error) {
	agents := f.Agents
	if agents == nil {
		agents = map[string]*AgentFile{}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(struct {
		Version  int                   `json:"version"`
		Socket   map[string]string     `json:"socket,omitempty"`
		Defaults modes.Settings        `json:"defaults"`
		Agents   map[string]*AgentFile `json:"agents"`
	}{1, socket, f.Defaults, agents})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", FileName, err)
	}
	return b.Bytes(), nil
}

// clone is a copy that shares nothing with the file.
func (f *File) clone() *File {
	c := &File{Socket: f.Socket, Defaults: f.Defaults, Agents: map[string]*AgentFile{}}
	for name, a := range f.Agents {
		of := &AgentFile{Settings: a.Settings, Allowlist: slices.Clone(a.Allowlist)}
		for i := range of.Allowlist {
			e := &of.Allowlist[i]
			e.Effects, e.Argv = slices.Clone(e.Effects), slices.Clone(e.Argv)
		}
		c.Agents[name] = of
	}
	return c
}

// contentHash is what the state of the file is known by: SHA-256 of its bytes in lower-case hex, of nothing if there is
// no file.
func contentHash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func newToken() Token {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails: a program without randomness is ended
	return Token(base64.RawURLEncoding.EncodeToString(b[:]))
}

// newID is a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
