package live_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox/fleet"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward/internal/escape"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/server/api"
)

// patience bounds what is waited for in other processes, on a busy machine.
const patience = time.Minute

// boxed is a machine all of whose calls run in sandboxes of one engine.
type boxed struct {
	*live.Machine
	t      *testing.T
	engine string
	person *consolePerson
	temp   string            // of the daemon
	tokens map[string]string // by agent
}

// newBoxed prepares such a machine. Nothing runs yet. settings are further ones of agents.defaults.sandbox.
func newBoxed(t *testing.T, engine, settings string) *boxed {
	t.Helper()
	b := &boxed{Machine: live.NewQuickMachine(t, ""), t: t, engine: engine, tokens: map[string]string{}}
	b.temp = filepath.Join(b.Home, "tmp")
	if err := os.Mkdir(b.temp, 0o700); err != nil {
		t.Fatal(err)
	}
	b.Extra = []string{"TMPDIR=" + b.temp}
	if engine == "docker" {
		b.Extra = append(b.Extra, "DOCKER_HOST="+live.Docker(t))
		settings += fmt.Sprintf(`, "docker": {"image": %q}`, b.image())
	}
	// Whoever calls so often is odd indeed: the detectors that count would raise the level, and everything would ask.
	b.Configure(fmt.Sprintf(`{
  "teg": {"preset": "workspace", "anomaly": {"burst": {"enabled": false}, "rate": {"enabled": false}, "writes": {"enabled": false}, "denied": {"enabled": false}, "evasion": {"enabled": false}}},
  "agents": {"defaults": {"sandbox": {"mode": "all", "engine": %q, "degradeOk": ["cgroup"]%s}}}
}`, engine, settings))
	t.Cleanup(b.forget)
	return b
}

// nobody is whom tests of an ordinary user run as. The machine need not know the number.
const nobody = 12345

// asUser runs this test again as an ordinary user, with the group of the container engine's socket if engine is docker.
// What a daemon of that user does is seen by that user only.
func asUser(t *testing.T, engine string) {
	t.Helper()
	credential := &syscall.Credential{Uid: nobody, Gid: nobody}
	extra := []string{"TOOLWARD_LIVE=" + os.Getenv("TOOLWARD_LIVE")}
	if engine == "docker" {
		host := live.Docker(t)
		info, err := os.Stat(strings.TrimPrefix(host, "unix://"))
		if err != nil {
			t.Fatal(err)
		}
		group := info.Sys().(*syscall.Stat_t).Gid
		if group == 0 || info.Mode().Perm()&0o060 != 0o060 {
			t.Skip("not run: ordinary users cannot use the container engine: its socket has no group of its own")
		}
		credential.Groups, extra = []uint32{group}, append(extra, "DOCKER_HOST="+host)
	}
	if probe := os.Getenv(escape.ProbeVariable); probe != "" {
		extra = append(extra, escape.ProbeVariable+"="+probe)
	}
	if strings.HasPrefix(t.Name(), "TestFullDisk") { // only root can mount one
		disk := t.TempDir()
		mount(t, disk, fmt.Sprintf("size=1m,mode=0755,uid=%d,gid=%d", nobody, nobody))
		extra = append(extra, diskVariable+"="+disk)
		for dir := disk; dir != "/"; dir = filepath.Dir(dir) {
			if dir != disk && strings.HasPrefix(dir, os.TempDir()+"/") {
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	home, err := os.MkdirTemp("", "twu") // the path of a socket holds about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(home, "test") // where it lies, that user need not get
	binary, err := os.ReadFile(executable)
	if err = errors.Join(err, os.WriteFile(self, binary, 0o755), os.Chown(home, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	var pattern []string
	for name := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+name+"$")
	}
	test := exec.CommandContext(t.Context(), self, "-test.run="+strings.Join(pattern, "/"), "-test.v")
	test.Dir, test.SysProcAttr = home, &syscall.SysProcAttr{Credential: credential}
	test.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, live.ProgramsVariable + "=" + filepath.Dir(live.NewQuickMachine(t, "").Program("toolward")),
	}, extra...)
	out, err := test.CombinedOutput()
	if err != nil || strings.Contains(string(out), "--- SKIP") {
		t.Fatalf("as user %d: %v\n%s", nobody, err, out)
	}
	t.Logf("as user %d:\n%s", nobody, out)
}

func (b *boxed) image() string { return fmt.Sprintf("toolward-live-%d:busybox", os.Getpid()) }

// forget removes what a test that failed may have left in the container engine, and the image.
func (b *boxed) forget() {
	if b.engine != "docker" {
		return
	}
	b.Kill()
	for name := range b.containers() {
		b.docker("rm", "--force", name)
	}
	b.docker("rmi", "--force", b.image())
}

// start starts the daemon and signs its person in; for containers, their image is made first.
func (b *boxed) start() {
	b.t.Helper()
	b.Start()
	person, err := signInAtConsole(b.t.Context(), b.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	b.person = person
	if b.engine == "docker" && b.docker("images", "--quiet", b.image()) == "" {
		if out, status := b.Run("sandbox", "image", "build", "--busybox", "--name", b.image()); status != 0 {
			b.t.Fatalf("image build: %d\n%s", status, out)
		}
	}
}

// connect is an MCP client of an agent.
func (b *boxed) connect(ctx context.Context, agent, client string) (*sdk.ClientSession, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: client, Version: "1"}, nil)
	return c.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: b.URL + "/mcp", HTTPClient: &http.Client{Transport: bearing(b.tokens[agent])}, DisableStandaloneSSE: true,
	}, nil)
}

