package live_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// island is a machine of its own for an installation: in its namespaces, files, processes and ports are not those of this one.
type island struct {
	t      *testing.T
	holder *exec.Cmd
	dir    string // of the programs, which everybody can read
	inside string // process id of its first process, here
}

// alice is the person whose agents are guarded.
const alice = "64200"

// shore makes the island: what an installation changes is of it alone.
const shore = `set -e
mount -t tmpfs -o mode=0755 none /mnt
mkdir /mnt/etc /mnt/sbin /mnt/libexec /mnt/lib /mnt/run /mnt/home
cp -a /etc/. /mnt/etc/; rm -rf /mnt/etc/toolward /mnt/etc/claude-code /mnt/etc/systemd/system/toolward.service
mount --bind /mnt/etc /etc
mount --bind /mnt/sbin /usr/local/sbin
mount --bind /mnt/lib /var/lib
mount --bind /mnt/home /home
mount --bind /mnt/run /run
ip link set lo up
printf 'root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/usr/sbin/nologin\nalice:x:64200:64200::/home/alice:/bin/sh\n' >/etc/passwd
printf 'root:x:0:\ndaemon:x:1:\nalice:x:64200:\n' >/etc/group
printf 'root:*:1::::::\n' >/etc/shadow
printf 'root:*::\n' >/etc/gshadow
chmod 0644 /etc/passwd /etc/group; mkdir /home/alice
chmod 0700 /home/alice; mkdir /home/alice/project; echo hello >/home/alice/project/a.txt; chown -R alice:alice /home/alice
echo ready
exec cat
`

func newIsland(t *testing.T) *island {
	t.Helper()
	if os.Geteuid() != 0 {
		if live.All() {
			t.Fatal("TOOLWARD_LIVE=all, but only root can install for a machine")
		}
		t.Skip("not run: only root can install for a machine")
	}
	for _, name := range []string{"unshare", "nsenter", "setpriv", "ip", "useradd"} {
		live.Need(t, live.Program(name))
	}
	dir, err := os.MkdirTemp("/tmp", "twi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	i := &island{t: t, dir: dir}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"toolward", "toolward-hook"} {
		live.Build(t, "cmd/"+name, filepath.Join(dir, name))
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "intruder"), self, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	i.holder = exec.Command("unshare", "--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc", "sh", "-c", shore)
	i.holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := i.holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := &live.Output{}
	i.holder.Stdout, i.holder.Stderr = said, said
	if err := i.holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = i.holder.Process.Kill(); _ = i.holder.Wait() })
	i.await("the island", func() bool { return strings.HasSuffix(said.String(), "ready\n") })
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", i.holder.Process.Pid, i.holder.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	i.inside = strings.TrimSpace(string(children))
	return i
}

// await waits for something that other processes do.
func (i *island) await(what string, done func() bool) {
	i.t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			i.t.Fatalf("%s is not there", what)
		}
	}
}

