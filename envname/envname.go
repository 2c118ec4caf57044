// Package envname knows what names of environment variables mean: which of them make some ordinary program run, load or
// trust something that the variable names, so that setting it is running it.
//
// It is the one table of such names. Commands on this machine and commands in sandboxes are judged by it alike.
package envname

import (
	"slices"
	"strings"
)

// The sets that the table is made of.
var (
	inherited  = NewSet(inheritedNames, "LC_", "")
	never      = NewSet(neverNames, neverPrefixes, "")
	noOverride = NewSet(fixedNames, fixedPrefixes, fixedSuffixes)
	harmless   = NewSet(harmlessNames, harmlessPrefixes, "")
	wrapper    = NewSet(wrapperNames, "", "")
)

// Inherited reports whether a command may take the variable over from the gateway's own environment. An allowlist keeps
// the gateway's own secrets, and whatever a future version puts into its environment, away from commands.
func Inherited(name string) bool { return inherited.Has(name) }

// Never reports whether the variable is neither inherited nor set by anybody: those of the loader and of interpreters,
// and the gateway's own.
func Never(name string) bool { return never.Has(name) }

// Dangerous reports whether setting the variable makes some program run, load or trust something. All of Never are.
func Dangerous(name string) bool {
	return never.Has(name) || noOverride.Has(name) && !harmless.Has(name)
}

// ForWrapper reports whether the variable is one of the few that may be set for a shell: all others could mean something
// to what the shell's text starts.
func ForWrapper(name string) bool { return Portable(name) && wrapper.Has(name) }

// Portable reports whether all programs agree that this is the name of a variable: letters, digits and underscores, no
// digit first.
func Portable(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Set is a set of names, compared in upper case and without white space around them: exact names, prefixes and suffixes.
type Set struct {
	names    map[string]bool
	prefixes []string
	suffixes []string
}

// NewSet makes a set of words in upper case, which white space separates.
func NewSet(names, prefixes, suffixes string) Set {
	s := Set{names: map[string]bool{}, prefixes: strings.Fields(prefixes), suffixes: strings.Fields(suffixes)}
	for _, name := range strings.Fields(names) {
		s.names[name] = true
	}
	return s
}

// Has reports whether a name is in the set.
func (s *Set) Has(name string) bool {
	name = strings.ToUpper(strings.TrimSpace(name))
	return s.names[name] ||
		slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(s.suffixes, func(p string) bool { return strings.HasSuffix(name, p) })
}
