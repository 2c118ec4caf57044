package docker

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// CommandLine is a command line of the container engine's own client that creates the same container, without the
// program's name. It says everything that a command line can say: which parts of /proc and /sys are hidden it cannot, nor that a
// read-only mount shows nothing that is mounted below. The filter for system calls is written to a file in a directory,
// because the client takes it by name and the engine's own lets more through.
//
// The container is nobody's: it has no label of this Toolward home, so that no gateway takes it for one of its own.
func CommandLine(ctx context.Context, c *sandbox.Creation, directory string) ([]string, error) {
	program, err := inside.FindProgram(ctx)
	if err != nil {
		return nil, err
	}
	shown := *c
	d := &shown.Docker
	if d.SeccompProfile, err = profileFile(c, directory); err != nil {
		return nil, err
	}
	list, err := mountsOfCreation(c, program)
	if err != nil {
		return nil, err
	}
	shown.WorkspaceDir, shown.AgentDir, d.Binds = list[0].Source, "", nil
	for _, m := range list[1:] {
		d.Binds = append(d.Binds, m.String())
	}
	args := append(shown.Args(),
		"--hostname", hostname, "--ipc", "private", "--cgroupns", "private", "--shm-size", strconv.Itoa(shmSize), "--log-driver", "none",
		"--restart", "no", "--no-healthcheck", "--stop-signal", stopSignal, "--stop-timeout", strconv.Itoa(stopSeconds), "--init=false", "--pull", "never")
	if d.Runtime != "" {
		args = append(args, "--runtime", d.Runtime)
	}
	args = append(args, "--interactive", "--entrypoint", agentTarget, d.Image)
	return append(append(args, program.Args...), inside.Serve), nil
}

// mountsOfCreation is what would be mounted, as binds: the workspace first.
func mountsOfCreation(c *sandbox.Creation, program *inside.Program) ([]sandbox.Bind, error) {
	all, err := c.Mounts()
	if err != nil {
		return nil, err
	}
	spec := &sandbox.Spec{Mounts: all, Docker: sandbox.DockerSpec{HostPaths: c.Docker.HostPathMap}}
	m := &mounts{}
	for i, one := range all {
		if hidden(all, i) {
			continue
		}
		if err := m.add(spec, one.Source, one.Target, one.Writable); err != nil {
			return nil, err
		}
	}
	for _, target := range c.Protected {
		if err := m.protect(spec, target); err != nil {
			return nil, err
		}
	}
	if err := m.add(spec, program.Path, agentTarget, false); err != nil {
		return nil, err
	}
	var list []sandbox.Bind
	for _, one := range m.list {
		if strings.Contains(one.Source, ":") {
			return nil, sandbox.Errorf(sandbox.CodeConfig, "a command line cannot mount %s: it has a colon", one.Source)
		}
		list = append(list, sandbox.Bind{Source: one.Source, Target: one.Target, Writable: !one.ReadOnly})
	}
	return list, nil
}

// profileFile is the filter for system calls as a file: that of the configuration, or the shipped one, written.
func profileFile(c *sandbox.Creation, directory string) (string, error) {
	if c.Docker.SeccompProfile != "" {
		return c.Docker.SeccompProfile, nil
	}
	user, err := sandbox.ParseUser(c.Docker.User)
	if err != nil {
		return "", err
	}
	filter, err := profileOf("", c.Ptrace, user)
	if err != nil {
		return "", err
	}
	return writeProfile(directory, filter)
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