// command is one of root's.
func (i *island) command(args ...string) *exec.Cmd {
	c := exec.Command("nsenter", append([]string{"--target", i.inside, "--mount", "--net", "--pid", "--ipc", "--wd=/", "--"}, args...)...)
	c.Env = []string{"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// of makes arguments those of a program of alice's.
func ofAlice(args ...string) []string {
	return append([]string{"setpriv", "--reuid=" + alice, "--regid=" + alice, "--clear-groups", "env", "HOME=/home/alice"}, args...)
}

// run runs a command to its end.
func (i *island) run(input string, args ...string) (said string, ok bool) {
	c := i.command(args...)
	c.Stdin = strings.NewReader(input)
	out, err := c.CombinedOutput()
	return string(out), err == nil
}

func (i *island) must(args ...string) string {
	i.t.Helper()
	said, ok := i.run("", args...)
	if !ok {
		i.t.Fatalf("%q: %s", args, said)
	}
	return said
}

// refused runs what must fail, with these words.
func (i *island) refused(words string, args ...string) {
	i.t.Helper()
	if said, ok := i.run("", args...); ok || !strings.Contains(said, words) {
		i.t.Errorf("%q: ended well %v, and said %q, want %q", args, ok, said, words)
	}
}

func (i *island) toolward() string { return filepath.Join(i.dir, "toolward") }

// start starts the gateway as root is told to, and waits until it listens. What it returns ends it.
func (i *island) start() (stop func()) {
	i.t.Helper()
	said := i.must(i.toolward(), "install", "--system", "--user", "alice", "--yes")
	line := regexp.MustCompile(`(?m)^install -d .*$`).FindString(said)
	if line == "" {
		i.t.Fatalf("root is not told how to start the gateway: %s", said)
	}
	gateway, log := i.command("sh", "-c", line), &live.Output{}
	gateway.Stdout, gateway.Stderr = log, log
	if err := gateway.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.await("the gateway", func() bool { return strings.Contains(log.String(), "Toolward is up") })
	var stopped bool
	stop = func() {
		if !stopped {
			stopped = true
			i.run("", "pkill", "-TERM", "-u", "toolward", "-x", "toolward")
			_ = gateway.Wait()
		}
	}
	i.t.Cleanup(func() {
		stop()
		if i.t.Failed() {
			i.t.Log(log.String())
		}
	})
	if strings.Contains(log.String(), "code") {
		i.t.Errorf("a service's output has the set-up code: %s", log)
	}
	return stop
}

// hook has Claude Code's hook decide a call in alice's project.
func (i *island) hook(tool, input string, environ ...string) string {
	event := fmt.Sprintf(`{"session_id":"s1","transcript_path":"/home/alice/t.jsonl","cwd":"/home/alice/project","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":%q,"tool_input":%s,"tool_use_id":"toolu_%d"}`,
		tool, input, time.Now().UnixNano())
	args := append(append([]string{"CLAUDE_PROJECT_DIR=/home/alice/project"}, environ...), filepath.Join(i.dir, "toolward-hook"), "claude-code", "PreToolUse")
	said, ok := i.run(event, ofAlice(args...)...)
	return fmt.Sprintf("%s ended well: %v", said, ok)
}

// TestSystemInstall: the gateway has a user of its own, guards Claude Code as before, and a program of the agent's user that tries all
// that SECURITY.md names gets nowhere. Then it is taken back.
func TestSystemInstall(t *testing.T) {
	i := newIsland(t)
	before := i.must("sh", "-c", "cat /etc/passwd /etc/group; find /etc /var/lib /usr/local/sbin | grep -v -e passwd -e group -e shadow -e sub.id | sort")
	i.badInstalls()
	stop := i.start()
	// An agent's program that guesses comes first: the code is still good.
	i.intrude()
	person := i.person("allow-once")
	if said := i.hook("Read", `{"file_path":"/home/alice/project/a.txt"}`); !strings.Contains(said, `"permissionDecision":"allow"`) {
		t.Errorf("a file of a project in a closed home: %s", said)
	}
	if said := i.hook("Bash", `{"command":"touch b.txt"}`); !strings.Contains(said, `"permissionDecision":"allow"`) {
		t.Errorf("what the person allowed: %s", said)
	}
	person()
	if said := i.hook("Bash", `{"command":"cat /home/alice/.ssh/id_rsa"}`); strings.Contains(said, `"permissionDecision":"allow"`) {
		t.Errorf("without the person: %s", said)
	}
	i.refused("runs no tools", ofAlice(i.toolward(), "mcp", "--agent", "coder", "--workspace", "/home/alice/project")...)
	i.refused("answer in the console", ofAlice(i.toolward(), "approvals", "list")...)
	i.refused("of its own user only", i.toolward(), "approvals", "list") // root is nobody's agent, and nobody's person
	i.refused("still runs", i.toolward(), "uninstall", "--system", "--yes")
	stop()
	// In the daemon's place: there is no room, and the hook asks nobody else.
	i.refused("ermission denied", ofAlice("touch", "/run/toolward/toolward.sock")...)
	if said := i.hook("Read", `{"file_path":"/home/alice/project/a.txt"}`, "TOOLWARD_HOME=/home/alice/own"); !strings.Contains(said, "ended well: false") || !strings.Contains(said, "not running") {
		t.Errorf("without the gateway: %s", said)
	}
	i.takeBack(before)
}

// badInstalls tries what must change nothing, and what was cut off.
func (i *island) badInstalls() {
	i.t.Helper()
	i.refused("only root", ofAlice(i.toolward(), "install", "--system", "--yes")...)
	i.refused("for whom", i.toolward(), "install", "--system", "--yes")
	i.refused("unknown user", i.toolward(), "install", "--system", "--yes", "--user", "nobody-such")
	i.refused("run as root", i.toolward(), "install", "--system", "--yes", "--user", "root")
	i.refused("no system install", i.toolward(), "uninstall", "--system", "--yes")
	// A unit that somebody else wrote stays, and what was made before it is there for the next try.
	i.must("sh", "-c", "echo mine >/etc/systemd/system/toolward.service")
	i.refused("not by this installation", i.toolward(), "install", "--system", "--yes", "--user", "alice")
	if text := i.must("cat", "/etc/systemd/system/toolward.service"); text != "mine\n" {
		i.t.Errorf("somebody's unit is now %q", text)
	}
	i.refused("No such file", "cat", "/etc/toolward/daemon")
	i.must("rm", "/etc/systemd/system/toolward.service")
	i.must(i.toolward(), "install", "--system", "--yes", "--user", "alice")
	i.refused("installed for alice", i.toolward(), "install", "--system", "--yes", "--user", "daemon")
	if said := i.must(i.toolward(), "install", "--system", "--yes", "--user", "alice"); !strings.Contains(said, "installed already") {
		i.t.Errorf("a second time: %s", said)
	}
	i.must("sh", "-c", "echo changed >>/usr/local/sbin/toolward; chmod 0777 /var/lib/toolward; rm /etc/toolward/daemon")
	i.must(i.toolward(), "install", "--system", "--yes", "--user", "alice")
	i.must("cmp", i.toolward(), "/usr/local/sbin/toolward")
	if mode := i.must("stat", "-c", "%a %U", "/var/lib/toolward"); mode != "700 toolward\n" {
		i.t.Errorf("the state has %s", mode)
	}
}

// intrude has a program of alice's try everything, against the gateway that runs.
func (i *island) intrude() {
	i.t.Helper()
	pid := strings.TrimSpace(i.must("pgrep", "-u", "toolward", "-x", "toolward"))
	status := i.must("cat", "/proc/"+pid+"/status")
	for _, want := range []string{"CapPrm:\t0000000000000004", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !strings.Contains(status, want) {
			i.t.Errorf("the gateway has other rights than %q:\n%s", want, status)
		}
	}
	files := strings.Fields(i.must("find", "/var/lib/toolward", "-type", "f"))
	if !slices.Contains(files, "/var/lib/toolward/setup-code") || len(files) < 4 {
		i.t.Fatalf("the state is %q", files)
	}
	said, ok := i.run("", ofAlice(intruderVariable+"="+pid+" "+strings.Join(files, " "), filepath.Join(i.dir, "intruder"))...)
	i.t.Log(said)
	if tries := strings.Count(said, "refused: "); !ok || tries < 60 || strings.Contains(said, "DONE: ") {
		i.t.Errorf("a program of the agent's user made %d tries and ended well %v:\n%s", tries, ok, said)
	}
	if again := strings.TrimSpace(i.must("pgrep", "-u", "toolward", "-x", "toolward")); again != pid {
		i.t.Errorf("the gateway is now process %s, not %s", again, pid)
	}
}

// person sets the passphrase with the code that root has, signs in at the console and answers; what it returns ends that.
func (i *island) person(decision string) (leave func()) {
	i.t.Helper()
	code := strings.TrimSpace(i.must("cat", "/var/lib/toolward/setup-code"))
	c := i.command("env", personVariable+"="+code+" "+decision, filepath.Join(i.dir, "intruder"))
	said := &live.Output{}
	c.Stdout, c.Stderr = said, said
	stdin, err := c.StdinPipe()
	if err != nil {
		i.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		i.t.Fatal(err)
	}
	leave = func() { _ = stdin.Close(); _ = c.Wait() }
	i.t.Cleanup(leave)
	i.await("the person", func() bool { return said.String() != "" })
	if said.String() != "watching\n" {
		i.t.Fatalf("the person: %s", said)
	}
	return leave
}

// takeBack uninstalls, and compares what is left with what was there.
func (i *island) takeBack(before string) {
	i.t.Helper()
	i.must(i.toolward(), "uninstall", "--system", "--yes")
	left := i.must("sh", "-c", "ls -d /etc/toolward /usr/local/sbin/toolward /etc/systemd/system/toolward.service /run/toolward /var/lib/toolward 2>/dev/null; id -un toolward")
	if left != "/var/lib/toolward\ntoolward\n" {
		i.t.Errorf("left is %s", left)
	}
	i.refused("--purge", i.toolward(), "install", "--system", "--yes", "--user", "daemon")
	i.must(i.toolward(), "uninstall", "--system", "--purge", "--yes")
	after := i.must("sh", "-c", "cat /etc/passwd /etc/group; find /etc /var/lib /usr/local/sbin | grep -v -e passwd -e group -e shadow -e sub.id | sort")
	if after != before {
		i.t.Errorf("it is not as it was before:\n%s\n---\n%s", before, after)
	}
}

const personVariable = "TOOLWARD_TEST_SYSTEM_PERSON"

// init makes this program a person at the console.
func init() {
	text, ok := os.LookupEnv(personVariable)
	if !ok {
		return
	}
	code, decision, _ := strings.Cut(text, " ")
	const address = "http://127.0.0.1:7411"
	response, err := http.PostForm(address+"/setup", url.Values{"code": {code}, "passphrase": {live.Passphrase}, "again": {live.Passphrase}})
	if err == nil {
		var page bytes.Buffer
		_, _ = page.ReadFrom(response.Body)
	}
	ctx, cancel := context.WithCancel(context.Background())
	person, err := signInAtConsole(ctx, address)
	var stream io.ReadCloser
	if err == nil {
		stream, err = person.watch(ctx)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("watching")
	go person.answerAll(ctx, stream, func(string) string { return decision }, func(string, string) {})
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	os.Exit(0)
}