// token makes one for an agent.
func (b *boxed) token(agent string) {
	b.t.Helper()
	var made struct{ Secret string }
	err := b.person.api(b.t.Context(), http.MethodPost, "/v1/tokens", map[string]string{"agent": agent, "workspace": b.Workspace}, &made)
	if err != nil {
		b.t.Fatal(err)
	}
	b.tokens[agent] = made.Secret
}

// callTool has an agent's client call a tool and returns all text of the answer.
func callTool(ctx context.Context, session *sdk.ClientSession, tool string, arguments map[string]any) (string, error) {
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, c := range result.Content {
		if part, ok := c.(*sdk.TextContent); ok {
			text.WriteString(part.Text)
		}
	}
	return text.String(), nil
}

// do is callTool by a new client, which must succeed.
func (b *boxed) do(agent, tool string, arguments map[string]any) string {
	b.t.Helper()
	session, err := b.connect(b.t.Context(), agent, "test")
	if err != nil {
		b.t.Fatal(err)
	}
	defer session.Close()
	text, err := callTool(b.t.Context(), session, tool, arguments)
	if err != nil {
		b.t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	return text
}

// list is what "toolward sandbox list" shows.
func (b *boxed) list() []fleet.Info {
	b.t.Helper()
	var list api.SandboxList
	if err := b.person.api(b.t.Context(), http.MethodGet, "/v1/sandboxes", nil, &list); err != nil || list.Warning != "" {
		b.t.Fatalf("list sandboxes: %v, %q", err, list.Warning)
	}
	var infos []fleet.Info
	for _, one := range list.Containers {
		infos = append(infos, one.Info)
	}
	return infos
}

// removeAll removes every sandbox.
func (b *boxed) removeAll() {
	b.t.Helper()
	for _, i := range b.list() {
		if err := b.person.api(b.t.Context(), http.MethodPost, "/v1/sandboxes/"+i.Name+"/remove", struct{}{}, nil); err != nil {
			b.t.Error(err)
		}
	}
}

// docker runs the container engine's own client.
func (b *boxed) docker(arguments ...string) string {
	b.t.Helper()
	command := exec.Command(live.Need(b.t, live.Program("docker")), arguments...)
	for _, e := range b.Extra {
		if strings.HasPrefix(e, "DOCKER_HOST=") {
			command.Env = append(os.Environ(), e)
		}
	}
	out, err := command.CombinedOutput()
	if err != nil {
		b.t.Errorf("docker %v: %v: %s", arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

// instance is the name of this home in engines.
func (b *boxed) instance() string {
	machine, known, err := fleet.ReadMachine(b.State)
	if err != nil || !known {
		b.t.Fatalf("machine.json: %v, %v", known, err)
	}
	return machine.Instance
}

// containers are those of this home, and whether they run.
func (b *boxed) containers() map[string]bool {
	b.t.Helper()
	all := map[string]bool{}
	machine, _, _ := fleet.ReadMachine(b.State)
	if machine.Instance == "" {
		return all
	}
	out := b.docker("ps", "--all", "--filter", "label=toolward.instance="+machine.Instance, "--format", "{{.Names}} {{.State}}")
	for line := range strings.Lines(out) {
		name, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = state == "running"
	}
	return all
}

// mustHaveSoundFiles fails unless the files of the registry can be read, as they are after any kill.
func (b *boxed) mustHaveSoundFiles() {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.State, "sandbox", "containers.json"))
	if err == nil {
		_, err = fleet.ParseRegistry(content)
	}
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatalf("the registry after a kill: %v\n%s", err, content)
	}
	if _, _, err := fleet.ReadMachine(b.State); err != nil {
		b.t.Fatalf("after a kill: %v", err)
	}
}

// mustBeSwept fails if a start has left anything of a gateway that was killed. running says that a daemon runs.
func (b *boxed) mustBeSwept(running bool) {
	b.t.Helper()
	for _, name := range filesIn(b.t, filepath.Join(b.State, "sandbox")) {
		if name != "containers.json" && name != "machine.json" && name != "remotes.json" {
			b.t.Errorf("sandbox/%s is left", name)
		}
	}
	for _, name := range filesIn(b.t, b.temp) {
		b.t.Errorf("tmp/%s is left", name)
	}
	for _, name := range filesIn(b.t, filepath.Join(b.Home, ".cache", "toolward", "doors")) {
		b.t.Errorf("the socket %s is left", name)
	}
	if data, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(data), b.Home) {
		b.t.Errorf("a mount is left: %s", data)
	}
	own := ""
	if running {
		own = strconv.Itoa(b.Pid()) + "-"
	}
	for _, group := range b.groups() {
		if own == "" || !strings.HasPrefix(filepath.Base(group), own) && strings.Contains(filepath.Base(group), "-") {
			b.t.Errorf("the control group %s is left", group)
		}
	}
}

