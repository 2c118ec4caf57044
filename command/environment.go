package command

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/envname"
	"github.com/toolward/toolward/place"
)

// Environment says which variables a command may inherit and which a call may set, by the table of package envname. It
// serves all hosts, and is safe for concurrent use.
type Environment struct {
	pass envname.Set // inherited besides those of the table
}

// NewEnvironment makes the rules. pass names further variables that commands inherit; naming a loader variable, or one of
// the gateway's own, passes nothing.
func NewEnvironment(pass []string) *Environment {
	return &Environment{pass: envname.NewSet(strings.ToUpper(strings.Join(pass, " ")), "", "")}
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
		if !envname.Never(name) && !strings.ContainsRune(name+value, 0) {
			env[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		switch {
		case !e.Settable(name, overrides[name]):
			if mode != DropOverrides && mode != WrapperOverrides {
				return nil, &ForbiddenVariable{name}
			}
		case mode == WrapperOverrides && !envname.ForWrapper(name):
		default:
			env[name] = overrides[name]
		}
	}
	return env, nil
}

// Settable reports whether a call may set the variable. Names that are not portable are refused whatever they say:
// programs disagree about "LD_PRELOAD " and "A=B".
func (e *Environment) Settable(name, value string) bool {
	return envname.Portable(name) && !strings.ContainsRune(value, 0) && !envname.Dangerous(name) && !envname.Runs(name, value)
}

// quiet are directories outside the workspace that a variable may name without a question: nothing of the person's lies there.
var quiet = []string{"/tmp", "/var/tmp", "/usr", "/opt", "/nix/store", "/dev/null"}

// Reach is what a variable's value names beyond the workspace, the most guarded of it; the zero value if it names nothing there.
// Programs read, write and run what their variables name, so KEY=~/.ssh/id_rsa is a use of that file. A name that cannot be resolved
// may be any, and so may what a value names that is too long to be looked at.
func Reach(places Places, dir, value string) place.Resolved {
	reach := place.Resolved{Zone: place.Workspace}
	paths, whole := envname.Paths(value)
	if !whole {
		reach = place.Resolved{Real: "more than can be looked at", Zone: place.Outside}
	}
	for _, p := range paths {
		if noName(p) {
			if p = path.Clean(p); noName(p) {
				continue // no file has such a name, whoever cleans it
			}
		}
		at, err := places.Resolve(dir, p)
		switch {
		case err != nil:
			at = place.Resolved{Real: p, Zone: place.Outside}
		case at.Zone == place.Outside && slices.ContainsFunc(quiet, func(dir string) bool { return place.Within(at.Real, dir) }):
			continue
		}
		if at.Zone < reach.Zone || at.Zone == reach.Zone && reach.Kind == place.KindMissing {
			reach = at
		}
	}
	if reach.Zone == place.Workspace {
		return place.Resolved{}
	}
	return reach
}

// noName reports whether an element of a path is longer than a file's name can be.
func noName(p string) bool {
	return slices.ContainsFunc(strings.Split(p, "/"), func(element string) bool { return len(element) > 255 })
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
		if ok && e.inherits(name) && !strings.ContainsRune(value, 0) {
			env[name] = value
		}
	}
	env["PATH"] = cleanPath(prepend, env["PATH"])
	env["TERM"] = "dumb"
	plainRepositories(env)
	return env
}

func (e *Environment) inherits(name string) bool {
	return envname.Portable(name) && (envname.Inherited(name) || e.pass.Has(name)) && !envname.Never(name)
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
