// Package importer takes over what other products' configuration says about tools.
//
// [Read] reads a product's own files and gives what they say as settings of Toolward, and a line for everything that
// could not be carried over. [Plan.Merge] puts the settings into a configuration file and proves, one by one, that
// none of them lets a call through that the file as it stood would have stopped: an import only ever tightens. What
// the product allows beyond that is listed, for a person to write by hand.
package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/redact"
)

// The products that can be read.
const (
	OpenClaw   = "openclaw"
	ClaudeCode = "claude-code"
	Codex      = "codex"
	Gemini     = "gemini"
)

// Where says where to look. Empty fields are left out.
type Where struct {
	Home   string // the user's home directory
	System string // directory of machine-wide settings, such as /etc
	Path   string // a file, read alone; or a directory: of the product's files, or a project with settings of its own
}

// Place is a place in a source file. Lines and columns count from 1, columns in bytes; 0 is the file as a whole.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Malformed is a source that is not what it should be. Nothing of it is used: what it means cannot be known.
type Malformed struct {
	Place
	Text string
}

func (m *Malformed) Error() string { return m.Place.String() + ": " + m.Text }

// Loss is something that the configuration made from a source does not do.
type Loss struct {
	From    Place  `json:"from"`
	Setting string `json:"setting"` // of the source, with its value where that is short
	Reason  string `json:"reason"`
}

func (l Loss) String() string { return fmt.Sprintf("%s: %s: %s", l.From, l.Setting, l.Reason) }

// operation says how a setting meets one that is already there.
type operation uint8

const (
	set     operation = iota // replaces it, if that is not looser
	add                      // joins a list
	narrow                   // keeps of a list what both allow
	another                  // one more entry, of a name of its own
)

// setting is one setting of Toolward that a source asks for.
type setting struct {
	agent string // id of the agent it is about; "" the whole gateway
	key   string // below agents.list[…] of that agent, or of the file
	how   operation
	value any // with add and narrow: []string
	from  Place
	says  string // the source's own setting
}

// Plan is what the files of a product ask for.
type Plan struct {
	Product string
	Files   []string // that were read
	Losses  []Loss

	settings []setting
}

// Read reads the files of a product. agent is the id under which Toolward knows the agents of Claude Code, Codex and
// Gemini CLI; "" is the product's own name. OpenClaw's files name their agents themselves. An error is *Malformed
// where a file is at fault.
func Read(product, agent string, where Where) (*Plan, error) {
	r := &reader{plan: &Plan{Product: product}, agent: agent}
	if agent == "" {
		r.agent = product
	}
	read := map[string]func(*reader, Where) error{OpenClaw: readOpenClaw, ClaudeCode: readClaudeCode, Codex: readCodex, Gemini: readGemini}[product]
	if read == nil {
		return nil, fmt.Errorf("%q is not a product that can be imported; use openclaw, claude-code, codex or gemini", product)
	}
	if err := read(r, where); err != nil {
		return nil, err
	}
	if len(r.plan.Files) == 0 {
		return nil, fmt.Errorf("there are no settings of %s; looked for %s", product, strings.Join(r.looked, ", "))
	}
	r.finish()
	return r.plan, nil
}

// reader collects what the files of one product say.
type reader struct {
	plan   *Plan
	agent  string
	looked []string // files that were looked for
	only   servers
}

// want asks for a setting of the agent (or of the gateway, with agent "").
func (r *reader) want(agent, key string, how operation, value any, from *node, says string) {
	r.plan.settings = append(r.plan.settings, setting{agent, key, how, value, from.at, says})
}

// deny takes tools away from the agent.
func (r *reader) deny(from *node, says string, names ...string) {
	r.want(r.agent, "tools.deny", add, names, from, says)
}

// class gives tools a class for the agent.
func (r *reader) class(from *node, says, class string, keys ...string) {
	for _, key := range keys {
		r.want(r.agent, config.JoinKey("teg.tools", key), set, class, from, says)
	}
}

// secrets hides what looks like one: people allow commands that have passwords in them.
var secrets = redact.New()

// lose reports what is not carried over.
func (r *reader) lose(from *node, says, reason string, args ...any) {
	r.plan.Losses = append(r.plan.Losses, Loss{from.at, secrets.String(says), fmt.Sprintf(reason, args...)})
}

// maxSource bounds a source file in bytes.
const maxSource = 4 << 20

// load reads a file if it is there.
func (r *reader) load(path string) (data []byte, there bool, err error) {
	r.looked = append(r.looked, path)
	f, err := config.OpenFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxSource+1))
	if err != nil {
		return nil, false, err
	}
	if len(data) > maxSource {
		return nil, false, &Malformed{Place{File: path}, fmt.Sprintf("the file is larger than %d bytes", maxSource)}
	}
	r.plan.Files = append(r.plan.Files, path)
	return data, true, nil
}

// loadTree reads and parses a file if it is there; nil if it is not.
func (r *reader) loadTree(path string, parse func(string, []byte) (*node, error)) (*node, error) {
	data, there, err := r.load(path)
	if !there || err != nil {
		return nil, err
	}
	return parse(path, data)
}

// unread reports what nobody has looked at.
func (r *reader) unread(root *node) {
	root.eachUnread("", func(path string, n *node) {
		r.lose(n, path, "it says nothing about tools, or nothing that Toolward knows")
	})
}

// isDirectory reports whether a path is a directory.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
