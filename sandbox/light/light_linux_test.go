package light_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox/light"
)

var built struct {
	sync.Once
	file *os.File
	err  error
}

// program is toolward-inside, built from this tree once.
func program(context.Context) (*os.File, []string, error) {
	built.Do(func() {
		if os.Getenv(asUser) != "" {
			built.file = os.NewFile(3, "toolward-inside")
			built.err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // as the gateway does
			return
		}
		dir, err := os.MkdirTemp("", "light-program-")
		if err != nil {
			built.err = err
			return
		}
		defer os.RemoveAll(dir)
		command := exec.Command("go", "build", "-o", dir, "github.com/toolward/toolward/cmd/toolward-inside")
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := command.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
			return
		}
		built.file, built.err = os.Open(dir + "/toolward-inside")
	})
	return built.file, nil, built.err
}

// asUser is set in the tests that root starts once more as somebody else.
const asUser = "LIGHT_TEST_AS_USER"

// What holds for root holds for everybody else: there it needs a user namespace.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the other tests are an ordinary user's already")
	}
	file, _, err := program(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "light-user-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, 4321, 4321); err != nil {
		t.Skip(err)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	command := exec.Command("/proc/self/fd/4", "-test.v", "-test.timeout=60s")
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir, asUser + "=1", "OUTER_SECRET=1"}
	command.Dir = dir
	command.ExtraFiles = []*os.File{file, self}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4321, Gid: 4321}}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestOutOfReach") {
		t.Skipf("%s", out)
	}
}

// machine is a home with everything that must be out of reach, and a workspace in it.
type machine struct {
	home, state, ws string
	layout          place.Layout
	light           *light.Light
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{home: dir, state: dir + "/.toolward", ws: dir + "/src/proj"}
	for name, text := range map[string]string{
		".toolward/state.db": "state", ".toolward/audit.key": "key", ".toolward/exec-approvals.json": "{}", ".toolward/media/inbound/a.txt": "picture",
		".ssh/id_rsa": "ssh key", ".aws/credentials": "aws key", ".netrc": "netrc", ".bashrc": "rc", ".claude/settings.json": "{}", ".codex/config.toml": "c",
		"notes.txt": "notes", "src/proj/.claude/settings.json": "{}", "src/proj/main.txt": "code", "src/proj/.git/hooks/x": "hook",
		"src/proj/.git/config": "[core]\n", "src/proj/.git/HEAD": "ref: refs/heads/main\n", "src/proj/.env": "KEY=1", ".npmrc": "token",
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m.layout = place.Layout{Workspace: m.ws, Home: m.home, StateDir: m.state, ConfigFile: m.state + "/toolward.jsonc"}
	m.light = light.New(light.Options{Program: program})
	t.Cleanup(m.light.Close)
	if check := m.light.Check(); check.Mode != light.Namespaces {
		t.Skipf("no namespaces here: %s (%s)", check.Found, check.Fix)
	}
	return m
}

// plan is a job of parts joined by operators: words, then "&&", "|" or ";".
func (m *machine) plan(t testing.TB, words ...string) (job.Plan, *light.Scene) {
	t.Helper()
	open := func() (*os.File, error) { return os.Open(m.ws) }
	plan := job.Plan{
		Dir: job.Directory{Name: m.ws, Path: m.ws, Open: open}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + m.home, "SSH_AUTH_SOCK=/x"},
	}
	scene := &light.Scene{Layout: m.layout, Dir: m.ws}
	segment := job.Segment{Dir: m.ws}
	finish := func(op job.Operator) {
		found, err := exec.LookPath(segment.Argv[0])
		if err != nil {
			t.Skip(err)
		}
		identity, err := job.Identify(found)
		if err != nil {
			t.Fatal(err)
		}
		segment.Programs, segment.Op = []job.Program{{Path: found, Identity: identity}}, op
		plan.Segments = append(plan.Segments, segment)
		scene.Calls = append(scene.Calls, []light.Call{{Program: found, Args: segment.Argv[1:], Network: segment.Argv[0] == "git" && segment.Argv[1] == "push"}})
		segment = job.Segment{Dir: m.ws}
	}
	for _, word := range words {
		switch word {
		case "&&", "|", ";":
			finish(job.Operator(word))
		default:
			segment.Argv = append(segment.Argv, word)
		}
	}
	finish(job.None)
	return plan, scene
}

// run runs a job confined and returns what it printed.
func (m *machine) run(t testing.TB, words ...string) (string, job.Result) {
	t.Helper()
	plan, scene := m.plan(t, words...)
	if err := m.light.Confine(&plan, scene); err != nil {
		t.Fatal(err)
	}
	return runPlan(t, plan)
}

func runPlan(t testing.TB, plan job.Plan) (string, job.Result) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	running, err := job.Start(plan, job.Streams{Out: write, Err: write})
	if err != nil {
		t.Fatal(err)
	}
	output := make(chan string)
	go func() {
		out, _ := io.ReadAll(read) // it ends when nobody is left to write
		output <- string(out)
	}()
	<-running.Done()
	result := running.Result()
	running.Release() // ends what was left behind, which may hold the pipe
	return <-output, result
}

