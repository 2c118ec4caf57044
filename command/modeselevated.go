package command

import (
	"slices"
	"strings"

	"github.com/toolward/toolward"
)

// ElevatedConfig is tools.elevated, of the gateway or of one agent. An agent's can only restrict.
type ElevatedConfig struct {
	Enabled *bool `json:"enabled,omitempty" jsonschema:"elevated commands may be asked for; default false for the gateway"`
	// AllowFrom names senders by channel. An entry without a prefix is an identity that its bearer cannot change: id or
	// phone number; "name:" and "username:" can be chosen by anybody and count only when written so.
	AllowFrom map[string][]string `json:"allowFrom,omitzero" jsonschema:"who may, by channel: id, phone number, id:…, e164:…, username:…, name:… or *"`
}

// ElevatedGates lists the settings that keep a caller from elevated commands; none means that it may have them.
func ElevatedGates(gateway ElevatedConfig, agent *ElevatedConfig, caller toolward.Caller) (failed []string) {
	if gateway.Enabled == nil || !*gateway.Enabled {
		failed = append(failed, "tools.elevated.enabled")
	}
	if !senderListed(gateway.AllowFrom, caller) {
		failed = append(failed, "tools.elevated.allowFrom."+caller.Channel)
	}
	if caller.Context == "group" {
		// Nothing says whether the agent was addressed: a remark among others must not start an elevated command.
		failed = append(failed, "a mention of the agent in the group")
	}
	if agent == nil {
		return failed
	}
	if agent.Enabled != nil && !*agent.Enabled {
		failed = append(failed, "agents.list[].tools.elevated.enabled")
	}
	if agent.AllowFrom != nil && !senderListed(agent.AllowFrom, caller) {
		failed = append(failed, "agents.list[].tools.elevated.allowFrom."+caller.Channel)
	}
	return failed
}

// senderListed compares whole identities: a sender that is part of an entry, or the reverse, is somebody else.
func senderListed(allow map[string][]string, caller toolward.Caller) bool {
	return caller.Channel != "" && slices.ContainsFunc(allow[caller.Channel], func(entry string) bool {
		entry = strings.TrimSpace(entry)
		is := func(prefix, value string) bool {
			wanted, ok := strings.CutPrefix(entry, prefix)
			return ok && value != "" && strings.TrimSpace(wanted) == value
		}
		return entry == "*" || is("", caller.Sender) || is("", caller.SenderPhone) || is("id:", caller.Sender) ||
			is("e164:", caller.SenderPhone) || is("username:", caller.SenderUser) || is("name:", caller.SenderName)
	})
}
