package live

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox/fleet"
)

// Passphrase is the person's, on every [Machine].
const Passphrase = "correct horse battery staple"

// Machine is a throw-away account of one person with a Toolward of its own: the real programs, a real daemon. What
// it starts has ended when the test has.
type Machine struct {
	Home      string // the person's
	State     string // Toolward's home
	Workspace string // a project of the person's
	URL       string // of the console, once the daemon is up
	Listen    string // for the next start; "" is any free port
	// Extra is what the person's processes have in their environment besides.
	Extra []string

	t       testing.TB
	bin     string
	isSetUp bool // a passphrase has been set
	daemon  *exec.Cmd
	ended   chan struct{} // closed when the daemon has
	log     *Output
}

// NewMachine makes an account with this configuration file; "" means none. Nothing runs yet. Where the configuration says
// nothing else, commands run on this machine: see [Unsandboxed].
func NewMachine(t testing.TB, config string) *Machine {
	t.Helper()
	return newMachine(t, config, build{race: raceDetector()})
}

// NewMachineWithHosts is like [NewMachine], with programs whose sandboxes reach addresses of this machine by some names.
func NewMachineWithHosts(t testing.TB, config string, hosts map[string]string) *Machine {
	t.Helper()
	m := newMachine(t, config, build{race: raceDetector(), tags: "livetest"})
	var pairs []string
	for name, address := range hosts {
		pairs = append(pairs, name+"="+address)
	}
	m.Extra = append(m.Extra, "TOOLWARD_TEST_EGRESS="+strings.Join(pairs, ","))
	return m
}

// NewQuickMachine is like [NewMachine], with programs that never have the race detector in them: for tests that
// start a daemon many times, and have no races to find.
func NewQuickMachine(t testing.TB, config string) *Machine {
	t.Helper()
	return newMachine(t, config, build{})
}

func newMachine(t testing.TB, config string, b build) *Machine {
	t.Helper()
	bin, err := builds.programs(b)
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "twl") // the path of a socket holds about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{
		Home: home, State: filepath.Join(home, ".toolward"), Workspace: filepath.Join(home, "project"),
		t: t, bin: bin, log: &Output{},
	}
	t.Cleanup(m.remove)
	for _, dir := range []string{m.State, m.Workspace} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	Unsandboxed(t, m.State)
	if config != "" {
		m.Configure(config)
	}
	return m
}

// Unsandboxed makes a home one whose first start has found no engine, so that a test means the same on every machine:
// commands run where the gateway does, unless the configuration says otherwise.
func Unsandboxed(t testing.TB, stateDir string) {
	t.Helper()
	kept, err := json.Marshal(fleet.Machine{Instance: rand.Text(), Mode: settings.ModeOff, Why: "a test", Decided: time.Unix(0, 0)})
	file := decisionFile(stateDir)
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, kept, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Undecided takes back [Unsandboxed]: the next start is the first, and finds out.
func (m *Machine) Undecided() {
	m.t.Helper()
	if err := os.Remove(decisionFile(m.State)); err != nil {
		m.t.Fatal(err)
	}
}

func decisionFile(stateDir string) string { return filepath.Join(stateDir, "sandbox", "machine.json") }

func (m *Machine) remove() {
	m.Kill()
	log := m.log.String()
	if strings.Contains(log, "DATA RACE") {
		m.t.Errorf("the daemon has a data race")
	}
	if m.t.Failed() {
		m.t.Logf("the daemon said:\n%s", log)
	}
	if err := os.RemoveAll(m.Home); err != nil {
		m.t.Error(err)
	}
}

// Pid is the process id of the daemon.
func (m *Machine) Pid() int { return m.daemon.Process.Pid }

// Configure writes the configuration file.
func (m *Machine) Configure(text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.State, "toolward.jsonc"), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// Program is the path of one of the built programs.
func (m *Machine) Program(name string) string { return filepath.Join(m.bin, name) }

// Socket is the path of the local socket.
func (m *Machine) Socket() string { return filepath.Join(m.State, "toolward.sock") }

// Log is what the daemons of this machine have said on standard error.
func (m *Machine) Log() string { return m.log.String() }

// Environment is that of the person's processes.
func (m *Machine) Environment() []string {
	return append([]string{
		"HOME=" + m.Home, "TOOLWARD_HOME=" + m.State, "PATH=" + m.bin + ":" + os.Getenv("PATH"),
		"TERM=dumb", "NO_COLOR=1", "LANG=C.UTF-8", "SHELL=/bin/bash",
		"GORACE=atexit_sleep_ms=0", // each hook with the race detector in it would wait a second at its end
	}, m.Extra...)
}

// Command is a command of the person's, in the workspace and without a terminal.
func (m *Machine) Command(name string, arguments ...string) *exec.Cmd {
	if name == "toolward" || name == "toolward-hook" {
		name = m.Program(name)
	}
	command := exec.Command(name, arguments...)
	command.Env, command.Dir, command.SysProcAttr = m.Environment(), m.Workspace, &syscall.SysProcAttr{}
	endsWithUs(command)
	return command
}

// Run runs a command of Toolward without a terminal, as an agent could, and returns all that it printed and its exit
// code. After a minute it is killed.
func (m *Machine) Run(arguments ...string) (output string, status int) {
	m.t.Helper()
	command := m.Command("toolward", arguments...)
	late := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
	defer late.Stop()
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatalf("toolward %s: %v", strings.Join(arguments, " "), err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// Start starts the daemon and waits until it serves. Its first start sets the passphrase.
func (m *Machine) Start() {
	m.t.Helper()
	if err := m.TryStart(); err != nil {
		m.t.Fatal(err)
	}
}

// TryStart is like [Machine.Start], but returns why the daemon did not start.
func (m *Machine) TryStart() error {
	arguments := []string{"up", "--listen", cmp.Or(m.Listen, "127.0.0.1:0")}
	if !m.isSetUp {
		arguments = append(arguments, "--passphrase-stdin")
	}
	command := m.Command("toolward", arguments...)
	if !m.isSetUp {
		command.Stdin = strings.NewReader(Passphrase + "\n")
	}
	before := len(m.log.String())
	command.Stderr = m.log
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	m.daemon, m.ended = command, make(chan struct{})
	line, err := bufio.NewReader(out).ReadString('\n')
	go func(ended chan struct{}) {
		_, _ = io.Copy(io.Discard, out)
		_ = command.Wait() // how it ended is told by ProcessState
		close(ended)
	}(m.ended)
	_, address, up := strings.Cut(strings.TrimSpace(line), "Toolward is up: ")
	if err != nil || !up {
		<-m.ended
		return fmt.Errorf("the daemon did not start (%v): %s%s", command.ProcessState, line, m.log.String()[before:])
	}
	m.URL = address
	return m.awaitSetUp()
}

// awaitSetUp waits until a passphrase is set, so that people can sign in.
func (m *Machine) awaitSetUp() error {
	client := m.Client()
	defer client.CloseIdleConnections()
	for {
		select {
		case <-m.ended:
			return fmt.Errorf("the daemon has ended: %v\n%s", m.daemon.ProcessState, m.log)
		case <-time.After(5 * time.Millisecond):
		}
		response, err := client.Get("http://toolward/v1/status")
		if err != nil {
			continue // the socket is not there yet
		}
		var status struct{ Setup bool }
		err = json.NewDecoder(response.Body).Decode(&status)
		_ = response.Body.Close()
		if err == nil && !status.Setup {
			m.isSetUp = true
			return nil
		}
	}
}

// Client talks to the daemon over its socket as any process of the person's could.
func (m *Machine) Client() *http.Client {
	return &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", m.Socket())
			},
		},
	}
}