func (m *machine) content(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.home, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Whatever a command tries, what must be out of its reach is.
func TestOutOfReach(t *testing.T) {
	m := newMachine(t)
	for _, c := range []string{
		"cat ~/.toolward/state.db", "cat ~/.toolward/audit.key", "echo x > ~/.toolward/exec-approvals.json", "echo x > ~/.toolward/new", "rm -rf ~/.toolward",
		"mv ~/.toolward ~/t2", "ln -s ~/.toolward c && cat c/state.db", "ln -s ~/.toolward d && cp main.txt d/exec-approvals.json", "cat ~/.ssh/id_rsa",
		"echo x >> ~/.ssh/authorized_keys", "cat ~/.aws/credentials", "grep -q netrc ~/.netrc", "grep -q token ~/.npmrc", "grep -rq 'aws key' ~",
		"echo x >> ~/.bashrc", "echo x > ~/.claude/settings.json", "echo x > ~/.claude/settings.local.json", "mv ~/.claude ~/c2", "echo x > .claude/settings.json",
		"rm -r .claude", "mv .claude k", "echo x > .git/hooks/pre-commit", "echo x >> .git/config", "mv .git g2", "echo x > .git/commondir && exit 1", "echo x > ~/.codex/config.toml",
		"cat /proc/" + fmt.Sprint(os.Getpid()) + "/environ", "grep -rsaq --include=environ OUTER_SECRET /proc", "kill -0 " + fmt.Sprint(os.Getpid()),
		"test -e /proc/1/root/etc", "cat /proc/1/environ", "cat /proc/1/fd/0", "umount ~/.ssh", "umount -l ~/.toolward",
		"unshare -Urm umount ~/.ssh", "unshare -Urm sh -c 'umount -R ~/.toolward; cat ~/.toolward/state.db'", "unshare -Um cat ~/.ssh/id_rsa",
		"nsenter -t 1 -m cat ~/.ssh/id_rsa", "cat ../../.ssh/id_rsa", "cd ../.. && cat .toolward/state.db", "env | grep SSH_AUTH_SOCK", "mount -t tmpfs none /mnt",
		"test -w /proc/sys/kernel/core_pattern && echo x > /proc/sys/kernel/core_pattern",
	} {
		out, result := m.run(t, "sh", "-c", c)
		if result.Code == 0 && result.Signal == 0 {
			t.Errorf("%s: went through: %s", c, out)
		}
		for _, secret := range []string{"ssh key", "aws key", "state\n"} {
			if strings.Contains(out, secret) {
				t.Errorf("%s: showed %q", c, secret)
			}
		}
	}
	for name, want := range map[string]string{
		".toolward/exec-approvals.json": "{}", ".bashrc": "rc", ".claude/settings.json": "{}", "src/proj/.claude/settings.json": "{}", "src/proj/.git/config": "[core]\n",
		".toolward/state.db": "state", ".ssh/id_rsa": "ssh key",
	} {
		if got := m.content(t, name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// Ordinary work goes on, and what it makes belongs to who it should.
func TestOrdinaryWork(t *testing.T) {
	m := newMachine(t)
	for c, want := range map[string]string{
		"cat main.txt && cat ~/notes.txt":     "codenotes",
		"echo hi > new.txt && cat new.txt":    "hi\n",
		"cat .env":                            "KEY=1",
		"mkdir -p a/b && mv a c && ls c":      "b\n",
		"cat ~/.toolward/media/inbound/a.txt": "picture",
		"cat .claude/settings.json":           "{}",
		"id -u":                               fmt.Sprintln(os.Getuid()),
		"stat -c %u main.txt":                 fmt.Sprintln(os.Getuid()),
		"ls ~/.toolward":                      "media\n",
		"exit 7":                              "",
		"kill -TERM $$":                       "",
		"sleep 0.01 & wait; echo done":        "done\n",
		"(sleep 1000 &) ; echo left":          "left\n",
		"test -t 0 || echo none":              "none\n",
		"pwd && cd .. && pwd":                 m.ws + "\n" + filepath.Dir(m.ws) + "\n",
		"echo data > /tmp/toolward-light-test && cat /tmp/toolward-light-test && rm /tmp/toolward-light-test": "data\n",
	} {
		out, result := m.run(t, "sh", "-c", c)
		code, signal := 0, syscall.Signal(0)
		switch c {
		case "exit 7":
			code = 7
		case "kill -TERM $$":
			code, signal = 143, syscall.SIGTERM
		}
		if out != want || result.Code != code || result.Signal != signal || result.Err != nil {
			t.Errorf("%s: %q %+v, want %q", c, out, result, want)
		}
	}
	info, err := os.Stat(m.ws + "/new.txt")
	if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
		t.Errorf("a file that was made: %v, %v", info, err)
	}
}
