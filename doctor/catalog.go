package doctor

import "strings"

// Check is one row of the catalog.
type Check struct {
	ID       string
	Severity Severity // the gravest that it can have
	Title    string   // what is found, in a few words
	Subject  string   // what it looks at
	Since    string   // first version that checks it; "" while there is nothing to check
	Waits    string   // without Since: what has to exist first, or why it can never be found
	Deep     bool     // made with --deep only
}

// absent says why a check is not made; "" if it is.
func (c Check) absent(deep bool) string {
	switch {
	case c.Since == "":
		return c.Waits
	case c.Deep && !deep:
		return "with --deep only"
	}
	return ""
}

// Reasons why checks are not made.
const (
	waitsChannels = "waits for chat channels"
	waitsBrowser  = "waits for the browser tool"
	waitsModels   = "waits for the agent runtime"
	waitsWebhooks = "waits for incoming webhooks"
	waitsProxy    = "waits for settings of reverse proxies"
	waitsNodes    = "waits for nodes"
	waitsServers  = "waits for settings of MCP servers and skills"
	refused       = "cannot be: the configuration is refused"
	never         = "cannot be: Toolward has no such setting"
)

// first is the version that brought the catalog.
const first = "0.1"

// Catalog lists every check, in the order of the documentation.
func Catalog() []Check {
	return catalog
}

var catalog = buildCatalog()

func checkOf(id string) (Check, bool) {
	for _, c := range catalog {
		before, after, part := strings.Cut(c.ID, "<p>") // the name of a channel
		if c.ID == id || part && strings.HasPrefix(id, before) && strings.HasSuffix(id, after) {
			return c, true
		}
	}
	return Check{Severity: Warn}, false
}

