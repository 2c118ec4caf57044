package builtin

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toolward/toolward/execpolicy"
)

// systemDirectories is where a shell is looked for. Directories that an agent may write never come into it: a shell from
// there would run every command.
var systemDirectories = strings.Split(execpolicy.DefaultPath, ":")

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
