package transcript

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// clientRow is what is known of one client's transcripts. Nothing else in this package knows one by name but the files that
// begin with it.
type clientRow struct {
	name  string
	roots func(place) []string
	only  string // directory below a root that has them all; "" if they may be anywhere in it
	// owns reports whether a file below one of the roots is a transcript, by its path there.
	owns func(path string) bool
	// begins reports whether a file of somebody's own directory is one, by how it begins.
	begins func(head []byte) bool
	read   func(*file) error
}

// place is where clients keep things.
type place struct {
	home   string
	getenv func(string) string
}

// below is a directory of a client: where a variable puts it, else in the home.
func (p place) below(variable, inHome string) string {
	return cmp.Or(p.getenv(variable), filepath.Join(p.home, inHome))
}

var clients = []clientRow{
	{
		name: "claude-code",
		roots: func(p place) []string {
			return []string{filepath.Join(p.below("CLAUDE_CONFIG_DIR", ".claude"), "projects")}
		},
		owns: func(name string) bool { return path.Ext(name) == ".jsonl" }, begins: claudeBegins, read: (*file).claudeCode,
	},
	{
		name: "codex",
		roots: func(p place) []string {
			home := p.below("CODEX_HOME", ".codex")
			return []string{filepath.Join(home, "sessions"), filepath.Join(home, "archived_sessions")}
		},
		owns: codexOwns, begins: codexBegins, read: (*file).codex,
	},
	{
		name:  "gemini",
		roots: func(p place) []string { return []string{filepath.Join(p.home, ".gemini")} },
		only:  "tmp",
		owns:  geminiOwns, begins: geminiBegins, read: (*file).gemini,
	},
	{
		name: "copilot",
		roots: func(p place) []string {
			home := p.below("COPILOT_HOME", ".copilot")
			return []string{filepath.Join(home, "session-state"), filepath.Join(home, "history-session-state")}
		},
		owns: copilotOwns, begins: copilotBegins, read: (*file).copilot,
	},
	{
		name: "opencode",
		roots: func(p place) []string {
			return []string{filepath.Join(p.below("XDG_DATA_HOME", ".local/share"), "opencode")}
		},
		only: "storage/session",
		owns: opencodeOwns, begins: opencodeBegins, read: (*file).opencode,
	},
}

// enters reports whether a directory below a client's root may hold transcripts.
func enters(client, dir string) bool {
	i := slices.IndexFunc(clients, func(c clientRow) bool { return c.name == client })
	if i < 0 || clients[i].only == "" {
		return true
	}
	only := clients[i].only
	return dir == "." || dir == only || strings.HasPrefix(dir, only+"/") || strings.HasPrefix(only, dir+"/")
}

// whose is the client whose transcript a file is, by its path below a root; nil if it is none. In a directory that somebody
// named, only names that no two clients use tell by themselves.
func (r *reading) whose(name, path string) *clientRow {
	i := slices.IndexFunc(clients, func(c clientRow) bool { return c.name == name && c.owns(path) })
	if i < 0 {
		return nil
	}
	return &clients[i]
}

// recognized is the client whose transcript begins so; nil if it is none, or of a client that is not asked for.
func (r *reading) recognized(head []byte) *clientRow {
	i := slices.IndexFunc(clients, func(c clientRow) bool { return c.begins(head) && (r.Client == "" || c.name == r.Client) })
	if i < 0 {
		return nil
	}
	return &clients[i]
}

// candidate reports whether a file may be a transcript at all, so that not every file of a directory is opened.
func candidate(name string) bool {
	switch path.Ext(name) {
	case ".jsonl", ".json", ".db":
		return true
	}
	return false
}

// firstLine is the first line of the beginning of a file, whole or not.
func firstLine(head []byte) string {
	line, _, _ := strings.Cut(string(head), "\n")
	return line
}
