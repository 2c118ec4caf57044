package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Gemini CLI keeps tmp/<project>/chats/session-<time>-<id>.jsonl, a line for each message as it stood and for changes of the
// head ("$set"); seen with 0.61.0. Until early 2026 a chat was one JSON object, .json. Its logs.json holds what people typed,
// and no calls.
type geminiLine struct {
	Session  string          `json:"sessionId"`
	Kind     string          `json:"kind"`
	Hash     string          `json:"projectHash"`
	Set      *geminiSet      `json:"$set"`
	Calls    []geminiCall    `json:"toolCalls"`
	Messages []geminiMessage `json:"messages"`
}

type geminiSet struct {
	Messages []geminiMessage `json:"messages"`
}

type geminiMessage struct {
	Calls []geminiCall `json:"toolCalls"`
}

type geminiCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	Time string          `json:"timestamp"`
}

func geminiOwns(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "chats") && (path.Ext(name) == ".jsonl" || path.Ext(name) == ".json")
}

func geminiBegins(head []byte) bool {
	return strings.Contains(string(head), `"sessionId"`) && strings.Contains(string(head), `"projectHash"`)
}

// geminiChat is what is known of a chat while it is read.
type geminiChat struct {
	*file
	id, agent, project string
}

func (f *file) gemini() error {
	chat := &geminiChat{file: f, project: f.geminiProject()}
	if path.Ext(f.path) == ".json" {
		return chat.whole()
	}
	return f.lines(func(raw []byte) error {
		var line geminiLine
		if !f.decode(raw, &line, `"toolCalls"`, `"projectHash"`) {
			return nil
		}
		chat.begin(&line)
		calls := line.Calls
		if line.Set != nil {
			for _, m := range line.Set.Messages {
				calls = append(calls, m.Calls...)
			}
		}
		return chat.calls(calls)
	})
}

func (c *geminiChat) begin(head *geminiLine) {
	if head.Session != "" && c.id == "" {
		c.id = head.Session
		if head.Kind == "subagent" {
			c.agent = "subagent"
		}
	}
	if c.project == "" && head.Hash != "" {
		c.project = c.byHash(head.Hash)
	}
}

// whole reads a chat that is one JSON object, a message at a time.
func (c *geminiChat) whole() error {
	if c.size > maxDocument {
		c.odd(oddLargeFile)
		return nil
	}
	in := json.NewDecoder(io.LimitReader(c.data, maxDocument))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return errFormat
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		if key == "messages" {
			if err := c.messages(in); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		var head geminiLine
		if raw := encode(map[string]any{key.(string): value}); json.Unmarshal(raw, &head) == nil {
			c.begin(&head)
		}
	}
	return nil
}

func (c *geminiChat) messages(in *json.Decoder) error {
	if open, err := in.Token(); err != nil || open != json.Delim('[') {
		return errFormat
	}
	for in.More() {
		var m geminiMessage
		if err := in.Decode(&m); err != nil {
			return err
		}
		if err := c.calls(m.Calls); err != nil {
			return err
		}
	}
	_, err := in.Token()
	return err
}

func (c *geminiChat) calls(list []geminiCall) error {
	for _, one := range list {
		call := &Call{
			Session: c.id, Agent: c.agent, Project: c.project, WorkDir: c.project, Time: moment(one.Time),
			ID: one.ID, Tool: one.Name, Arguments: one.Args,
		}
		var where struct {
			Dir       string `json:"dir_path"`
			Directory string `json:"directory"` // until the end of 2025
		}
		if one.Name == "run_shell_command" && json.Unmarshal(one.Args, &where) == nil {
			for _, dir := range []string{where.Dir, where.Directory} {
				if dir != "" {
					call.WorkDir = directoryFrom(c.project, dir)
				}
			}
		}
		if err := c.visit(call); err != nil {
			return err
		}
	}
	return nil
}

// geminiProject is the directory that a chat is about: its project's directory in tmp names it.
func (f *file) geminiProject() string {
	dir, _, found := strings.Cut(f.path, "/chats/")
	if !found {
		return ""
	}
	root := strings.TrimSpace(string(f.document(path.Join(dir, ".project_root"))))
	if filepath.IsAbs(root) {
		return root
	}
	return ""
}

// byHash finds the directory by its hash among those that Gemini has a list of: projects.json, beside tmp.
func (c *geminiChat) byHash(hash string) string {
	above, _, _ := strings.Cut("/"+c.path, "/tmp/")
	var list struct{ Projects map[string]string }
	if json.Unmarshal(c.document(path.Join(strings.TrimPrefix(above, "/"), "projects.json")), &list) != nil {
		return ""
	}
	for dir := range list.Projects {
		if sum := sha256.Sum256([]byte(dir)); hex.EncodeToString(sum[:]) == hash {
			return dir
		}
	}
	return ""
}