// Stop asks the daemon to end, waits for it and returns its exit code.
func (m *Machine) Stop() int {
	m.t.Helper()
	if m.daemon == nil {
		m.t.Fatal("there is no daemon to stop")
	}
	_ = m.daemon.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-m.ended:
	case <-time.After(20 * time.Second):
		_ = m.daemon.Process.Signal(syscall.SIGQUIT) // its goroutines in the log
		<-m.ended
		m.t.Error("the daemon did not end when asked to")
	}
	code := m.daemon.ProcessState.ExitCode()
	m.daemon = nil
	return code
}

// Kill ends the daemon with kill -9, at whatever it is doing. Without a daemon it does nothing.
func (m *Machine) Kill() {
	if m.daemon == nil {
		return
	}
	_ = m.daemon.Process.Kill()
	<-m.ended
	m.daemon = nil
}

// Restart stops the daemon as a person would, and starts another.
func (m *Machine) Restart() {
	m.t.Helper()
	m.Stop()
	m.Start()
}

// builds are the programs, built once for all tests of this process.
var builds buildCache

type buildCache struct {
	mu   sync.Mutex
	dirs map[build]string
}

// build is a way to build the programs.
type build struct {
	race bool
	tags string
}

// ProgramsVariable names a directory with the programs for tests that cannot build them: those of another user, or of a
// machine without Go.
const ProgramsVariable = "TOOLWARD_LIVE_PROGRAMS"

// programs returns a directory with the programs of a release.
func (b *buildCache) programs(how build) (string, error) {
	if dir := os.Getenv(ProgramsVariable); dir != "" {
		return dir, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if dir := b.dirs[how]; dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "toolward-programs")
	if err != nil {
		return "", err
	}
	if err := buildPrograms(dir, how); err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	if b.dirs == nil {
		b.dirs = map[build]string{}
	}
	b.dirs[how] = dir
	return dir, nil
}

func buildPrograms(dir string, how build) error {
	const commands = "github.com/toolward/toolward/cmd/"
	big := exec.Command("go", "build", "-o", dir, fmt.Sprintf("-race=%t", how.race), "-tags="+how.tags, commands+"toolward", commands+"toolward-hook")
	// Nothing else is in a sandbox, not even what the race detector needs; and toolward-run is to be quick.
	inside := exec.Command("go", "build", "-o", dir, commands+"toolward-inside", commands+"toolward-run")
	inside.Env = append(os.Environ(), "CGO_ENABLED=0")
	for _, build := range []*exec.Cmd{big, inside} {
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build the programs: %w\n%s", err, out)
		}
	}
	return os.Chmod(dir, 0o755) // other users start them, too
}

// RemovePrograms removes what was built for the tests of this process. It belongs at the end of TestMain.
func RemovePrograms() {
	builds.mu.Lock()
	defer builds.mu.Unlock()
	for _, dir := range builds.dirs {
		_ = os.RemoveAll(dir)
	}
	builds.dirs = nil
}

// raceDetector reports whether this test has the race detector in it.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// Output collects what programs write, while others read it.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the output.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String is everything written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
