package transcript

import (
	"encoding/json"
	"strings"
)

// claudeLine is a line of a transcript of Claude Code, as far as calls go: <projects>/<directory>/<session>.jsonl, and of
// sub-agents <session>/subagents/agent-<id>.jsonl. Seen with 2.1.329.
type claudeLine struct {
	Type    string `json:"type"`
	WorkDir string `json:"cwd"`
	Session string `json:"sessionId"`
	Agent   string `json:"agentId"`
	Side    bool   `json:"isSidechain"`
	Time    string `json:"timestamp"`
	Message struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

type claudeBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// claudeBegins: each of the first lines of a session names it in this way, and no other client does.
func claudeBegins(head []byte) bool {
	line := firstLine(head)
	return strings.HasPrefix(line, "{") && strings.Contains(line, `"sessionId":"`) && strings.Contains(line, `"type":"`) &&
		!geminiBegins(head) && !copilotBegins(head)
}

func (f *file) claudeCode() error {
	project := ""
	words := []string{`"tool_use"`, `"cwd"`}
	return f.lines(func(raw []byte) error {
		var line claudeLine
		if !f.decode(raw, &line, words...) {
			return nil
		}
		if project == "" && line.WorkDir != "" {
			project, words = line.WorkDir, words[:1]
		}
		if line.Type != "assistant" {
			return nil
		}
		var blocks []claudeBlock
		if json.Unmarshal(line.Message.Content, &blocks) != nil {
			return nil // a text: there is no call in it
		}
		for _, b := range blocks {
			if b.Type != "tool_use" {
				continue
			}
			c := &Call{
				Session: line.Session, Agent: line.Agent, Project: project, WorkDir: line.WorkDir, Time: moment(line.Time),
				ID: b.ID, Tool: b.Name, Arguments: b.Input,
			}
			if line.Side && c.Agent == "" {
				c.Agent = "subagent"
			}
			if err := f.visit(c); err != nil {
				return err
			}
		}
		return nil
	})
}
