package builtin

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
)

// systemDirectories is where a shell is looked for, and the PATH of commands when the gateway has none. Directories
// that an agent may write never come into it: a shell from there would run every command.
var systemDirectories = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// findShell returns the shell that runs approved texts: the configured one, else bash, else sh.
func findShell(configured string) (string, error) {
	if configured != "" {
		if !isProgram(configured) {
			return "", fmt.Errorf("shell %q is not a program", configured)
		}
		return configured, nil
	}
	for _, name := range []string{"bash", "sh"} {
		for _, dir := range slices.Backward(systemDirectories) {
			if shell := dir + "/" + name; isProgram(shell) {
				return shell, nil
			}
		}
	}
	return "", errors.New("no shell found in " + strings.Join(systemDirectories, ":"))
}

func isProgram(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// commandEnvironment is what every command inherits: the allowed variables of the gateway, a PATH of absolute
// directories, and no terminal.
func commandEnvironment(rules *environmentRules, environ, prepend []string) map[string]string {
	if environ == nil {
		environ = os.Environ()
	}
	env := rules.inherited(environ)
	var dirs []string
	for _, dir := range append(slices.Clone(prepend), strings.Split(env["PATH"], ":")...) {
		// An empty or relative entry means "wherever the command runs": a file in the workspace would pass for a
		// program of the system.
		if path.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		dirs = systemDirectories
	}
	env["PATH"] = strings.Join(dirs, ":")
	env["TERM"] = "dumb"
	return env
}
