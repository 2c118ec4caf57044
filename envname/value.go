package envname

import (
	"regexp"
	"slices"
	"strings"
)

// A list of dangerous names is never complete. What a variable that nobody knows means to its program stands in its name: the
// program that it names, the options that it adds, the place where code is looked for.
var (
	programs = NewSet("", "", `_BINARY _BIN _RSH _CMD _COMMAND _EXECUTABLE _EXE _EXEC _SHELL _HELPER _WRAPPER _LAUNCHER _PROGRAM _PROG _INTERPRETER
_COMPILER _LINKER _RUNNER _LOADER _HOOK _HOOKS _PLUGIN _PLUGINS _STARTUP _SCRIPT _LIBRARY _REQUIRE _IMPORT _EVAL _VIEWER _DIFFTOOL _MERGETOOL
_PREPROCESSOR _FILTER _SENDMAIL _DAEMON`)
	options  = NewSet("", "", "_FLAGS _OPTIONS _ARGS _ARGUMENTS _PARAMS _OPT _SWITCHES")
	searched = NewSet("", "", "_PATH _PATHS _DIRS")

	// behind are ends that a name may have besides: CHROME_EXECUTABLE_PATH.
	behind = []string{"_PATH", "_PATHS", "_FILE", "_FILES", "_DIR", "_DIRS", "_NAME", "_NAMES", "_LOCATION", "_LOCATIONS"}
)

// Runs reports whether a variable makes a program run or load what its value says, by its name alone: it names a program, adds
// options that could load one, or says where one is looked for. Of what the table knows that is [Dangerous].
func Runs(name, value string) bool {
	if value == "" || isSwitch(value) {
		return false
	}
	stem := strings.ToUpper(strings.TrimSpace(name))
	for _, end := range behind {
		if short, ok := strings.CutSuffix(stem, end); ok && programs.Has(short) {
			return true
		}
	}
	switch {
	case programs.Has(stem):
		return true
	case options.Has(stem):
		return !plainOptions.MatchString(value)
	case searched.Has(stem):
		paths, whole := Paths(value)
		return !whole || slices.ContainsFunc(paths, ofAgents)
	}
	return false
}

// isSwitch reports whether a value turns something on or off, or counts.
func isSwitch(value string) bool {
	number := strings.Trim(value, "0123456789") == ""
	return number || slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "none", "auto", "never", "always"}, strings.ToLower(value))
}

// plainOptions are options that can name nothing: "-v", "-vv", "--verbose", "--jobs=4", "--jobs 4".
var plainOptions = regexp.MustCompile(`^(-[a-zA-Z]|-v+|-q+|--[a-z][a-z-]*(=[0-9]+)?|[0-9]+)( +(-[a-zA-Z]|--[a-z][a-z-]*(=[0-9]+)?|[0-9]+))*$`)

// ofAgents reports whether a place where code is looked for could be one that agents write: any but those of the system. A bare
// name is one below the directory where the command runs.
func ofAgents(p string) bool {
	return strings.Contains(p, "..") || !slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/", "/lib", "/opt/", "/nix/store/", "/snap/"}, func(dir string) bool {
		return strings.HasPrefix(p+"/", dir)
	})
}
