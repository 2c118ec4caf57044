package doctor

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/sandbox/light"
)

// manySenders is how many senders of a channel may have commands with more rights before that is worth a look.
const manySenders = 25

// commands looks at what runs commands without a question: the configuration and exec-approvals.json.
func (e *examination) commands() error {
	home := e.Home
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real // as the gateway opens it
	}
	keys := authority.Open(home, nil)
	if err := keys.Trouble(); err != nil {
		e.find("authority.damaged", "find out who changed it; sign in with the passphrase: what lasts then waits until you accept it again", "%v", err)
	}
	approvals := allowlist.Open(home, allowlist.Options{Ledger: keys.About(allowlist.FileName)})
	defer approvals.Close()
	file := approvals.Current()
	if file.Corrupt != nil {
		e.find("exec_approvals.corrupt", "mend it, or replace it: toolward approvals set", "%v", file.Corrupt)
	}
	if waiting := file.Unaccepted(); len(waiting) > 0 {
		e.find("exec_approvals.unaccepted", "look at the difference in the console: accept it, or remove the entries",
			"%d entries count for nothing, because no person has accepted them; the first is agents.%s: %s", len(waiting), waiting[0].Agent, waiting[0].Pattern)
	}
	e.modes(file)
	e.entries(file)
	e.elevated()
	e.confinement()
	commands := e.file.Commands()
	warnings, err := commands.Check()
	if err != nil {
		return fmt.Errorf("check the settings of commands: %w", err)
	}
	for _, w := range warnings {
		switch {
		case strings.HasPrefix(w.Key, "exec.safeBinTrustedDirs"):
			e.find("tools.exec.safe_bin_trusted_dirs_risky", "take the rights away: chmod go-w, or remove the directory", "%s", w)
		case w.Key == "exec.safeBins":
			e.find("tools.exec.safe_bins_interpreter_unprofiled", "remove the name, or write a profile", "%s", w)
		default:
			e.find("policy.unknown_entries", "name it in tools.exec.safeBins, or remove it", "%s", w)
		}
	}
	return nil
}

// confinement looks whether commands that nobody saw are kept from what is not theirs.
func (e *examination) confinement() {
	const id = "tools.exec.light_confinement"
	switch {
	case e.Light == nil:
	case !e.file.ConfinesLightly():
		e.find(id, "remove tools.exec.lightConfinement", "tools.exec.lightConfinement is false: project code in an allowed command can read keys and change Toolward's own files")
	default:
		switch check := e.Light(); check.Mode {
		case light.Landlock:
			e.findAs(Info, id, check.Fix, "by Landlock alone, which keeps files apart and no processes: %s", check.Found)
		case light.None:
			e.find(id, check.Fix, "they ask instead: %s", check.Found)
		}
	}
}

// modes looks for agents whose commands run whatever they are. The file can only tighten.
func (e *examination) modes(file *allowlist.Snapshot) {
	look := func(key, agent string, own config.Exec) {
		given := modes.Settings{Security: modes.Security(own.Security), Ask: modes.Ask(own.Ask)}
		switch inForce := file.Modes(given, agent); {
		case given.Security != modes.SecurityFull:
		case inForce.Security == modes.SecurityFull && inForce.Ask == modes.AskOff:
			e.find("tools.exec.unguarded", "set security to allowlist, or ask to on-miss", "%s: security is full and ask is off: every command runs, and nobody is asked", key)
		case given.Ask != modes.AskAlways:
			e.find("config.insecure_or_dangerous_flags", "set security to allowlist, or ask to always", "%s.security is full: every command may run", key)
		}
	}
	look("tools.exec", allowlist.AnyAgent, e.file.Tools.Exec)
	for _, a := range e.file.Agents.List {
		own := a.Tools.Exec
		if own.Security == "" && own.Ask == "" {
			continue // as the gateway
		}
		if own.Security == "" {
			own.Security = e.file.Tools.Exec.Security
		}
		if own.Ask == "" {
			own.Ask = e.file.Tools.Exec.Ask
		}
		look("agents.list["+a.ID+"].tools.exec", strings.ToLower(a.ID), own)
	}
}

// entries looks for entries that cover more than a program.
func (e *examination) entries(file *allowlist.Snapshot) {
	if file.Corrupt != nil {
		return
	}
	for _, agent := range slices.Sorted(maps.Keys(file.File.Agents)) {
		for _, entry := range file.File.Agents[agent].Allowlist {
			where := fmt.Sprintf("exec-approvals.json: agents.%s: %s", agent, entry.Pattern)
			switch command.BreadthOf(&entry) {
			case command.Anything:
				e.find("exec_approvals.wildcard", "name the programs", "%s covers every command at level normal", where)
			case command.Directory:
				e.findAs(Warn, "exec_approvals.wildcard", "name the programs", "%s covers every program of a directory", where)
			case command.AnyCode:
				e.find("exec_approvals.interpreter", "give the entry the argv that is meant", "%s runs whatever code it is given", where)
			}
		}
	}
}

// elevated looks at who may have commands with more rights.
func (e *examination) elevated() {
	c := e.file.Tools.Elevated
	if c.Enabled == nil || !*c.Enabled {
		return
	}
	if e.file.Agents.Defaults.ElevatedDefault == "full" {
		e.find("config.insecure_or_dangerous_flags", "set it to ask", "agents.defaults.elevatedDefault is full: commands of the senders in tools.elevated.allowFrom are past questions and allowlist")
	}
	for _, channel := range slices.Sorted(maps.Keys(c.AllowFrom)) {
		entries := c.AllowFrom[channel]
		key := "tools.elevated.allowFrom." + channel
		if slices.ContainsFunc(entries, func(s string) bool { return strings.TrimSpace(s) == "*" }) {
			e.find(key+".wildcard", "name the senders by id", "%s lists *: everybody who can write there may ask for commands with more rights", key)
		}
		if len(entries) > manySenders {
			e.find(key+".large", "keep the few who need it", "%s lists %d senders", key, len(entries))
		}
	}
}
