package execpolicy

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Environment says which variables a command may inherit and which a call may set. Every name in its tables makes some
// ordinary program run, load or trust something that the variable names: setting it is running it. It serves all hosts,
// and is safe for concurrent use.
type Environment struct {
	inherit    nameSet // taken over from the gateway's own environment
	never      nameSet // neither inherited nor set by a call
	noOverride nameSet // may be inherited, never set by a call
	harmless   nameSet // exceptions from the prefixes of noOverride
	wrapped    nameSet // all that a call may set for a shell wrapper on a node
}

// NewEnvironment makes the rules. pass names further variables that commands inherit; naming a loader variable, or one of
// the gateway's own, passes nothing.
func NewEnvironment(pass []string) *Environment {
	return &Environment{
		// An allowlist keeps the gateway's own secrets, and whatever a future version puts into its environment,
		// away from commands.
		inherit:    newNameSet(inheritedNames+" "+strings.ToUpper(strings.Join(pass, " ")), "LC_", ""),
		never:      newNameSet(neverNames, neverPrefixes, ""),
		noOverride: newNameSet(fixedNames, fixedPrefixes, fixedSuffixes),
		harmless:   newNameSet(harmlessNames, harmlessPrefixes, ""),
		wrapped:    newNameSet(wrapperNames, "", ""),
	}
}

// Overrides says what becomes of values of a call that it may not set.
type Overrides string

// The ways of the hosts.
const (
	RejectOverrides  Overrides = "reject"        // the gateway: the call fails
	DropOverrides    Overrides = "drop"          // a node: they are left out
	WrapperOverrides Overrides = "shell-wrapper" // a node that runs a shell: all but a few are left out
)

// ForbiddenVariable is the error of a call that sets what it may not.
type ForbiddenVariable struct{ Name string }

func (e *ForbiddenVariable) Error() string {
	name, more := []rune(e.Name), ""
	if len(name) > 80 {
		name, more = name[:80], "…"
	}
	return fmt.Sprintf("the environment variable %q%s may not be set by a call", string(name), more)
}

// Build makes the environment of a command from an inherited one and the values of a call. With RejectOverrides, and
// with a value of Overrides that is not known, the error is a *[ForbiddenVariable] for the first bad name in byte order.
func (e *Environment) Build(base, overrides map[string]string, mode Overrides) (map[string]string, error) {
	env := make(map[string]string, len(base)+len(overrides))
	for name, value := range base {
		if !e.never.has(name) && !strings.ContainsRune(name+value, 0) {
			env[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		switch {
		case !e.Settable(name, overrides[name]):
			if mode != DropOverrides && mode != WrapperOverrides {
				return nil, &ForbiddenVariable{name}
			}
		case mode == WrapperOverrides && !e.wrapped.has(name):
		default:
			env[name] = overrides[name]
		}
	}
	return env, nil
}

// Settable reports whether a call may set the variable. Names that are not portable are refused whatever they say:
// programs disagree about "LD_PRELOAD " and "A=B".
func (e *Environment) Settable(name, value string) bool {
	if !PortableName(name) || strings.ContainsRune(value, 0) || e.never.has(name) {
		return false
	}
	return !e.noOverride.has(name) || e.harmless.has(name)
}

// ForWrapper reports whether the variable is one of the few that a call may set for a shell: all others could mean
// something to what the shell's text starts.
func (e *Environment) ForWrapper(name string) bool { return PortableName(name) && e.wrapped.has(name) }

// PortableName reports whether all programs agree that this is the name of a variable: letters, digits and underscores,
// no digit first.
func PortableName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// DefaultPath is the PATH of commands when there is no other. An agent can write in none of its directories.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Inherited is what every command gets from environ ("NAME=value"; nil means os.Environ()): the allowed variables, a
// PATH of absolute directories with those of prepend in front, and no terminal.
func (e *Environment) Inherited(environ, prepend []string) map[string]string {
	if environ == nil {
		environ = os.Environ()
	}
	env := map[string]string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if ok && PortableName(name) && e.inherit.has(name) && !e.never.has(name) && !strings.ContainsRune(value, 0) {
			env[name] = value
		}
	}
	env["PATH"] = cleanPath(prepend, env["PATH"])
	env["TERM"] = "dumb"
	plainRepositories(env)
	return env
}

// plainRepositories tells git to leave directories alone that only look like a repository: a HEAD, objects and refs among
// ordinary files, with a configuration that names programs. It stands behind what is judged: such a directory may have
// come a moment ago.
func plainRepositories(env map[string]string) {
	count, err := strconv.Atoi(env["GIT_CONFIG_COUNT"])
	if err != nil || count < 0 {
		count = 0
	}
	env["GIT_CONFIG_COUNT"] = strconv.Itoa(count + 1)
	env["GIT_CONFIG_KEY_"+strconv.Itoa(count)] = "safe.bareRepository"
	env["GIT_CONFIG_VALUE_"+strconv.Itoa(count)] = "explicit"
}

// cleanPath leaves absolute directories, each once. An empty or relative entry means "wherever the command runs": a file
// in the workspace would pass for a program of the system.
func cleanPath(prepend []string, list string) string {
	var dirs []string
	for _, dir := range append(slices.Clone(prepend), strings.Split(list, ":")...) {
		if !path.IsAbs(dir) || strings.ContainsAny(dir, ":\x00") {
			continue
		}
		if dir = path.Clean(dir); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return DefaultPath
	}
	return strings.Join(dirs, ":")
}

// EnvironmentList is the environment in the form that the operating system wants, in order of names.
func EnvironmentList(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// nameSet is a set of environment names, compared in upper case and without white space around them: exact names,
// prefixes and suffixes.
type nameSet struct {
	names    map[string]bool
	prefixes []string
	suffixes []string
}

func newNameSet(names, prefixes, suffixes string) nameSet {
	s := nameSet{names: map[string]bool{}, prefixes: strings.Fields(prefixes), suffixes: strings.Fields(suffixes)}
	for _, name := range strings.Fields(names) {
		s.names[name] = true
	}
	return s
}

func (s *nameSet) has(name string) bool {
	name = strings.ToUpper(strings.TrimSpace(name))
	return s.names[name] ||
		slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(s.suffixes, func(p string) bool { return strings.HasSuffix(name, p) })
}
