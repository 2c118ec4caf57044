package settings

import (
	"regexp"
	"strings"

	"github.com/toolward/toolward/sandbox"
)

const (
	// DefaultPrefix begins the names of sandboxes.
	DefaultPrefix = sandbox.Brand + "-sbx-"
	// DefaultBrowserPrefix begins the names of sandboxes for browsers.
	DefaultBrowserPrefix = sandbox.Brand + "-sbx-browser-"

	defaultAgent = "main"
	maxName      = 63
	maxPrefix    = 53
)

// ContainerName is the name of the sandbox of a scope key. It is cut in the middle where it would be too long: without
// the digest at its end two sessions could share a sandbox.
func ContainerName(prefix string, scope Scope, scopeKey string) (string, error) {
	if len(prefix) > maxPrefix {
		return "", sandbox.Errorf(sandbox.CodeConfig, "containerPrefix %q has %d characters: write at most %d", prefix, len(prefix), maxPrefix)
	}
	if scope == ScopeShared {
		return prefix + string(ScopeShared), nil
	}
	base, digest := sandbox.SlugParts(scopeKey, min(sandbox.MaxSlugBase, maxName-len(prefix)-len(digestSuffix)))
	return prefix + base + "-" + digest, nil
}

const digestSuffix = "-00000000"

// ScopeKey says whose sandbox a session uses.
func ScopeKey(scope Scope, sessionKey string) string {
	switch scope {
	case ScopeShared:
		return string(ScopeShared)
	case ScopeSession:
		if key := sandbox.Trim(sessionKey); key != "" {
			return key
		}
		return "main"
	default:
		return "agent:" + SessionAgent(sessionKey)
	}
}

// SessionAgent is the agent in a session key "agent:<id>:<rest>"; "main" for other keys.
func SessionAgent(sessionKey string) string {
	parts := strings.SplitN(sandbox.Trim(sessionKey), ":", 3)
	if len(parts) < 3 || !strings.EqualFold(parts[0], "agent") || parts[2] == "" {
		return defaultAgent
	}
	return AgentID(parts[1])
}

// ScopeAgentID is the agent whose sandbox has this scope key: "" for shared ones, "main" where the key names none.
func ScopeAgentID(scopeKey string) string {
	switch key := sandbox.Trim(scopeKey); {
	case key == "" || key == string(ScopeShared):
		return ""
	case strings.HasPrefix(strings.ToLower(key), "agent:"):
		id, _, _ := strings.Cut(key[len("agent:"):], ":")
		return AgentID(id)
	default:
		return defaultAgent
	}
}

// agentID is an id as tokens and clients have it.
var agentID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// AgentID is the form of an agent's id in keys: lower case, of letters, digits, "_" and "-"; "main" if nothing is left. An
// id that is one stays as it is: what "coder-" runs must not meet the settings and the sandbox of "coder".
func AgentID(id string) string {
	id = strings.ToLower(sandbox.Trim(id))
	if agentID.MatchString(id) {
		return id
	}
	var b strings.Builder
	gap := false
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(r)
	}
	clean := strings.Trim(b.String(), "-")
	if len(clean) > 64 {
		clean = clean[:64]
	}
	if clean == "" {
		return defaultAgent
	}
	return clean
}

// Sessions is what of the sessions' configuration decides which of them is an agent's main one.
type Sessions struct {
	MainKey string // "" is "main"
	Global  bool   // all agents share one main session
}

// MainSession is the key of an agent's main session.
func (s Sessions) MainSession(agent string) string {
	if s.Global {
		return "global"
	}
	return "agent:" + AgentID(agent) + ":" + s.mainKey()
}

// Meant is the session that people mean: a key, "global", or the main session of the agent.
func (s Sessions) Meant(given, agent string) string {
	switch given = strings.TrimSpace(given); {
	case strings.Contains(given, ":"), given == "global":
		return given
	}
	return s.MainSession(agent)
}

func (s Sessions) mainKey() string {
	if key := strings.ToLower(sandbox.Trim(s.MainKey)); key != "" {
		return key
	}
	return "main"
}

// canonical turns the other names of an agent's main session into its key.
func (s Sessions) canonical(agent, sessionKey string) string {
	key, own := sandbox.Trim(sessionKey), "agent:"+AgentID(agent)+":"
	switch key {
	case "main", s.mainKey(), own + s.mainKey(), own + "main":
		return s.MainSession(agent)
	}
	return key
}

// Sandboxed reports whether a session of an agent is sandboxed, and why. A call without a session is not: nothing could
// tell whose sandbox it is to use.
func (s Sessions) Sandboxed(mode Mode, agent, sessionKey string) (yes bool, why string) {
	switch {
	case sandbox.Trim(sessionKey) == "":
		return false, "there is no session"
	case mode == ModeAll:
		return true, "mode all sandboxes every session"
	case mode != ModeNonMain:
		return false, "mode off sandboxes no session"
	case s.canonical(agent, sessionKey) == s.MainSession(agent):
		return false, "mode non-main does not sandbox the agent's main session"
	}
	return true, "mode non-main sandboxes every session but the main one (" + s.MainSession(agent) +
		"): groups, channels, timers, sub-agents and clients have sessions of their own"
}
