package policy

import (
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy/visible"
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
func classTable() []line {
	var rows []line
	for _, tool := range []string{"read", "list", "search"} {
		rows = append(rows, readRows(tool)...)
	}
	for _, tool := range []string{"write", "edit", "apply_patch"} {
		rows = append(rows, writeRows(tool)...)
	}
	return append(rows, otherRows()...)
}

func readRows(tool string) []line {
	return []line{
		{tool, nil, at(place.Workspace, place.Instructions), safe(lockdown, info, none), tool + ": workspace, instructions"},
		{tool, nil, at(place.Outside, place.Protected), safe(elevated, info, none), tool + ": outside, protected"},
		{tool, nil, at(place.Secret), approval(critical, none), tool + ": secret"},
		{tool, nil, at(place.Self), blocked, tool + ": self"},
	}
}

func writeRows(tool string) []line {
	return []line{
		{tool, nil, at(place.Workspace), approval(info, byPath), tool + ": workspace"},
		{tool, nil, at(place.Instructions, place.Outside), approval(warning, exact), tool + ": instructions, outside"},
		{tool, nil, at(place.Protected, place.Secret), approval(critical, none), tool + ": protected, secret"},
		{tool, nil, at(place.Self), blocked, tool + ": self"},
	}
}

func otherRows() []line {
	return []line{
		{"exec", nil, isElevated, blocked, "exec: elevated"},
		{"exec", nil, nil, approval(info, byExec), "exec"},

		{"process", do("list poll log"), nil, safe(lockdown, info, none), "process: look"},
		{"process", do("kill remove clear"), ownScope, safe(elevated, info, none), "process: end own"},
		{"process", do("write send-keys submit paste"), nil, approval(warning, byProcess), "process: input"},

		{"web_search", nil, nil, safe(elevated, info, none), "web_search"},
		{"web_fetch", nil, nil, safe(elevated, info, byHost), "web_fetch"},
		{visible.EgressTool, nil, nil, approval(warning, byHost), visible.EgressTool},

		{"memory_search", nil, nil, safe(lockdown, info, none), "memory_search"},
		{"memory_get", nil, nil, safe(lockdown, info, none), "memory_get"},

		{"sessions_list", nil, inTree, safe(lockdown, info, none), "sessions_list: own"},
		{"sessions_list", nil, nil, safe(elevated, info, none), "sessions_list: other"},
		{"sessions_history", nil, inTree, safe(lockdown, info, none), "sessions_history: own"},
		{"sessions_history", nil, nil, safe(elevated, info, none), "sessions_history: other"},
		{"session_status", nil, changesModel, approval(warning, exact), "session_status: model"},
		{"session_status", nil, nil, safe(lockdown, info, none), "session_status"},
		{"sessions_send", nil, nil, approval(info, bySession), "sessions_send"},
		{"sessions_spawn", nil, nil, approval(info, byAgent), "sessions_spawn"},
		{"subagents", do("list"), nil, safe(lockdown, info, none), "subagents: list"},
		{"subagents", do("kill"), nil, safe(elevated, info, none), "subagents: kill"},
		{"subagents", do("steer"), nil, approval(info, bySession), "subagents: steer"},
		{"agents_list", nil, nil, safe(lockdown, info, none), "agents_list"},

		{"browser", do("status profiles tabs"), nil, safe(lockdown, info, none), "browser: status"},
		{"browser", browserLook, inSandbox, safe(elevated, info, none), "browser: look, sandbox"},
		{"browser", do("open navigate"), inSandbox, safe(elevated, info, byHost), "browser: navigate, sandbox"},
		{"browser", browserLook, nil, approval(warning, exact), "browser: look, own browser"},
		{"browser", do("open navigate"), nil, approval(warning, byHost), "browser: navigate, own browser"},
		{"browser", do("act"), actIs("evaluate"), approval(critical, none), "browser: evaluate"},
		{"browser", do("act"), actOnly("wait", "hover", "resize"), safe(elevated, info, none), "browser: wait, hover, resize, sandbox"},
		{"browser", do("act upload dialog"), nil, approval(warning, exact), "browser: act"},

		{"canvas", do("hide snapshot a2ui_reset"), nil, safe(elevated, info, none), "canvas: look"},
		{"canvas", do("eval"), nil, approval(critical, none), "canvas: eval"},
		{"canvas", do("present navigate a2ui_push"), nil, approval(warning, exact), "canvas: show"},

		{"message", messageLook, nil, safe(elevated, info, none), "message: look"},
		{"message", messageManage, nil, approval(critical, none), "message: broadcast, members, channels"},
		{"message", messageSend, nil, approval(info, byRecipient), "message: send"},
		{"message", nil, nil, approval(warning, exact), "message: other"},

		{"cron", do("status list runs"), nil, safe(lockdown, info, none), "cron: look"},
		{"cron", do("add update"), nil, approval(warning, none), "cron: add, update"},
		{"cron", do("remove run wake"), nil, approval(info, exact), "cron: remove, run, wake"},

		{"gateway", do("config.get config.schema"), nil, safe(elevated, info, none), "gateway: look"},
		{"gateway", do("restart"), nil, approval(warning, none), "gateway: restart"},
		{"gateway", do("config.apply config.patch update.run"), nil, blocked, "gateway: change"},

		{"nodes", do("status describe pending"), nil, safe(lockdown, info, none), "nodes: status"},
		{"nodes", nodesLook, nil, safe(elevated, info, none), "nodes: device"},
		{"nodes", do("camera_snap camera_clip screen_record"), nil, blocked, "nodes: camera, screen"},
		{"nodes", do("approve reject"), nil, blocked, "nodes: pairing"},
		{"nodes", do("run"), isElevated, blocked, "nodes: run elevated"},
		{"nodes", do("run"), nil, approval(warning, byExec), "nodes: run"},
		{"nodes", do("notify"), nil, approval(info, byNode), "nodes: notify"},
		{"nodes", do("location_get notifications_list notifications_action"), nil, approval(warning, exact), "nodes: location, notifications"},
		{"nodes", do("invoke"), invokes(invokeBlocked...), blocked, "nodes: invoke, person or device"},
		{"nodes", do("invoke"), invokes(invokeSystem...), blocked, "nodes: invoke, commands"},
		{"nodes", do("invoke"), invokesExactly(invokeLook...), safe(elevated, info, none), "nodes: invoke, look"},
		{"nodes", do("invoke"), nil, approval(warning, exact), "nodes: invoke, other"},

		{"image", nil, at(place.Self), blocked, "image: self"},
		{"image", nil, at(place.Secret), approval(critical, none), "image: secret"},
		{"image", nil, withURLAnd(at(place.Workspace, place.Instructions, place.Outside, place.Protected)), safe(elevated, info, none), "image: file and URL"},
		{"image", nil, at(place.Workspace, place.Instructions), safe(lockdown, info, none), "image: workspace, instructions"},
		{"image", nil, at(place.Outside, place.Protected), safe(elevated, info, none), "image: outside, protected"},
		{"image", nil, withURL, safe(elevated, info, byHost), "image: URL"},

		{"tts", nil, nil, safe(elevated, info, none), "tts"},
		{"whatsapp_login", nil, nil, approval(critical, none), "whatsapp_login"},
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
type table map[string]*toolRows

// toolRows is the rows of one tool.
type toolRows struct {
	rows  []row
	other row // of whatever the rows do not name
}

// newTable prepares the class table in the variant of a preset.
func newTable(preset Preset) table {
	t := table{}
	add := func(l line) {
		if t[l.tool] == nil {
			t[l.tool] = &toolRows{}
		}
		t[l.tool].rows = append(t[l.tool].rows, l.explained())
	}
	for _, l := range classTable() {
		switch {
		case preset != PresetWorkspace:
		case l.Grant == byRecipient:
			add(line{l.tool, l.actions, toPresentConversation, safe(elevated, info, byRecipient), "message: answer"})
		case l.Grant == byPath:
			l.Class, l.From = toolward.Safe, elevated
		}
		add(l)
	}
	for _, of := range t {
		of.other = fallback(of.rows)
	}
	return t
}

// unknownTool is the row of tools that the table does not know: plug-ins, MCP servers, tools of clients.
var unknownTool = line{Classification: approval(warning, exact), name: "unknown tool"}.explained()

// classify finds the row of a call to a tool of Toolward; known is false for a tool that is not in the table.
func (t table) classify(s *subject) (found *row, known bool) {
	of, known := t[s.tool]
	if !known {
		return nil, false
	}
	for i := range of.rows {
		if of.rows[i].hits(s) {
			return &of.rows[i], true
		}
	}
	return &of.other, true
}

// fallback is the row of a known tool for whatever its rows do not name: approval with the gravest severity of the
// rows and no grant. A new action of a tool must not be safer than the worst one we know.
func fallback(rows []row) row {
	l := line{tool: rows[0].tool, Classification: approval(warning, none), name: rows[0].tool + ": other"}
	for i := range rows {
		l.Severity = toolward.Graver(l.Severity, rows[i].Severity)
	}
	return l.explained()
}