// groups are the control groups of this home's sandboxes.
func (b *boxed) groups() []string {
	sum := sha256.Sum256([]byte(b.instance()))
	top := "toolward-" + hex.EncodeToString(sum[:4])
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && filepath.Base(filepath.Dir(path)) == top {
			found = append(found, path)
		}
		return nil // groups come and go
	})
	if err != nil {
		b.t.Error(err)
	}
	return found
}

// filesIn are the files below a directory, which need not exist.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	return names
}

// process is one process, told from every other that had or will have its number.
type process struct {
	pid   int
	start string
}

// descend are the processes that descend from one.
func descend(root int) []process {
	children, starts := map[int][]int{}, map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, start, ok := statOf(pid); ok {
			children[parent], starts[pid] = append(children[parent], pid), start
		}
	}
	var found []process
	for next := slices.Clone(children[root]); len(next) > 0; next = next[1:] {
		found = append(found, process{next[0], starts[next[0]]})
		next = append(next, children[next[0]]...)
	}
	return found
}

func statOf(pid int) (parent int, start string, ok bool) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, ok := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" {
		return 0, "", false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, fields[19], err == nil
}

// mustEnd waits until processes have ended, and says how long that took.
func mustEnd(t *testing.T, processes []process) time.Duration {
	t.Helper()
	began := time.Now()
	for _, p := range processes {
		for {
			_, start, ok := statOf(p.pid)
			if !ok || start != p.start {
				break
			}
			if time.Since(began) > patience {
				cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
				t.Errorf("process %d is left: %q", p.pid, cmdline)
				return 0
			}
			time.Sleep(time.Millisecond)
		}
	}
	return time.Since(began)
}

// sleeping counts the processes of the machine that have a text as an argument.
func sleeping(marker string) int { return len(sleepers(marker)) }

func sleepers(marker string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		data, _ := os.ReadFile(path)
		if slices.Contains(strings.Split(string(data), "\x00"), marker) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))) // the pattern says that it is one
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually waits for something that other processes do.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
