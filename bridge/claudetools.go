package bridge

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// Classes of tools that only touch the client itself.
var (
	ownBusiness = &toolward.Classification{Class: toolward.Safe, From: toolward.Lockdown, Severity: toolward.Info}
	tellsPerson = &toolward.Classification{Class: toolward.Safe, From: toolward.Elevated, Severity: toolward.Info}
	ownButAsk   = &toolward.Classification{Class: toolward.NeedsApproval, From: toolward.Normal, Severity: toolward.Warning, Grant: toolward.GrantExact}
)

// claudeTools is what the tools of Claude Code 2.1.329 are in Toolward's words. What is not in it, and every MCP
// tool, is an unknown tool: people are asked about the client's own words. Left out on purpose, because they send
// something away or run something elsewhere: Artifact*, ClaudeDesign, Projects, RemoteTrigger, SendFeedback,
// SendUserFile, ShareOnboardingGuide, and the readers of MCP resources.
var claudeTools = map[string]native{
	"Bash": {
		tool: "exec", posix: true, mutates: true, look: lookIntoBash, machine: sandboxOff,
		args: "command:command! timeout>timeoutMs:number description:text run_in_background>background:flag dangerouslyDisableSandbox:flag",
	},
	"PowerShell": {
		tool: "exec", mutates: true, look: lookIntoBash,
		args: "command:command! timeout>timeoutMs:number description:text run_in_background>background:flag dangerouslyDisableSandbox:flag",
	},
	"Monitor": {tool: "exec", posix: true, mutates: true, // with "ws" it opens a connection instead: unknown
		args: "command:command! description:text timeout_ms>timeoutMs:number"},

	"Read": {tool: "read", args: "file_path>path:path! offset:number limit:number pages:text allow_large:flag"},
	"Glob": {tool: "read", action: "glob", look: lookIntoGlob, args: "pattern:text! path:dir"},
	"Grep": {
		tool: "read", action: "grep", look: lookIntoTree,
		args: "pattern:text! path:dir glob:text output_mode:text -B:number -A:number -C:number context:number -n:flag -i:flag -o:flag type:text head_limit:number offset:number multiline:flag",
	},
	"LSP": {tool: "read", action: "lsp", args: "operation:text! filePath>path:path! line:number character:number query:text"},
	"Write": {
		tool: "write", op: toolward.OpWrite, mutates: true, diff: diffOfWrite,
		args: "file_path>path:path! content:text!",
	},
	"Edit": {
		tool: "edit", op: toolward.OpWrite, mutates: true, diff: diffOfEdit,
		args: "file_path>path:path! old_string>oldText:text! new_string>newText:text! replace_all:flag",
	},
	"NotebookEdit": {
		tool: "edit", op: toolward.OpWrite, mutates: true,
		args: "notebook_path>path:path! new_source>newText:text! cell_id:text cell_type:text edit_mode:text",
	},

	"WebFetch":  {tool: "web_fetch", args: "url:url! prompt:text offset:number"},
	"WebSearch": {tool: "web_search", args: "query:query! allowed_domains:list blocked_domains:list"},

	"Agent": {
		tool: "sessions_spawn", mutates: true, look: lookIntoAgent,
		args: "prompt>task:text! description>label:text subagent_type>agentId:target model:text effort:text run_in_background>background:flag name:text team_name:text mode:text isolation:text",
	},
	"Workflow": {
		tool: "sessions_spawn", mutates: true, look: lookIntoWorkflow,
		args: "script:text name:text description:text title:text args:any scriptPath:text resumeFromRunId:text",
	},
	"SendMessage": {tool: "sessions_send", mutates: true, args: "to:target! summary:text message:text notify_when_idle:flag"},
	"ListAgents":  {tool: "agents_list", args: "channel:text q:text cursor:text"},

	"CronCreate":     {tool: "cron", action: "add", mutates: true, args: "cron:text! prompt:text! recurring:flag durable:flag"},
	"CronDelete":     {tool: "cron", action: "remove", mutates: true, args: "id:target!"},
	"CronList":       {tool: "cron", action: "list"},
	"ScheduleWakeup": {tool: "cron", action: "add", mutates: true, args: "delaySeconds:number reason:text prompt:text stop:flag noop:flag"},

	"BashOutput": {tool: "process", action: "poll", look: lookAtOwn, args: "bash_id>id:target! filter:text"},
	"TaskOutput": {tool: "process", action: "poll", look: lookAtOwn, args: "task_id>id:target! block:flag timeout>timeoutMs:number"},
	"TaskStop":   {tool: "process", action: "kill", look: lookAtOwn, args: "task_id:target shell_id:target"},
	"KillShell":  {tool: "process", action: "kill", look: lookAtOwn, args: "task_id:target shell_id:target"},

	"Skill": {tool: clientTool, action: "skill", declared: ownBusiness, look: lookIntoSkill, args: "skill:text! args:text"},

	"TodoWrite":                {tool: clientTool, action: "todo_write", declared: ownBusiness, args: "todos:list!"},
	"TaskCreate":               {tool: clientTool, action: "task_create", declared: ownBusiness, args: "subject:text! description:text! activeForm:text metadata:object"},
	"TaskGet":                  {tool: clientTool, action: "task_get", declared: ownBusiness, args: "taskId:text!"},
	"TaskList":                 {tool: clientTool, action: "task_list", declared: ownBusiness},
	"TaskUpdate":               {tool: clientTool, action: "task_update", declared: ownBusiness, args: "taskId:text! subject:text description:text activeForm:text status:text addBlocks:list addBlockedBy:list owner:text metadata:object"},
	"ToolSearch":               {tool: clientTool, action: "tool_search", declared: ownBusiness, args: "query:text! max_results:number"},
	"ListMcpResourcesTool":     {tool: clientTool, action: "list_mcp_resources", declared: ownBusiness, args: "server:text"},
	"RefreshMcpTools":          {tool: clientTool, action: "refresh_mcp_tools", declared: ownBusiness, args: "server:text"},
	"WaitForMcpServers":        {tool: clientTool, action: "wait_for_mcp_servers", declared: ownBusiness, args: "servers:list"},
	"ReportFindings":           {tool: clientTool, action: "report_findings", declared: ownBusiness, args: "level:text findings:list!"},
	"ReadNotifications":        {tool: clientTool, action: "read_notifications", declared: ownBusiness},
	"SetGoal":                  {tool: clientTool, action: "set_goal", declared: ownBusiness, args: "condition:text! ask_user:flag"},
	"EndConversation":          {tool: clientTool, action: "end_conversation", declared: ownBusiness},
	"ShowOnboardingRolePicker": {tool: clientTool, action: "show_onboarding_role_picker", declared: ownBusiness, silent: true},
	"OfferChromeSetup":         {tool: clientTool, action: "offer_chrome_setup", declared: ownBusiness, silent: true, args: "reason:text"},
	"AskUserQuestion":          {tool: clientTool, action: "ask_user_question", declared: ownBusiness, silent: true, args: "questions:list! answers:object annotations:object metadata:object"},
	"EnterPlanMode":            {tool: clientTool, action: "enter_plan_mode", declared: ownBusiness, silent: true},
	"ExitPlanMode":             {tool: clientTool, action: "exit_plan_mode", declared: ownBusiness, silent: true, args: "allowedPrompts:list plan:text planFilePath:text"},
	"propose_skills":           {tool: clientTool, action: "propose_skills", declared: ownBusiness, silent: true, args: "proposals:list!"},
	"PushNotification":         {tool: clientTool, action: "push_notification", declared: tellsPerson, args: "message:query! status:text"},
	"SendUserMessage":          {tool: clientTool, action: "send_user_message", declared: tellsPerson, args: "message:query! status:text"},
	"EnterWorktree":            {tool: clientTool, action: "enter_worktree", declared: ownButAsk, mutates: true, args: "name:text path:path"},
	"ExitWorktree":             {tool: clientTool, action: "exit_worktree", declared: ownButAsk, mutates: true, args: "action>choice:text! discard_changes:flag"},
}

