package builtin

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toolward/toolward/command"
)

// systemDirectories is where a shell is looked for. Directories that an agent may write never come into it: a shell from
// there would run every command.
var systemDirectories = strings.Split(command.DefaultPath, ":")

var errNoShell = errors.New("there is no shell in " + strings.Join(systemDirectories, ":"))

// findShell returns the shell that runs approved texts: the configured one, else bash, else sh.
// It is errNoShell where there is none, as in an image that holds nothing but the gateway: commands that need one are
// refused there, and everything else works.
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
	return "", errNoShell
}

func isProgram(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
