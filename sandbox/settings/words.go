package settings

import (
	"strings"

	"github.com/toolward/toolward/sandbox"
)

// Mode says which sessions of an agent are sandboxed.
type Mode string

// The modes, in the words that explanations print.
const (
	ModeOff     Mode = "off"
	ModeNonMain Mode = "non-main" // all but the agent's main session
	ModeAll     Mode = "all"
)

// Scope says which sessions share a sandbox.
type Scope string

// The scopes.
const (
	ScopeSession Scope = "session"
	ScopeAgent   Scope = "agent"
	ScopeShared  Scope = "shared"
)

// Access says what a sandbox has of the agent's workspace.
type Access string

// The kinds of access.
const (
	AccessNone      Access = "none" // a private directory in its place
	AccessReadOnly  Access = "ro"   // a private directory that cannot be written to, and the workspace at /agent
	AccessReadWrite Access = "rw"   // the workspace itself
)

var (
	modeWords   = map[string]Mode{"off": ModeOff, "auto": ModeNonMain, "non-main": ModeNonMain, "always": ModeAll, "all": ModeAll}
	scopeWords  = map[string]Scope{"session": ScopeSession, "agent": ScopeAgent, "shared": ScopeShared}
	accessWords = map[string]Access{
		"none": AccessNone, "ro": AccessReadOnly, "readonly": AccessReadOnly, "rw": AccessReadWrite, "readwrite": AccessReadWrite,
	}
)

// ParseMode reads the word of a configuration; an unknown one is CodeConfig.
func ParseMode(word string) (Mode, error) {
	return parseWord(modeWords, word, "off, non-main (or auto) or all (or always)")
}

// ParseScope reads the word of a configuration.
func ParseScope(word string) (Scope, error) {
	return parseWord(scopeWords, word, "agent, session or shared")
}

// ParseAccess reads the word of a configuration.
func ParseAccess(word string) (Access, error) {
	return parseWord(accessWords, word, "none, ro (or readonly) or rw (or readwrite)")
}

func parseWord[W ~string](words map[string]W, word, want string) (W, error) {
	if w, ok := words[strings.ToLower(sandbox.Trim(word))]; ok {
		return w, nil
	}
	return "", sandbox.Errorf(sandbox.CodeConfig, "%q: write %s", word, want)
}