func buildCatalog() []Check {
	var all []Check
	made := func(subject string, rows ...string) {
		for _, row := range rows {
			id, rest, _ := strings.Cut(row, " ")
			severity, title, _ := strings.Cut(rest, " ")
			all = append(all, Check{ID: id, Severity: Severity(severity), Title: title, Subject: subject, Since: first})
		}
	}
	waiting := func(why, severity string, ids ...string) {
		for _, id := range ids {
			all = append(all, Check{ID: id, Severity: Severity(severity), Subject: strings.TrimPrefix(why, "waits for "), Waits: why})
		}
	}
	made("state directory",
		"fs.state_dir.perms_world_writable critical others can change the state directory",
		"fs.state_dir.perms_group_writable warn the group can change the state directory",
		"fs.state_dir.perms_readable warn others can list the state directory",
		"fs.state_dir.symlink warn the state directory is a symbolic link",
		"fs.synced_dir warn the state directory is copied to a cloud service",
	)
	made("configuration file",
		"fs.config.perms_writable critical others can change the configuration file",
		"fs.config.perms_world_readable critical everybody can read the configuration file",
		"fs.config.perms_group_readable warn the group can read the configuration file",
		"fs.config.symlink warn the configuration file is a symbolic link",
	)
	made("file that teg.shadow names",
		"fs.config_include.perms_writable critical others can change a second configuration file",
		"fs.config_include.perms_world_readable critical everybody can read a second configuration file",
		"fs.config_include.perms_group_readable warn the group can read a second configuration file",
	)
	made("database and keys in the state directory",
		"fs.sessions_store.perms_readable warn others can read the database",
		"fs.auth_profiles.perms_writable critical others can change a file of the state directory",
		"fs.auth_profiles.perms_readable warn others can read a file of the state directory",
	)
	waiting(waitsModels, "critical", "fs.credentials_dir.perms_writable")
	waiting(waitsModels, "warn", "fs.credentials_dir.perms_readable")
	waiting("cannot be: Toolward logs to standard error only", "warn", "fs.log_file.perms_readable")

	made("address of console and API",
		"gateway.bind_no_auth critical reachable from other machines before anybody is signed up",
		"gateway.control_ui.insecure_auth warn passphrases cross the network in the clear",
		"gateway.tools_invoke_http.dangerous_allow critical the HTTP tool endpoint offers dangerous tools",
	)
	all = append(all, Check{ID: "gateway.probe_failed", Severity: Warn, Title: "no gateway answers", Subject: "running gateway", Since: first, Deep: true})
	waiting("cannot be: whoever calls over HTTP needs a sign-in or a token", "critical", "gateway.loopback_no_auth", "gateway.http.no_auth")
	waiting("cannot be: tokens are made by Toolward, with 128 random bits and more", "warn", "gateway.token_too_short")
	waiting("cannot be: wrong passphrases are always slowed down", "warn", "gateway.auth_no_rate_limit")
	waiting("cannot be: the console answers to its own names and server.hosts only", "critical",
		"gateway.control_ui.allowed_origins_required", "gateway.control_ui.host_header_origin_fallback")
	waiting(never, "critical", "gateway.control_ui.device_auth_disabled", "gateway.real_ip_fallback_enabled", "gateway.tailscale_funnel")
	waiting(never, "info", "gateway.tailscale_serve", "gateway.http.session_key_override_enabled")
	waiting(never, "critical", "discovery.mdns_full_mode")
	waiting(waitsProxy, "critical", "gateway.trusted_proxy_auth", "gateway.trusted_proxy_no_proxies", "gateway.trusted_proxy_no_user_header")
	waiting(waitsProxy, "warn", "gateway.trusted_proxies_missing", "gateway.trusted_proxy_no_allowlist")
	waiting(waitsNodes, "critical", "gateway.nodes.allow_commands_dangerous")
	waiting(waitsNodes, "warn", "gateway.nodes.deny_commands_ineffective")
	made("the whole installation", "summary.attack_surface info what can be reached and used")

	waiting(waitsBrowser, "critical", "browser.control_no_auth")
	waiting(waitsBrowser, "warn", "browser.control_invalid_config", "browser.remote_cdp_http")
	waiting("cannot be: no setting turns the hiding of secrets off", "warn", "logging.redact_off")
	made("settings that give up protection", "config.insecure_or_dangerous_flags warn a setting gives up protection")
	waiting("cannot be: passphrases are in the database only, as digests", "warn", "config.secrets.gateway_password_in_config")
	waiting(waitsWebhooks, "critical", "hooks.token_reuse_gateway_token", "hooks.path_root", "hooks.request_session_key_enabled", "hooks.request_session_key_prefixes_missing")
	waiting(waitsWebhooks, "warn", "hooks.token_too_short", "hooks.default_session_key_unset", "hooks.installs_*")
	waiting(waitsWebhooks, "info", "config.secrets.hooks_token_in_config")

	made("who may have commands with more rights",
		"tools.elevated.allowFrom.<p>.wildcard critical everybody may ask for commands with more rights",
		"tools.elevated.allowFrom.<p>.large warn many may ask for commands with more rights",
	)
	made("settings of commands",
		"tools.exec.light_confinement warn commands on this machine that no person saw are not confined",
		"tools.exec.unguarded critical every command runs, and nobody is asked",
		"tools.exec.safe_bins_interpreter_unprofiled warn a stream filter without a profile is ignored",
		"tools.exec.safe_bin_trusted_dirs_risky warn others can write to a trusted directory",
	)
	made("exec-approvals.json",
		"exec_approvals.corrupt warn every command is refused",
		"exec_approvals.unaccepted warn an entry that no person has accepted counts for nothing",
		"authority.damaged critical what was signed cannot be trusted, so nothing of it counts",
		"authority.rows_altered critical a token, passkey, device or remembered answer in the state carries no signature, or is gone",
		"config.remembered_altered critical the state does not have the configuration last in force that is signed",
		"exec_approvals.wildcard critical an entry covers more than a program",
		"exec_approvals.interpreter warn an entry covers whatever code a program is given",
	)
	made("profiles", "tools.profile_minimal_overridden warn an agent leaves the minimal profile")
	waiting(waitsChannels, "critical", "security.exposure.open_groups_with_elevated", "security.exposure.open_groups_with_runtime_or_fs")
	waiting(waitsChannels, "warn", "security.trust_model.multi_user_heuristic")

	made("sandboxes",
		"sandbox.dangerous_bind_mount critical sandboxes may show directories from anywhere, or hide the workspace",
		"sandbox.dangerous_network_mode critical sandboxes may use another container's network",
		"sandbox.open_egress warn what runs inside reaches every address, or hosts of strangers",
		"sandbox.root_user warn commands inside run as root",
		"sandbox.docker_config_mode_off warn settings of sandboxes have no effect",
		"tools.exec.host_sandbox_no_sandbox_defaults warn commands are to run in a sandbox, and there is none",
		"tools.exec.host_sandbox_no_sandbox_agents warn commands of an agent are to run in a sandbox, and there is none",
	)
	waiting(refused, "critical", "sandbox.dangerous_seccomp_profile", "sandbox.dangerous_apparmor_profile")
	waiting(refused, "warn", "sandbox.bind_mount_non_absolute")
	waiting(waitsBrowser, "critical", "sandbox.browser_container.non_loopback_publish")
	waiting(waitsBrowser, "warn", "sandbox.browser_cdp_bridge_unrestricted", "sandbox.browser_container.hash_*")
	made("programs of plug-ins", "plugins.code_safety.writable critical others can change a program that judges calls")
	waiting(waitsServers, "critical", "plugins.extensions_no_allowlist", "plugins.tools_reachable_permissive_policy", "plugins.code_safety", "plugins.installs_*", "skills.code_safety*")
	waiting(waitsModels, "critical", "models.small_params")
	waiting(waitsModels, "warn", "models.legacy", "models.weak_tier")
	waiting(waitsChannels, "critical", "channels.<ch>.dm.open", "channels.discord.commands.native.unrestricted", "channels.slack.commands.slash.useAccessGroups_off",
		"channels.telegram.groups.allowFrom.missing", "channels.telegram.groups.allowFrom.wildcard")
	waiting(waitsChannels, "warn", "channels.<ch>.dm.open_invalid", "channels.<ch>.dm.scope_main_multiuser", "channels.<ch>.commands.*.no_allowlists",
		"channels.<ch>.allowFrom.name_based_entries", "channels.<ch>.allowFrom.invalid_entries")
	waiting(waitsChannels, "info", "channels.<ch>.dm.disabled")

	made("lists of tools",
		"policy.allowlist_stripped critical an allow list is ignored",
		"policy.unknown_entries warn an entry matches nothing",
		"policy.write_denied_patch_open warn files can be changed although write and edit are denied",
		"policy.sandbox_deny_replaced warn a list for sandboxed sessions lacks what the default one denies",
		"policy.sandbox_message_open warn sandboxed sessions can send messages",
		"policy.sender_by_mutable_name warn tools are given to whoever has a name",
		"policy.model_entry_hides_provider_deny warn the entry of a model lacks what its provider's denies",
		"policy.inherit_off warn sub-agents may have tools that their parent lacks",
		"policy.untyped_sender warn the key of a sender is read in one way only",
		"policy.ambiguous_group warn groups that differ in case only are not told apart",
		"policy.http_not_exact warn an entry re-opens nothing over HTTP",
		"policy.tool_refused warn a tool of a plug-in is not registered",
	)
	made("classes, rules and approvals",
		"teg.shadow_mode critical calls that would ask run",
		"teg.blocked_enabled warn a blocked kind of call is enabled",
		"teg.loosened critical calls run that people would decide about",
		"teg.no_approver warn nobody can answer",
		"teg.gateway_trouble critical the running gateway says that something is wrong",
		"teg.glob_cannot_loosen warn a pattern does not make calls safer",
		"teg.name_the_action warn a tool's name does not make its critical calls safer",
		"teg.rule_allows_nothing warn a rule that allows has no effect",
	)
	waiting("cannot be: the gate has no switch", "critical", "teg.disabled")
	all = append(all,
		Check{ID: "teg.audit_gap", Severity: Critical, Title: "the record is broken or missing", Subject: "record", Since: first, Deep: true},
		Check{ID: "teg.wide_grant", Severity: Warn, Title: "a remembered answer covers much", Subject: "remembered answers", Since: first, Deep: true},
	)
	return all
}
