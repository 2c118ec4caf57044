package doctor

import (
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
)

// sandboxes looks for settings that make sandboxes confine less than people think.
func (e *examination) sandboxes() error {
	machine, _, err := fleet.ReadMachine(e.Home)
	if err != nil {
		return fmt.Errorf("look at sandboxes: %w", err)
	}
	compiled, _ := settings.Compile(e.file.Sandbox(), settings.Surroundings{StateDir: e.Home, Undecided: machine.Default()})
	named := compiled.Agents()
	// What is written for all holds for an agent that is sandboxed, also where the others are not.
	used := compiled.Anyone().Mode != settings.ModeOff
	for _, a := range named {
		used = used || a.Mode != settings.ModeOff
	}
	e.sandboxOf("agents.defaults", e.file.Agents.Defaults.Sandbox.Config, compiled.Anyone(), used, e.file.Tools.Exec.Host, "")
	for _, a := range e.file.Agents.List {
		resolved := named[settings.AgentID(a.ID)]
		e.sandboxOf("agents.list["+a.ID+"]", a.Sandbox, resolved, resolved.Mode != settings.ModeOff, a.Tools.Exec.Host, a.Workspace)
	}
	if e.file.Agents.Defaults.Sandbox.AllowAgentLoosening {
		e.find("config.insecure_or_dangerous_flags", "set it to false", "agents.defaults.sandbox.allowAgentLoosening: agents may confine themselves less than is set for all")
	}
	return nil
}

// sandboxOf looks at one object: at what is written there, and what holds for it. used: sandboxes are made by it.
func (e *examination) sandboxOf(at string, own settings.Config, r *settings.Resolved, used bool, host command.Host, workspace string) {
	key := at + ".sandbox"
	e.sandboxMode(at, own, r, used, host)
	if !used {
		return
	}
	on := func(flag *bool) bool { return flag != nil && *flag }
	for name, flag := range map[string]*bool{
		"dangerouslyAllowExternalBindSources": own.Docker.AllowExternalSources, "dangerouslyAllowReservedContainerTargets": own.Docker.AllowReservedTargets,
	} {
		if on(flag) {
			e.find("sandbox.dangerous_bind_mount", "set it to false, and move what is bound into the workspace", "%s.docker.%s is set; bound: %q", key, name, r.Neutral.Binds)
		}
	}
	if on(own.Docker.AllowNamespaceJoin) {
		e.find("sandbox.dangerous_network_mode", "set it to false, and the network to egress", "%s.docker.dangerouslyAllowContainerNamespaceJoin is set: the sandbox may use another container's network", key)
	}
	for name, network := range map[string]*string{"network": own.Network, "docker.network": own.Docker.Network} {
		if network == nil {
			continue
		}
		if mode, err := settings.ParseNetwork(*network, true); err == nil && mode != sandbox.NetworkNone && mode != sandbox.NetworkEgress {
			e.find("sandbox.open_egress", "set it to egress, which reaches only the hosts that you allow", "%s.%s is %s: what runs inside reaches every address, also of your own network", key, name, mode)
		}
	}
	for _, host := range own.Egress.Hosts {
		if p, err := netguard.ParsePattern(host); err == nil && p.Broad() {
			e.find("sandbox.open_egress", "list the names that are meant", "%s.egress.hosts lists %s: anybody can have a name there, and get what is sent to it", key, p)
		}
	}
	if rootInside(own, r, workspace) {
		e.find("sandbox.root_user", "give the workspace to another user, or set sandbox.user", "%s: commands inside run as root, without capabilities", key)
	}
	flag := func(yes bool, name, what string) {
		if yes {
			e.find("config.insecure_or_dangerous_flags", "remove it", "%s.%s: %s", key, name, what)
		}
	}
	flag(on(own.FS.AllowProtected), "fs.allowProtected", "what runs inside may write hooks and settings that this machine obeys later")
	flag(on(own.AllowPtrace), "allowPtrace", "processes inside may read and change each other")
	flag(slices.Contains(own.DegradeOK, "namespaces"), "degradeOk", "sandboxes may be made without namespaces: files and network only")
}

// sandboxMode looks for settings that have no effect because nothing is sandboxed.
func (e *examination) sandboxMode(at string, own settings.Config, r *settings.Resolved, used bool, host command.Host) {
	if r.Mode != settings.ModeOff {
		return
	}
	id := "tools.exec.host_sandbox_no_sandbox_agents"
	if at == "agents.defaults" {
		id = "tools.exec.host_sandbox_no_sandbox_defaults"
	}
	if host == command.HostSandbox {
		e.find(id, "set "+at+".sandbox.mode to non-main or all", "tools.exec.host is sandbox, but %s has mode off: commands are refused", at)
	}
	if !used && confines(own) {
		e.find("sandbox.docker_config_mode_off", "set "+at+".sandbox.mode, or remove the settings", "%s.sandbox has settings, but its mode is off: nothing is confined by them", at)
	}
}

// confines reports whether an object says how sandboxes are made. What they reach is no such thing: an installation writes it
// for machines with and without them.
func confines(c settings.Config) bool {
	return c.Docker.Image != "" || c.Docker.Network != nil || c.Docker.Binds != nil || c.Docker.Memory != "" ||
		c.Limits != (settings.LimitsConfig{}) || c.Binds != nil || c.Network != nil && *c.Network != string(sandbox.NetworkEgress)
}

// rootInside reports whether commands would run as root: because that is written, or because the workspace is root's.
func rootInside(own settings.Config, r *settings.Resolved, workspace string) bool {
	for _, user := range []string{own.User, own.Docker.User} {
		if u, err := settings.ParseUser(user); user != "" && err == nil {
			return u.UID == 0
		}
	}
	if access, _ := r.AccessTo(workspace); r.Neutral.User != "" || access != settings.AccessReadWrite || workspace == "" {
		return false
	}
	info, err := os.Stat(workspace)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}
