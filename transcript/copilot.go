package transcript

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"
)

// copilotLine is a line of session-state/<id>/events.jsonl of GitHub Copilot CLI; seen with 1.0.102. Until late 2025 it was
// session-state/<id>.jsonl. What lies in history-session-state has an older form, which is named and not read.
type copilotLine struct {
	Type  string `json:"type"`
	Time  string `json:"timestamp"`
	Agent string `json:"agentId"`
	Data  struct {
		Session string `json:"sessionId"`
		WorkDir string `json:"cwd"`
		Context struct {
			WorkDir string `json:"cwd"`
		} `json:"context"`
		CallID    string          `json:"toolCallId"`
		Tool      string          `json:"toolName"`
		Arguments json.RawMessage `json:"arguments"`
		Parent    string          `json:"parentToolCallId"`
	} `json:"data"`
}

func copilotOwns(name string) bool {
	base, ext := path.Base(name), path.Ext(name)
	return base == "events.jsonl" || path.Dir(name) == "." && (ext == ".jsonl" || ext == ".json")
}

func copilotBegins(head []byte) bool {
	line := firstLine(head)
	return strings.Contains(line, `"session.start"`) && strings.Contains(line, `"data"`)
}

func (f *file) copilot() error {
	if path.Ext(f.path) == ".json" {
		return errFormat
	}
	session, project := strings.TrimSuffix(path.Base(f.path), ".jsonl"), f.copilotProject()
	workDir := project
	return f.lines(func(raw []byte) error {
		var line copilotLine
		if !f.decode(raw, &line, `"tool.execution_start"`, `"session.start"`, `"session.resume"`, `"session.context_changed"`) {
			return nil
		}
		switch line.Type {
		case "session.start", "session.resume", "session.context_changed":
			session = cmp.Or(line.Data.Session, session)
			workDir = cmp.Or(line.Data.WorkDir, line.Data.Context.WorkDir, workDir)
			project = cmp.Or(project, workDir)
		case "tool.execution_start":
			return f.visit(&Call{
				Session: session, Agent: cmp.Or(line.Agent, line.Data.Parent), Project: project, WorkDir: workDir, Time: moment(line.Time),
				ID: line.Data.CallID, Tool: line.Data.Tool, Arguments: line.Data.Arguments,
			})
		}
		return nil
	})
}

// copilotProject is what workspace.yaml beside the events says, for versions whose first event does not.
func (f *file) copilotProject() string {
	for line := range strings.Lines(string(f.document(path.Join(path.Dir(f.path), "workspace.yaml")))) {
		if dir, found := strings.CutPrefix(line, "cwd: "); found {
			return strings.TrimSpace(dir)
		}
	}
	return ""
}