// claudeAliases are older names that the client still understands.
var claudeAliases = map[string]string{
	"Task": "Agent", "KillBash": "KillShell", "ListPeers": "ListAgents", "Brief": "SendUserMessage",
	"ListMcpResources": "ListMcpResourcesTool", "ProposeGoal": "SetGoal", "AgentOutputTool": "TaskOutput",
}

// claudeExternal names the tools whose results strangers may have written; MCP tools are added by their prefix.
var claudeExternal = map[string]bool{
	"WebFetch": true, "WebSearch": true, "ReadMcpResourceTool": true, "ReadMcpResourceDirTool": true,
	"Artifact": true, "Projects": true, "RemoteTrigger": true,
}

// sandboxOff reports whether the model asks for a command outside of its sandbox.
func sandboxOff(p toolward.Params) bool {
	off, _ := p.Bool("dangerouslyDisableSandbox")
	return off
}

// lookIntoBash says when the command would leave the client's own sandbox. Where Toolward confines the session's commands, it is one
// that runs on the machine by its own request, and is judged so.
func lookIntoBash(l *factsFinder, r *toolward.Request, facts *toolward.Facts) {
	if l.hidden(r, facts) {
		l.lookAtOwnRules(facts)
	}
	if sandboxOff(r.Params) && !l.confines(r.Call.Caller, r.Call.Session) {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "sandbox_off", Effect: toolward.EffectAsk, Detail: "the command would run outside the client's own sandbox",
		})
	}
}

