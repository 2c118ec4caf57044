package hookclient_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolward/toolward/hostdaemon"
	"github.com/toolward/toolward/internal/otheruser"
)

// listenAsAnother has another user listen at a socket of a new home.
func listenAsAnother(t *testing.T) (home string, sent func() string) {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "tw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	return home, otheruser.Listen(t, filepath.Join(home, hostdaemon.SocketName))
}

// Another user's program that listens in the daemon's place learns nothing of the call, and cannot let it run.
func TestAnotherUserIsSentNothing(t *testing.T) {
	home, sent := listenAsAnother(t)
	got := run(t, home, strings.NewReader("{}"), nil, "claude-code", "PreToolUse")
	if got.exit != 2 || got.stdout != "" || !strings.Contains(got.stderr, "user "+strconv.Itoa(otheruser.UID)+" listens there") {
		t.Errorf("%+v", got)
	}
	if got := sent(); got != "was sent 0" {
		t.Errorf("it %s", got)
	}
}

// TestTheMachinesDaemonIsAsked: an agent that names a home of its own, in the environment or in settings, has a daemon of its own
// there that says yes.
func TestTheMachinesDaemonIsAsked(t *testing.T) {
	agents := daemon(t, func(_ string, conn net.Conn) { respond(conn, frame(0, "yes", "")) })
	machines, sent := listenAsAnother(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("no namespace for an /etc of its own: %v: %s", err, out)
	}
	line := hostdaemon.Daemon{UID: otheruser.UID, Socket: filepath.Join(machines, hostdaemon.SocketName)}.Line()
	ask := func(setup string, args ...string) seen {
		script := `mount -t tmpfs -o mode=755 etc /etc && mkdir /etc/toolward && printf %s "$LINE" >/etc/toolward/daemon && ` + setup + ` && exec "$0" "$@"`
		command := exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, path, "claude-code", "PreToolUse"}, args...)...)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "LINE=" + line, "TOOLWARD_HOME=" + agents, "HOME=" + agents, "TOOLWARD_STATE_DIR=" + agents}
		command.Stdin = strings.NewReader("{}")
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		_ = command.Run()
		return seen{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	}
	for _, args := range [][]string{nil, {"--home", agents}} {
		got := ask("true", args...)
		if sent := sent(); got.exit != 2 || got.stdout != "" || sent != "was sent 1" {
			t.Errorf("%q: the machine's daemon %s: %+v", args, sent, got)
		}
	}
	for _, odd := range []string{
		"chmod 666 /etc/toolward/daemon", "chmod 777 /etc/toolward", "chown 1 /etc", `printf %s "$LINE" >>/etc/toolward/daemon`,
		"mv /etc/toolward /etc/t && ln -s /etc/t /etc/toolward", "chmod 666 /etc/toolward/daemon && rm /etc/toolward/daemon && ln -s /none /etc/toolward/daemon",
	} {
		if got := ask(odd, "--home", agents); got.exit != 2 || got.stdout != "" || !strings.Contains(got.stderr, "/etc") || !strings.Contains(got.stderr, "must be root's alone") {
			t.Errorf("%s: %+v", odd, got)
		}
	}
	if got := ask("rm -r /etc/toolward", "--home", agents); got.stdout != "yes" {
		t.Errorf("without a system install: %+v", got)
	}
}
