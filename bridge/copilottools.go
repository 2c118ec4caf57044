package bridge

import "github.com/toolward/toolward"

// copilotTools is what the tools of GitHub Copilot CLI 1.0.102 are in Toolward's words. Left out on purpose: skill, and the
// tools of GitHub's own server.
var copilotTools = map[string]native{
	"bash": {
		tool: "exec", posix: true, mutates: true,
		args: "command:command! description:text shellId:text sessionId:text mode:text detach>background:flag async:flag initial_wait:number timeout:number",
	},
	"powershell": {tool: "exec", mutates: true, args: "command:command! description:text shellId:text sessionId:text mode:text detach>background:flag initial_wait:number"},
	"read_bash":  {tool: "process", action: "poll", look: lookAtOwn, args: "shellId:target sessionId:target delay:number"},
	"stop_bash":  {tool: "process", action: "kill", look: lookAtOwn, args: "shellId:target sessionId:target"},
	"write_bash": {tool: "process", action: "write", mutates: true, args: "shellId:target sessionId:target input>data:text! delay:number"},
	"list_bash":  {tool: "process", action: "list"},

	"view":   {tool: "read", args: "path:path! view_range:list forceReadLargeFiles:flag"},
	"glob":   {tool: "read", action: "glob", look: lookIntoPaths, args: "pattern:text! path>at:path paths:any"},
	"grep":   copilotGrep,
	"rg":     copilotGrep,
	"create": {tool: "write", op: toolward.OpWrite, mutates: true, args: "path:path! file_text>content:text!"},
	"edit": {
		tool: "edit", op: toolward.OpWrite, mutates: true,
		args: "path:path! old_str>oldText:text new_str>newText:text",
	},
	"apply_patch": {tool: "apply_patch", op: toolward.OpWrite, mutates: true, look: lookIntoPatch, args: "input:text!"},

	"web_fetch":  {tool: "web_fetch", args: "url:url! max_length:number start_index:number raw:flag"},
	"web_search": {tool: "web_search", args: "query:query!"},

	"task": {
		tool: "sessions_spawn", mutates: true,
		args: "prompt>task:text! agent_type>agentId:target! description>label:text name:text model:text reasoning_effort:text context_tier:text mode:text",
	},
	"write_agent": {tool: "sessions_send", mutates: true, args: "agent_id>target:target agent_ids:list scope:text message:text!"},
	"read_agent":  {tool: clientTool, action: "read_agent", declared: ownBusiness, args: "agent_id:text! wait:flag timeout:number since_turn:number"},
	"list_agents": {tool: "agents_list", args: "include_completed:flag scope:text"},

	"report_intent": {tool: clientTool, action: "report_intent", declared: ownBusiness, args: "intent:text!"},
	"update_todo":   {tool: clientTool, action: "update_todo", declared: ownBusiness, args: "todos:any!"},
	"task_complete": {tool: clientTool, action: "task_complete", declared: ownBusiness, args: "summary:text"},
	"sql":           {tool: clientTool, action: "sql", declared: ownBusiness, args: "description:text query:text!"}, // of the session's own notes
	"ask_user":      {tool: clientTool, action: "ask_user", declared: ownBusiness, silent: true, args: "question:text! choices:list allow_freeform:flag"},
	"exit_plan_mode": {
		tool: clientTool, action: "exit_plan_mode", declared: ownBusiness, silent: true,
		args: "summary:text actions:list recommendedAction:text",
	},
	"fetch_copilot_cli_documentation": {tool: clientTool, action: "documentation", declared: ownBusiness},
}

var copilotGrep = native{
	tool: "read", action: "grep", look: lookIntoPaths,
	args: "pattern:text! path>at:path paths:any output_mode:text glob:text type:text -i:flag -A:number -B:number -C:number -n:flag head_limit:number multiline:flag",
}

// lookIntoPaths adds where a search looks: in the paths of its arguments, one or a list, and without any in the working
// directory.
func lookIntoPaths(l *factsFinder, r *toolward.Request, facts *toolward.Facts) {
	var paths []string
	switch given := r.Params.Value("paths").(type) {
	case string:
		paths = []string{given}
	case []any:
		for _, one := range given {
			path, isText := one.(string)
			if !isText {
				facts.Findings = append(facts.Findings, unclearPath("a path is not a text"))
				continue
			}
			paths = append(paths, path)
		}
	case nil:
		if len(facts.Targets) == 0 {
			paths = []string{r.Call.WorkDir}
		}
	default:
		facts.Findings = append(facts.Findings, unclearPath("the paths are no list"))
	}
	for _, path := range paths {
		target, err := l.target(r.Call.WorkDir, path, toolward.OpRead)
		if err != nil {
			facts.Findings = append(facts.Findings, unclearPath(err.Error()))
			continue
		}
		one := toolward.Facts{Action: facts.Action, Targets: []toolward.Target{target}}
		lookIntoTree(l, r, &one)
		facts.Targets, facts.Findings = append(facts.Targets, one.Targets...), append(facts.Findings, one.Findings...)
	}
}

func unclearPath(why string) toolward.Finding {
	return toolward.Finding{Code: "search_place", Effect: toolward.EffectAsk, Detail: "where the search looks cannot be told: " + why}
}
