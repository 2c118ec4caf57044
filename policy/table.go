package policy

import (
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// Short names that keep the table readable.
const (
	lockdown = toolward.Lockdown
	elevated = toolward.Elevated

	info     = toolward.Info
	warning  = toolward.Warning
	critical = toolward.Critical

	none        = toolward.GrantNone
	exact       = toolward.GrantExact
	byPath      = toolward.GrantPath
	byHost      = toolward.GrantHost
	byRecipient = toolward.GrantRecipient
	bySession   = toolward.GrantSession
	byAgent     = toolward.GrantAgent
	byNode      = toolward.GrantNode
	byProcess   = toolward.GrantProcess
	byExec      = toolward.GrantExec
)

// classTable says how risky every known tool and action is. Rows of a tool are tried from top to bottom, the first
// hit decides; an action in no row is treated by fallback.
func classTable() []row {
	var rows []row
	for _, tool := range []string{"read", "list", "search"} {
		rows = append(rows, readRows(tool)...)
	}
	for _, tool := range []string{"write", "edit", "apply_patch"} {
		rows = append(rows, writeRows(tool)...)
	}
	return append(rows, otherRows()...)
}

func readRows(tool string) []row {
	return []row{
		{tool, nil, at(place.Workspace, place.Instructions), safe(lockdown, info, none), tool + ": workspace, instructions", toolward.Reason{}},
		{tool, nil, at(place.Outside, place.Protected), safe(elevated, info, none), tool + ": outside, protected", toolward.Reason{}},
		{tool, nil, at(place.Secret), approval(critical, none), tool + ": secret", toolward.Reason{}},
		{tool, nil, at(place.Self), blocked, tool + ": self", toolward.Reason{}},
	}
}

func writeRows(tool string) []row {
	return []row{
		{tool, nil, at(place.Workspace), approval(info, byPath), tool + ": workspace", toolward.Reason{}},
		{tool, nil, at(place.Instructions, place.Outside), approval(warning, exact), tool + ": instructions, outside", toolward.Reason{}},
		{tool, nil, at(place.Protected, place.Secret), approval(critical, none), tool + ": protected, secret", toolward.Reason{}},
		{tool, nil, at(place.Self), blocked, tool + ": self", toolward.Reason{}},
	}
}

func otherRows() []row {
	return []row{
		{"exec", nil, isElevated, blocked, "exec: elevated", toolward.Reason{}},
		{"exec", nil, nil, approval(info, byExec), "exec", toolward.Reason{}},

		{"process", do("list poll log"), nil, safe(lockdown, info, none), "process: look", toolward.Reason{}},
		{"process", do("kill remove clear"), ownScope, safe(elevated, info, none), "process: end own", toolward.Reason{}},
		{"process", do("write send-keys submit paste"), nil, approval(warning, byProcess), "process: input", toolward.Reason{}},

		{"web_search", nil, nil, safe(elevated, info, none), "web_search", toolward.Reason{}},
		{"web_fetch", nil, nil, safe(elevated, info, byHost), "web_fetch", toolward.Reason{}},

		{"memory_search", nil, nil, safe(lockdown, info, none), "memory_search", toolward.Reason{}},
		{"memory_get", nil, nil, safe(lockdown, info, none), "memory_get", toolward.Reason{}},

		{"sessions_list", nil, inTree, safe(lockdown, info, none), "sessions_list: own", toolward.Reason{}},
		{"sessions_list", nil, nil, safe(elevated, info, none), "sessions_list: other", toolward.Reason{}},
		{"sessions_history", nil, inTree, safe(lockdown, info, none), "sessions_history: own", toolward.Reason{}},
		{"sessions_history", nil, nil, safe(elevated, info, none), "sessions_history: other", toolward.Reason{}},
		{"session_status", nil, changesModel, approval(warning, exact), "session_status: model", toolward.Reason{}},
		{"session_status", nil, nil, safe(lockdown, info, none), "session_status", toolward.Reason{}},
		{"sessions_send", nil, nil, approval(info, bySession), "sessions_send", toolward.Reason{}},
		{"sessions_spawn", nil, nil, approval(info, byAgent), "sessions_spawn", toolward.Reason{}},
		{"subagents", do("list"), nil, safe(lockdown, info, none), "subagents: list", toolward.Reason{}},
		{"subagents", do("kill"), nil, safe(elevated, info, none), "subagents: kill", toolward.Reason{}},
		{"subagents", do("steer"), nil, approval(info, bySession), "subagents: steer", toolward.Reason{}},
		{"agents_list", nil, nil, safe(lockdown, info, none), "agents_list", toolward.Reason{}},

		{"browser", do("status profiles tabs"), nil, safe(lockdown, info, none), "browser: status", toolward.Reason{}},
		{"browser", browserLook, inSandbox, safe(elevated, info, none), "browser: look, sandbox", toolward.Reason{}},
		{"browser", do("open navigate"), inSandbox, safe(elevated, info, byHost), "browser: navigate, sandbox", toolward.Reason{}},
		{"browser", browserLook, nil, approval(warning, exact), "browser: look, own browser", toolward.Reason{}},
		{"browser", do("open navigate"), nil, approval(warning, byHost), "browser: navigate, own browser", toolward.Reason{}},
		{"browser", do("act"), actIs("evaluate"), approval(critical, none), "browser: evaluate", toolward.Reason{}},
		{"browser", do("act"), actOnly("wait", "hover", "resize"), safe(elevated, info, none), "browser: wait, hover, resize, sandbox", toolward.Reason{}},
		{"browser", do("act upload dialog"), nil, approval(warning, exact), "browser: act", toolward.Reason{}},

		{"canvas", do("hide snapshot a2ui_reset"), nil, safe(elevated, info, none), "canvas: look", toolward.Reason{}},
		{"canvas", do("eval"), nil, approval(critical, none), "canvas: eval", toolward.Reason{}},
		{"canvas", do("present navigate a2ui_push"), nil, approval(warning, exact), "canvas: show", toolward.Reason{}},

		{"message", messageLook, nil, safe(elevated, info, none), "message: look", toolward.Reason{}},
		{"message", messageManage, nil, approval(critical, none), "message: broadcast, members, channels", toolward.Reason{}},
		{"message", messageSend, nil, approval(info, byRecipient), "message: send", toolward.Reason{}},
		{"message", nil, nil, approval(warning, exact), "message: other", toolward.Reason{}},

		{"cron", do("status list runs"), nil, safe(lockdown, info, none), "cron: look", toolward.Reason{}},
		{"cron", do("add update"), nil, approval(warning, none), "cron: add, update", toolward.Reason{}},
		{"cron", do("remove run wake"), nil, approval(info, exact), "cron: remove, run, wake", toolward.Reason{}},

		{"gateway", do("config.get config.schema"), nil, safe(elevated, info, none), "gateway: look", toolward.Reason{}},
		{"gateway", do("restart"), nil, approval(warning, none), "gateway: restart", toolward.Reason{}},
		{"gateway", do("config.apply config.patch update.run"), nil, blocked, "gateway: change", toolward.Reason{}},

		{"nodes", do("status describe pending"), nil, safe(lockdown, info, none), "nodes: status", toolward.Reason{}},
		{"nodes", nodesLook, nil, safe(elevated, info, none), "nodes: device", toolward.Reason{}},
		{"nodes", do("camera_snap camera_clip screen_record"), nil, blocked, "nodes: camera, screen", toolward.Reason{}},
		{"nodes", do("approve reject"), nil, blocked, "nodes: pairing", toolward.Reason{}},
		{"nodes", do("run"), isElevated, blocked, "nodes: run elevated", toolward.Reason{}},
		{"nodes", do("run"), nil, approval(warning, byExec), "nodes: run", toolward.Reason{}},
		{"nodes", do("notify"), nil, approval(info, byNode), "nodes: notify", toolward.Reason{}},
		{"nodes", do("location_get notifications_list notifications_action"), nil, approval(warning, exact), "nodes: location, notifications", toolward.Reason{}},
		{"nodes", do("invoke"), invokes(invokeBlocked...), blocked, "nodes: invoke, person or device", toolward.Reason{}},
		{"nodes", do("invoke"), invokes(invokeSystem...), blocked, "nodes: invoke, commands", toolward.Reason{}},
		{"nodes", do("invoke"), invokesExactly(invokeLook...), safe(elevated, info, none), "nodes: invoke, look", toolward.Reason{}},
		{"nodes", do("invoke"), nil, approval(warning, exact), "nodes: invoke, other", toolward.Reason{}},

		{"image", nil, at(place.Self), blocked, "image: self", toolward.Reason{}},
		{"image", nil, at(place.Secret), approval(critical, none), "image: secret", toolward.Reason{}},
		{"image", nil, withURLAnd(at(place.Workspace, place.Instructions, place.Outside, place.Protected)), safe(elevated, info, none), "image: file and URL", toolward.Reason{}},
		{"image", nil, at(place.Workspace, place.Instructions), safe(lockdown, info, none), "image: workspace, instructions", toolward.Reason{}},
		{"image", nil, at(place.Outside, place.Protected), safe(elevated, info, none), "image: outside, protected", toolward.Reason{}},
		{"image", nil, withURL, safe(elevated, info, byHost), "image: URL", toolward.Reason{}},

		{"tts", nil, nil, safe(elevated, info, none), "tts", toolward.Reason{}},
		{"whatsapp_login", nil, nil, approval(critical, none), "whatsapp_login", toolward.Reason{}},
	}
}

// Longer lists of actions.
var (
	browserLook   = do("start stop focus close snapshot screenshot console pdf")
	messageLook   = do("read reactions list-pins permissions search member-info role-info emoji-list channel-info channel-list thread-list voice-status event-list sticker-search")
	messageManage = do("broadcast timeout kick ban role-add role-remove removeParticipant addParticipant leaveGroup channel-delete category-delete")
	messageSend   = do("send reply thread-reply react poll sticker sendAttachment sendWithEffect")
	nodesLook     = do("camera_list device_status device_info device_permissions device_health")
	invokeBlocked = []string{"camera.snap", "camera.clip", "screen.record", "contacts.add", "calendar.add", "reminders.add", "sms.send"}
	invokeSystem  = []string{"system.run", "system.run.prepare", "system.execApprovals.get", "system.execApprovals.set"}
	invokeLook    = []string{"system.which", "camera.list", "device.info", "device.status", "device.permissions", "device.health", "motion."}
)

// table is the class table indexed by tool.
type table map[string][]row

// newTable prepares the class table in the variant of a preset.
func newTable(preset Preset) table {
	t := table{}
	for _, r := range classTable() {
		if preset == PresetWorkspace {
			if r.tool == "message" && r.name == "message: send" {
				answer := row{tool: r.tool, actions: r.actions, when: toPresentConversation, name: "message: answer", Classification: safe(elevated, info, byRecipient)}
				t[r.tool] = append(t[r.tool], answer.explained())
			}
			if r.Grant == byPath {
				r.Class, r.From = toolward.Safe, elevated
			}
		}
		t[r.tool] = append(t[r.tool], r.explained())
	}
	return t
}

// unknownTool is the row of tools that the table does not know: plug-ins, MCP servers, tools of clients.
var unknownTool = row{Classification: approval(warning, exact), name: "unknown tool"}.explained()

// classify finds the row of a call to a tool of Toolward; known is false for a tool that is not in the table.
func (t table) classify(s *subject) (found *row, known bool) {
	rows, known := t[s.tool]
	if !known {
		return nil, false
	}
	for i := range rows {
		if rows[i].hits(s) {
			return &rows[i], true
		}
	}
	r := fallback(rows)
	return &r, true
}

// fallback is the row of a known tool for whatever its rows do not name: approval with the gravest severity of the
// rows and no grant. A new action of a tool must not be safer than the worst one we know.
func fallback(rows []row) row {
	r := row{tool: rows[0].tool, Classification: approval(warning, none), name: rows[0].tool + ": other"}
	for i := range rows {
		r.Severity = toolward.Graver(r.Severity, rows[i].Severity)
	}
	return r.explained()
}
