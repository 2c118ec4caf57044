package bridge

import (
	"strings"

	"github.com/toolward/toolward"
)

// codexTools is what the tools of Codex 0.169.0 and earlier are in Toolward's words. Commands come as Codex gives them to its
// hooks: their text, and beside it the directory in which they run.
var codexTools = map[string]native{
	"exec_command": {
		tool: "exec", posix: true, mutates: true, look: lookIntoCodexCommand, machine: codexEscalated,
		args: "command:command! escalated:flag tty:flag",
	},
	"apply_patch": {tool: "apply_patch", op: toolward.OpWrite, mutates: true, look: lookIntoPatch, args: "input:text!"},
	"view_image":  {tool: "read", args: "path:path!"},
	"web_search":  {tool: "web_search", args: "query:query!"},

	"write_stdin":      {tool: "process", action: "write", mutates: true, args: "session_id>session:any! chars>data:text! yield_time_ms:number max_output_tokens:number"},
	"write_stdin:poll": {tool: "process", action: "poll", look: lookAtOwn, args: "session_id>session:any! chars>data:text yield_time_ms:number max_output_tokens:number"},

	"spawn_agent": codexSpawn, "multi_agent_v1__spawn_agent": codexSpawn,
	"send_input": codexSend, "multi_agent_v1__send_input": codexSend,
	"wait_agent": codexWait, "multi_agent_v1__wait_agent": codexWait, "wait": codexWait,
	"close_agent": codexClose, "multi_agent_v1__close_agent": codexClose,

	"update_plan":        {tool: clientTool, action: "update_plan", declared: ownBusiness, args: "plan:list! explanation:text"},
	"get_goal":           {tool: clientTool, action: "get_goal", declared: ownBusiness},
	"create_goal":        {tool: clientTool, action: "create_goal", declared: ownBusiness, args: "objective:text! token_budget:number"},
	"update_goal":        {tool: clientTool, action: "update_goal", declared: ownBusiness, args: "status:text!"},
	"request_user_input": {tool: clientTool, action: "request_user_input", declared: ownBusiness, silent: true, args: "questions:list!"},
}

var (
	codexSpawn = native{
		tool: "sessions_spawn", mutates: true, look: lookIntoCodexAgent,
		args: "message>task:text items:list agent_type>agentId:target model:text reasoning_effort:text fork_context:flag",
	}
	codexSend  = native{tool: "sessions_send", mutates: true, args: "target:target! message:text items:list interrupt:flag"}
	codexWait  = native{tool: clientTool, action: "wait_agent", declared: ownBusiness, args: "targets:list ids:list timeout_ms:number"}
	codexClose = native{tool: clientTool, action: "close_agent", declared: ownBusiness, args: "target:text id:text"}
)

// codexEscalated reports whether the call asks to leave the client's own sandbox.
func codexEscalated(p toolward.Params) bool {
	out, _ := p.Bool("escalated")
	return out
}

// lookIntoCodexCommand says when the command would leave Codex's own sandbox, as for those of Claude Code, and when more could be
// typed into it later: that raises no event of a hook.
func lookIntoCodexCommand(l *factsFinder, r *toolward.Request, facts *toolward.Facts) {
	if codexEscalated(r.Params) && !l.confines(r.Call.Caller, r.Call.Session) {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "sandbox_off", Effect: toolward.EffectAsk, Detail: "the command would run outside the client's own sandbox",
		})
	}
	if tty, _ := r.Params.Bool("tty"); tty {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "unguarded", Effect: toolward.EffectAsk, Detail: "the command has a terminal: what is typed into it later is not guarded",
		})
	}
}

// lookIntoCodexAgent gives an agent without a type the name of Codex's own default.
func lookIntoCodexAgent(_ *factsFinder, _ *toolward.Request, facts *toolward.Facts) {
	if facts.TargetID == "" {
		facts.TargetID = "default"
	}
}

// patchMarks begin the lines of a patch that name files.
var patchMarks = map[string]toolward.Op{
	"*** Add File:": toolward.OpWrite, "*** Update File:": toolward.OpWrite, "*** Move to:": toolward.OpWrite, "*** Delete File:": toolward.OpDelete,
}

// lookIntoPatch adds the files that a patch names. A line that only looks like one that names a file is taken for one: a
// patch must not change a file that nobody looked at.
func lookIntoPatch(l *factsFinder, r *toolward.Request, facts *toolward.Facts) {
	problem, files := "", 0
	for line := range strings.Lines(r.Params.Text("input")) {
		for mark, op := range patchMarks {
			path, found := strings.CutPrefix(strings.TrimSpace(line), mark)
			if !found {
				continue
			}
			files++
			target, err := l.target(r.Call.WorkDir, strings.TrimSpace(path), op)
			if err != nil {
				problem = err.Error()
				continue
			}
			facts.Targets = append(facts.Targets, target)
			if op == toolward.OpDelete {
				facts.Deletes++
			}
		}
	}
	if files == 0 {
		problem = "it names none"
	}
	if problem != "" {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "patch", Effect: toolward.EffectAsk, Detail: "which files the patch would change cannot be told: " + problem,
		})
	}
}
