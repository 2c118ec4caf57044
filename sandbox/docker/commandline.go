package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// CommandLine is a command line of the container engine's own client that creates the container of a Spec, without the
// program's name. It says everything that a command line can say: which parts of /proc and /sys are hidden it cannot, nor that a
// read-only mount shows nothing that is mounted below. The filter for system calls is written to a file in a directory,
// because the client takes it by name and the engine's own lets more through.
//
// The container is nobody's: it has no label of this Toolward home, so that no gateway takes it for one of its own.
func CommandLine(ctx context.Context, spec *sandbox.Spec, directory string) ([]string, error) {
	program, err := inside.FindProgram(ctx)
	if err != nil {
		return nil, err
	}
	profile, err := profileFile(spec, directory)
	if err != nil {
		return nil, err
	}
	m := &mounts{program: program}
	if err := m.addSources(spec); err != nil {
		return nil, err
	}
	if err := m.add(spec, program.Path, agentTarget, false); err != nil {
		return nil, err
	}
	user := fmt.Sprintf("%d:%d", spec.User.UID, spec.User.GID)
	asked, err := request(spec, m, user, namedProfiles(profile, spec.Docker.AppArmor), "")
	if err != nil {
		return nil, err
	}
	delete(asked.Config.Labels, labelInstance)
	args, err := createArgs(&asked)
	if err != nil {
		return nil, err
	}
	return slices.Concat(args, constantArgs(&asked), asked.Config.Entrypoint[1:], asked.Config.Cmd), nil
}

// profileFile is the filter for system calls as a file: that of the configuration, or the shipped one, written.
func profileFile(spec *sandbox.Spec, directory string) (string, error) {
	if spec.Docker.SeccompProfile != "" {
		return spec.Docker.SeccompProfile, nil
	}
	filter, err := profileOf("", spec.Ptrace)
	if err != nil {
		return "", err
	}
	return writeProfile(directory, filter)
}

// namedProfiles are the security options with profiles by their names, as a command line has them.
func namedProfiles(seccomp, appArmor string) []string {
	options := []string{"no-new-privileges"}
	if seccomp != "" {
		options = append(options, "seccomp="+seccomp)
	}
	if appArmor != "" {
		options = append(options, "apparmor="+appArmor)
	}
	return options
}

// plainCharacters need no quotes in a shell.
const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%"

// ShellLine is a command line for a shell, one option with its value on each line. Nothing in it steers a terminal: what is
// not plain text is written in numbers.
func ShellLine(args []string) string {
	var line strings.Builder
	for i, arg := range args {
		if i > 0 {
			separator := " "
			if i > 1 && (strings.HasPrefix(arg, "-") || !strings.HasPrefix(args[i-1], "-")) {
				separator = " \\\n  "
			}
			line.WriteString(separator)
		}
		line.WriteString(shellWord(arg))
	}
	return line.String()
}

func shellWord(arg string) string {
	switch {
	case arg != "" && strings.Trim(arg, plainCharacters) == "":
		return arg
	case strings.IndexFunc(arg, func(r rune) bool { return r < ' ' || r > '~' }) < 0:
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	var numbers strings.Builder // as bash, zsh, ksh and busybox read them
	for _, b := range []byte(arg) {
		fmt.Fprintf(&numbers, `\%03o`, b)
	}
	return "$'" + numbers.String() + "'"
}
