package builtin

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// loginWait is how long a login shell may take to say what its search path is. People's start-up files can hang.
const loginWait = 5 * time.Second

// LoginPath asks a login shell for its search path: a gateway that the system started has a shorter one than the person
// whose commands it runs. "" and an error if the shell does not answer.
func LoginPath(ctx context.Context, shell string) (string, error) {
	const mark = "toolward-search-path:"
	script := `printf '\n` + mark + `%s\n' "$PATH"`
	switch filepath.Base(shell) {
	case "bash", "zsh", "dash", "ksh", "sh":
	case "fish":
		script = `printf '\n` + mark + `%s\n' (string join : $PATH)`
	default:
		return "", errors.New("not a shell that is known to take -l and -c: " + shell)
	}
	if !filepath.IsAbs(shell) {
		return "", errors.New("the login shell is not an absolute path: " + shell)
	}
	ctx, cancel := context.WithTimeout(ctx, loginWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "-l", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal to stop on, and all of it can be ended
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	_, answer, found := strings.Cut(out.String(), "\n"+mark)
	answer, _, ended := strings.Cut(answer, "\n")
	if !found || !ended || answer == "" {
		if err == nil {
			err = errors.New("the login shell did not tell its search path")
		}
		return "", err
	}
	return answer, nil
}

// WithPath is an environment whose search path begins with that of the login shell.
func WithPath(environ []string, login string) []string {
	if login == "" {
		return environ
	}
	i := slices.IndexFunc(environ, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	if i < 0 {
		return append(slices.Clip(environ), "PATH="+login)
	}
	out := slices.Clone(environ)
	out[i] = "PATH=" + login + string(os.PathListSeparator) + strings.TrimPrefix(environ[i], "PATH=")
	return out
}
