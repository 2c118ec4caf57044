package visible

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward"
)

// Tools that sub-agents do not get unless the configuration names them: those that act on the gateway or in the
// place of the parent; and, for the last level of sub-agents, those that reach other sessions.
var (
	subagentDenied = [...]string{"gateway", "agents_list", "whatsapp_login", "session_status", "cron", "memory_search", "memory_get", "sessions_send"}
	leafDenied     = [...]string{"sessions_list", "sessions_history", "sessions_spawn", "subagents"}
)

// isLeaf reports whether sub-agents of a depth may not spawn more. An unknown depth (below 0) is 1.
func (d SubagentDefaults) isLeaf(depth int) bool {
	if depth < 0 {
		depth = 1
	}
	limit := 1.0
	if d.MaxSpawnDepth != nil {
		limit = max(1, math.Floor(*d.MaxSpawnDepth))
	}
	return float64(depth) >= limit
}

// subagentLists are the lists for sub-agents. Exact names that are allowed are taken off the default deny list;
// groups and globs are not: whoever writes group:memory did not mean every tool that will ever be in it.
func subagentLists(l Lists, leaf bool) restriction {
	denied := subagentDenied[:]
	if leaf {
		denied = slices.Concat(denied, leafDenied[:])
	}
	var named []string
	for _, entry := range slices.Concat(l.Allow, l.AlsoAllow) {
		named = append(named, NormalizeName(entry))
	}
	r := restriction{Deny: []string{}}
	for _, name := range denied {
		if !slices.Contains(named, name) {
			r.Deny = append(r.Deny, name)
		}
	}
	r.Deny = union(r.Deny, l.Deny)
	if len(l.Allow) > 0 {
		r.Allow = union(l.Allow, l.AlsoAllow)
	}
	return r
}

// subagentPart separates levels of sub-agents in session keys.
const subagentPart = ":subagent:"

// depthOfKey counts the levels that a session key names.
func depthOfKey(key string) int { return strings.Count(Fold(key), subagentPart) }

// isSubagent reports whether the caller is a sub-agent, by whatever says so.
func isSubagent(c *toolward.Caller) bool {
	if c.Depth > 0 || c.Context == "subagent" {
		return true
	}
	key := Fold(string(c.Session))
	return strings.Contains(key, subagentPart) || strings.HasPrefix(key, subagentPart[1:])
}

// SessionEntry is what the depth of a session is read from.
type SessionEntry struct {
	SpawnDepth json.RawMessage     `json:"spawnDepth"` // a whole number, or its digits as text
	SpawnedBy  toolward.SessionKey `json:"spawnedBy"`
}

// SubagentDepth is how many levels of sub-agents a session is below an agent: as stored, else one below the session
// that spawned it, else as its key says.
func SubagentDepth(key toolward.SessionKey, entry func(toolward.SessionKey) (SessionEntry, bool)) int {
	if depth, ok := storedDepth(trimKey(key), entry, map[toolward.SessionKey]bool{}); ok {
		return depth
	}
	return depthOfKey(string(key))
}

func trimKey(key toolward.SessionKey) toolward.SessionKey {
	return toolward.SessionKey(strings.TrimSpace(string(key)))
}

// storedDepth follows the sessions upwards. A circle ends where it closes, and there the key counts.
func storedDepth(key toolward.SessionKey, entry func(toolward.SessionKey) (SessionEntry, bool), visited map[toolward.SessionKey]bool) (int, bool) {
	if key == "" || visited[key] {
		return 0, false
	}
	visited[key] = true
	e, ok := entry(key)
	if !ok {
		return 0, false
	}
	if depth, ok := wholeNumber(e.SpawnDepth); ok {
		return depth, true
	}
	parent := trimKey(e.SpawnedBy)
	if parent == "" {
		return 0, false
	}
	if depth, ok := storedDepth(parent, entry, visited); ok {
		return depth + 1, true
	}
	return depthOfKey(string(parent)) + 1, true
}

// wholeNumber reads a number, or text with a number in it, that is whole and not negative.
func wholeNumber(raw json.RawMessage) (int, bool) {
	text := strings.TrimSpace(string(raw))
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		text = strings.TrimSpace(quoted)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || n > math.MaxInt32 || n != math.Trunc(n) {
		return 0, false
	}
	return int(n), true
}
