package bridge

import "github.com/toolward/toolward"

// opencodeTools is what the tools of opencode 1.18.34 are in Toolward's words. Left out on purpose: skill, whose skills run
// what nobody sees here, and invalid, under which opencode keeps calls of tools that do not exist.
var opencodeTools = map[string]native{
	"bash":  {tool: "exec", posix: true, mutates: true, args: "command:command! timeout>timeoutMs:number workdir:text description:text"},
	"read":  {tool: "read", args: "filePath>path:path! offset:number limit:number"},
	"list":  {tool: "read", action: "list", args: "path:dir ignore:list"},
	"glob":  {tool: "read", action: "glob", look: lookIntoGlob, args: "pattern:text! path:dir"},
	"grep":  {tool: "read", action: "grep", look: lookIntoTree, args: "pattern:text! path:dir include:text"},
	"write": {tool: "write", op: toolward.OpWrite, mutates: true, args: "filePath>path:path! content:text!"},
	"edit": {
		tool: "edit", op: toolward.OpWrite, mutates: true,
		args: "filePath>path:path! oldString>oldText:text! newString>newText:text! replaceAll:flag",
	},
	"apply_patch": {tool: "apply_patch", op: toolward.OpWrite, mutates: true, look: lookIntoPatch, args: "patchText>input:text!"},

	"webfetch":  {tool: "web_fetch", args: "url:url! format:text timeout:number"},
	"websearch": {tool: "web_search", args: "query:query! numResults:number livecrawl:text type:text contextMaxCharacters:number"},
	"task": {
		tool: "sessions_spawn", mutates: true,
		args: "prompt>task:text! subagent_type>agentId:target! description>label:text task_id:text command:text",
	},

	"todowrite": {tool: clientTool, action: "todo_write", declared: ownBusiness, args: "todos:list!"},
	"todoread":  {tool: clientTool, action: "todo_read", declared: ownBusiness},
	"question":  {tool: clientTool, action: "question", declared: ownBusiness, silent: true, args: "questions:list!"},
}

// opencodeAliases are older names of tools.
var opencodeAliases = map[string]string{"patch": "apply_patch"}
