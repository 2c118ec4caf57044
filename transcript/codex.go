package transcript

import (
	"cmp"
	"encoding/json"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// codexLine is a line of a rollout of Codex: sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl. Seen with 0.169.0; before
// September 2025 the payload was the line itself.
type codexLine struct {
	Type    string          `json:"type"`
	Time    string          `json:"timestamp"`
	Payload json.RawMessage `json:"payload"`
}

type codexPayload struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Session   string          `json:"session_id"`
	WorkDir   string          `json:"cwd"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments string          `json:"arguments"` // JSON in a text
	Input     string          `json:"input"`
	CallID    string          `json:"call_id"`
	Action    json.RawMessage `json:"action"`
	Source    json.RawMessage `json:"source"`
}

func codexOwns(name string) bool {
	return strings.HasPrefix(path.Base(name), "rollout-") && path.Ext(name) == ".jsonl"
}

func codexBegins(head []byte) bool {
	line := firstLine(head)
	return strings.Contains(line, `"session_meta"`) && strings.Contains(line, `"payload"`)
}

// codexSession is what is known of a rollout while it is read.
type codexSession struct {
	id, agent, project, workDir string
}

func (f *file) codex() error {
	s := codexSession{}
	return f.lines(func(raw []byte) error {
		var line codexLine
		if !f.decode(raw, &line, `_call"`, `"cwd"`, `"session_meta"`) {
			return nil
		}
		if line.Payload == nil {
			line.Type, line.Payload = "response_item", raw
		}
		var p codexPayload
		if err := json.Unmarshal(line.Payload, &p); err != nil && p.Type == "" && p.WorkDir == "" {
			return nil
		}
		switch line.Type {
		case "session_meta":
			s.begin(&p)
		case "turn_context":
			s.workDir = cmp.Or(p.WorkDir, s.workDir)
		case "response_item":
			if c := s.call(&p); c != nil {
				c.Time = moment(line.Time)
				return f.visit(c)
			}
		}
		return nil
	})
}

// begin takes up the session that a rollout is of. A fork takes the lines of its origin along; the first one counts.
func (s *codexSession) begin(p *codexPayload) {
	if s.id == "" {
		s.id, s.project, s.workDir = cmp.Or(p.ID, p.Session), p.WorkDir, p.WorkDir
		if strings.Contains(string(p.Source), "subagent") {
			s.agent = s.id
		}
	}
}

// call is the call in a line; nil if there is none.
func (s *codexSession) call(p *codexPayload) *Call {
	c := &Call{Session: s.id, Agent: s.agent, Project: s.project, WorkDir: s.workDir, ID: cmp.Or(p.CallID, p.ID), Tool: p.Name}
	switch p.Type {
	case "function_call":
		c.Arguments = json.RawMessage(cmp.Or(p.Arguments, "{}"))
		if p.Namespace != "" && !strings.HasPrefix(p.Name, p.Namespace) {
			c.Tool = p.Namespace + "__" + p.Name
		}
		c.codexCommand()
	case "custom_tool_call":
		c.Arguments = object("input", p.Input)
	case "local_shell_call":
		c.Tool = "shell"
		c.Arguments = p.Action
		c.codexCommand()
	case "web_search_call":
		var action struct{ Query string }
		_ = json.Unmarshal(p.Action, &action) // without a query it is a call of nothing
		c.Tool, c.Arguments = "web_search", object("query", action.Query)
	default:
		return nil
	}
	return c
}

// codexShells are the tools that run commands.
var codexShells = []string{"exec_command", "shell", "shell_command", "container.exec"}

// codexCommand puts a command into the one form that Codex gives to its hooks: its text, with the directory in which it
// runs beside it. A patch that is written as a command is a patch, as Codex itself takes it.
func (c *Call) codexCommand() {
	if c.Tool == "write_stdin" {
		var input struct{ Chars string }
		if json.Unmarshal(c.Arguments, &input) == nil && input.Chars == "" {
			c.Tool = "write_stdin:poll" // nothing is typed: it waits for output
		}
		return
	}
	if !slices.Contains(codexShells, c.Tool) {
		return
	}
	var a struct {
		Cmd           string          `json:"cmd"`
		Command       json.RawMessage `json:"command"`
		WorkDir       string          `json:"workdir"`
		Directory     string          `json:"working_directory"`
		Permissions   string          `json:"sandbox_permissions"`
		WithEscalated bool            `json:"with_escalated_permissions"`
		Justification string          `json:"justification"`
		TTY           bool            `json:"tty"`
	}
	if err := json.Unmarshal(c.Arguments, &a); err != nil {
		return
	}
	text := a.Cmd
	if text == "" {
		text = commandText(a.Command)
	}
	if text == "" {
		return
	}
	if dir := cmp.Or(a.WorkDir, a.Directory); dir != "" {
		c.WorkDir = directoryFrom(c.WorkDir, dir)
	}
	if patch := heredocPatch.FindStringSubmatch(text); patch != nil && patch[1] == patch[3] {
		c.Tool, c.Arguments = "apply_patch", object("input", patch[2])
		return
	}
	arguments := map[string]any{"command": text}
	if a.WithEscalated || a.Permissions != "" && a.Permissions != "use_default" {
		arguments["escalated"] = true
	}
	if a.TTY {
		arguments["tty"] = true
	}
	c.Tool, c.Arguments = "exec_command", encode(arguments)
}

// heredocPatch is a patch in the form of a command.
var heredocPatch = regexp.MustCompile(`(?s)^\s*apply_patch\s+<<\s*['"]?(\w+)['"]?\n(.*\n)(\w+)\s*$`)

// commandText is the text of a command that is written as one, or as the arguments of a program.
func commandText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var argv []string
	if json.Unmarshal(raw, &argv) != nil || len(argv) == 0 {
		return ""
	}
	if len(argv) == 3 && (argv[1] == "-lc" || argv[1] == "-c") {
		switch path.Base(argv[0]) {
		case "bash", "sh", "zsh", "dash":
			return argv[2]
		}
	}
	for i, word := range argv {
		argv[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(argv, " ")
}

// directoryFrom is a directory, from another one if it is relative.
func directoryFrom(from, dir string) string {
	if filepath.IsAbs(dir) || from == "" {
		return dir
	}
	return filepath.Join(from, dir)
}

// object is a JSON object with one text.
func object(name, value string) json.RawMessage { return encode(map[string]any{name: value}) }

// encode writes what cannot fail to be written.
func encode(v map[string]any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // the call is counted as one whose arguments are not JSON
	}
	return raw
}
