package bridge

import (
	"regexp"

	"github.com/toolward/toolward"
)

// geminiTools is what the tools of Gemini CLI 0.61.0 are in Toolward's words. Left out on purpose: activate_skill, whose
// skills run what nobody sees here.
var geminiTools = map[string]native{
	"run_shell_command": {
		tool: "exec", posix: true, mutates: true,
		args: "command:command! description:text dir_path:text directory:text is_background>background:flag delay_ms:number wait_for_previous:flag",
	},
	"read_background_output":    {tool: "process", action: "poll", look: lookAtOwn, args: "pid:any! lines:number delay_ms:number wait_for_previous:flag"},
	"list_background_processes": {tool: "process", action: "list", args: "wait_for_previous:flag"},

	"read_file": {
		tool: "read",
		args: "file_path>path:path absolute_path>oldPath:path start_line:number end_line:number offset:number limit:number wait_for_previous:flag",
	},
	"list_directory": {tool: "read", action: "list", args: "dir_path>path:dir ignore:list file_filtering_options:object respect_git_ignore:flag wait_for_previous:flag"},
	"grep_search": {
		tool: "read", action: "grep", look: lookIntoTree,
		args: "pattern:text! dir_path>path:dir include:text include_pattern:text exclude_pattern:text names_only:flag max_matches_per_file:number total_max_matches:number " +
			"case_sensitive:flag fixed_strings:flag context:number before:number after:number no_ignore:flag wait_for_previous:flag",
	},
	"glob": {
		tool: "read", action: "glob", look: lookIntoGlob,
		args: "pattern:text! dir_path>path:dir case_sensitive:flag respect_git_ignore:flag respect_gemini_ignore:flag wait_for_previous:flag",
	},
	"write_file": {tool: "write", op: toolward.OpWrite, mutates: true, args: "file_path>path:path! content:text! wait_for_previous:flag ai_proposed_content:text modified_by_user:flag"},
	"replace": {
		tool: "edit", op: toolward.OpWrite, mutates: true,
		args: "file_path>path:path! old_string>oldText:text! new_string>newText:text! instruction:text expected_replacements:number allow_multiple:flag " +
			"wait_for_previous:flag ai_proposed_content:text modified_by_user:flag",
	},

	"web_fetch":         {tool: "web_fetch", look: lookIntoPrompt, args: "prompt:query! wait_for_previous:flag"},
	"google_web_search": {tool: "web_search", args: "query:query! wait_for_previous:flag"},
	"invoke_agent":      {tool: "sessions_spawn", mutates: true, args: "agent_name>agentId:target! prompt>task:text! wait_for_previous:flag"},

	"update_topic":    {tool: clientTool, action: "update_topic", declared: ownBusiness, args: "title:text summary:text strategic_intent:text wait_for_previous:flag"},
	"write_todos":     {tool: clientTool, action: "write_todos", declared: ownBusiness, args: "todos:list! wait_for_previous:flag"},
	"complete_task":   {tool: clientTool, action: "complete_task", declared: ownBusiness, args: "result:any report:any"},
	"ask_user":        {tool: clientTool, action: "ask_user", declared: ownBusiness, silent: true, args: "questions:list! wait_for_previous:flag"},
	"enter_plan_mode": {tool: clientTool, action: "enter_plan_mode", declared: ownBusiness, silent: true, args: "reason:text wait_for_previous:flag"},
	"exit_plan_mode":  {tool: clientTool, action: "exit_plan_mode", declared: ownBusiness, silent: true, args: "plan_path:text plan_filename:text wait_for_previous:flag"},
	"save_memory":     {tool: clientTool, action: "save_memory", declared: ownButAsk, mutates: true, args: "fact:text! scope:text wait_for_previous:flag"},
}

// geminiAliases are older names of tools.
var geminiAliases = map[string]string{"search_file_content": "grep_search"}

var addressInText = regexp.MustCompile(`https?://[^\s<>"']+`)

// lookIntoPrompt adds the addresses that stand in a text which says what to fetch.
func lookIntoPrompt(_ *factsFinder, r *toolward.Request, facts *toolward.Facts) {
	for _, address := range addressInText.FindAllString(r.Params.Text("prompt"), -1) {
		addAddress(facts, address)
	}
}