// lookIntoAgent says when a sub-agent would work where this bridge does not see its calls, and when its definition, which a project
// can bring, starts programs: a lasting yes for an agent's name must not cover these.
func lookIntoAgent(l *factsFinder, r *toolward.Request, facts *toolward.Facts) {
	if facts.TargetID == "" {
		facts.TargetID = "general-purpose" // the client's default
	}
	if where := r.Params.Text("isolation"); where != "" && where != "worktree" {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "unguarded", Effect: toolward.EffectAsk, Detail: "the agent would work elsewhere (" + where + "), where its calls are not guarded",
		})
	}
	if l.bring(r.Call.WorkDir, definitions{name: facts.TargetID, dirs: []string{"agents"}, runs: []string{"hooks", "mcpServers"}}) {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "unguarded", Effect: toolward.EffectAsk,
			Detail: "the agent's definition may bring hooks or servers: programs that the client starts without asking Toolward",
		})
	}
}

// lookIntoWorkflow keeps a grant for one workflow from covering another: each runs a script of its own.
func lookIntoWorkflow(_ *factsFinder, _ *toolward.Request, facts *toolward.Facts) {
	facts.TargetID = "workflow"
	facts.Findings = append(facts.Findings, toolward.Finding{
		Code: "script", Effect: toolward.EffectAsk, Detail: "a workflow is a script that starts agents",
	})
}

// lookAtOwn: a client can only reach shells and tasks that it started itself.
func lookAtOwn(_ *factsFinder, _ *toolward.Request, facts *toolward.Facts) { facts.Scope = "self" }

// lookIntoSkill asks about skills that can run commands behind the hooks' back: Claude Code runs a skill's inline
// shell lines (!`…`) and its own hooks without a PreToolUse event, and a skill can permit itself to. Inline shell
// is off where the client's setting disableSkillShellExecution says so, which install proposes.
func lookIntoSkill(l *factsFinder, r *toolward.Request, facts *toolward.Facts) {
	name := r.Params.Text("skill")
	detail := ""
	switch {
	case !l.skillShellOff():
		detail = "the client would run the skill's shell lines without asking Toolward; setting disableSkillShellExecution stops that"
	case l.skillHasHooks(r.Call.WorkDir, name):
		detail = "the skill brings hooks: commands that the client runs without asking Toolward"
	default:
		return
	}
	facts.Findings = append(facts.Findings, toolward.Finding{Code: "skill_runs_commands", Effect: toolward.EffectAsk, Detail: detail})
}

// skillShellOff reads the client's settings as the client does: managed settings decide, then the nearest file.
func (l *factsFinder) skillShellOff() bool {
	for _, path := range l.settingsFiles() {
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		var off *bool
		if err != nil || member(data, "disableSkillShellExecution", &off) != nil {
			return false
		}
		if off != nil {
			return *off
		}
	}
	return false
}

// skillHasHooks reports whether a skill of this name may have hooks. Skills of plug-ins have a colon in their name; their files lie
// wherever the plug-in was put, so they count as having hooks.
func (l *factsFinder) skillHasHooks(workDir, name string) bool {
	name = strings.TrimPrefix(name, "/")
	if name == "" || strings.Contains(name, ":") || strings.Contains(name, "..") || !filepath.IsLocal(name) {
		return true
	}
	return l.bring(workDir, definitions{name: name, dirs: []string{"skills", "commands"}, runs: []string{"hooks"}})
}

// claudeManagedSettings is where an administrator's settings of the client are.
func claudeManagedSettings() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	}
	return "/etc/claude-code/managed-settings.json"
}

// hideSecretLines takes the lines of secret files out of the result of a search through a directory: "path:line"
// in front of each line tells which file it is from. A search through the whole workspace is safe only so.
func (l *factsFinder) hideSecretLines(workDir, content string) (string, bool) {
	lines := strings.SplitAfter(content, "\n")
	known := map[string]bool{}
	changed := false
	for i, line := range lines {
		for at := range min(len(line), 1024) {
			if c := line[at]; c != ':' && c != '-' || at == 0 {
				continue
			}
			name := line[:at]
			secret, seen := known[name]
			if !seen {
				secret = l.isSecretFile(workDir, name)
				known[name] = secret
			}
			if secret {
				lines[i] = name + ": hidden by Toolward: a line of a file with secrets\n"
				changed = true
				break
			}
		}
	}
	return strings.Join(lines, ""), changed
}

func (l *factsFinder) isSecretFile(workDir, name string) bool {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(workDir, name)
	}
	if p := l.places.Classify(path); p > place.Secret {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir()
}
