package live_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/toolward/toolward/internal/live"
)

// programs is a directory with the real toolward and toolward-hook, built once for all tests.
var programs = sync.OnceValues(func() (string, error) {
	cache, err := live.CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir, "github.com/toolward/toolward/cmd/toolward", "github.com/toolward/toolward/cmd/toolward-hook").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return dir, nil
})

const passphrase = "correct horse battery staple"

// machine is a throw-away home of one person, with a running Toolward.
type machine struct {
	t         testing.TB
	home      string // the person's
	state     string // Toolward's
	workspace string
	bin       string
	daemon    *exec.Cmd
	log       *bytes.Buffer
}

// newMachine makes a home with this configuration and starts the daemon.
func newMachine(t testing.TB, config string) *machine {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "twl") // short: socket paths hold about 100 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	m := &machine{t: t, home: home, state: filepath.Join(home, ".toolward"), workspace: filepath.Join(home, "project"), bin: bin}
	for _, dir := range []string{m.state, m.workspace} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if config != "" {
		if err := os.WriteFile(filepath.Join(m.state, "toolward.jsonc"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m.up()
	return m
}

// environment is that of a process of the person.
func (m *machine) environment() []string {
	return []string{
		"HOME=" + m.home, "TOOLWARD_HOME=" + m.state, "PATH=" + m.bin + ":" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "PS1=$ ",
	}
}

// up starts the daemon and waits until it is ready.
func (m *machine) up() {
	m.t.Helper()
	m.daemon = exec.Command(filepath.Join(m.bin, "toolward"), "up", "--passphrase-stdin", "--listen", "127.0.0.1:0")
	m.daemon.Env = m.environment()
	m.daemon.Stdin = strings.NewReader(passphrase + "\n")
	m.log = &bytes.Buffer{}
	m.daemon.Stderr = m.log
	out, err := m.daemon.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.daemon.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { m.kill(syscall.SIGTERM) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "Toolward is up") {
		m.t.Fatalf("the daemon did not start: %v %q\n%s", err, line, m.log)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	m.run("doctor") // waits for the socket; before the installation nothing fails but what is checked later
}

// kill ends the daemon.
func (m *machine) kill(signal syscall.Signal) {
	if m.daemon != nil {
		_ = m.daemon.Process.Signal(signal)
		_ = m.daemon.Wait()
		m.daemon = nil
	}
}

// run runs a command of Toolward without a terminal, as an agent could.
func (m *machine) run(arguments ...string) (output string, status int) {
	m.t.Helper()
	command := exec.CommandContext(m.t.Context(), filepath.Join(m.bin, "toolward"), arguments...)
	command.Env, command.Dir = m.environment(), m.workspace
	out, _ := command.CombinedOutput()
	return string(out), command.ProcessState.ExitCode()
}

// person is somebody at a terminal of their own, signed in.
type person struct {
	t        testing.TB
	terminal *os.File

	mu     sync.Mutex
	seen   strings.Builder
	change chan struct{}
}

// sitDown opens a terminal with an interactive shell and signs in.
func (m *machine) sitDown() *person {
	m.t.Helper()
	shell := exec.Command("bash", "--noprofile", "--norc", "-i")
	shell.Env, shell.Dir = m.environment(), m.home
	terminal, err := pty.StartWithSize(shell, &pty.Winsize{Rows: 50, Cols: 400})
	if err != nil {
		m.t.Fatal(err)
	}
	p := &person{t: m.t, terminal: terminal, change: make(chan struct{}, 1)}
	m.t.Cleanup(func() {
		_ = shell.Process.Kill()
		_ = shell.Wait()
		terminal.Close()
	})
	go p.read()
	for {
		p.types("toolward login")
		p.sees(`Passphrase: `)
		p.types(passphrase)
		if p.sees(`Signed in as|no passphrase has been set`)[0] == "Signed in as" {
			return p
		}
		time.Sleep(100 * time.Millisecond) // a daemon that has just started still derives the key
	}
}

func (p *person) read() {
	buf := make([]byte, 4096)
	for {
		n, err := p.terminal.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.change <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *person) types(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.terminal, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits until the pattern is on the terminal and returns its groups. What was before the match is forgotten.
func (p *person) sees(pattern string) []string {
	p.t.Helper()
	deadline := time.After(20 * time.Second)
	for expression := regexp.MustCompile(pattern); ; {
		p.mu.Lock()
		text := p.seen.String()
		if at := expression.FindStringSubmatchIndex(text); at != nil {
			groups := expression.FindStringSubmatch(text)
			p.seen.Reset()
			p.seen.WriteString(text[at[1]:])
			p.mu.Unlock()
			return groups
		}
		p.mu.Unlock()
		select {
		case <-p.change:
		case <-deadline:
			p.t.Fatalf("the person does not see %s in:\n%s", pattern, text)
		}
	}
}

// watches shows approvals as they come; whoever watches counts as somebody who can answer.
func (p *person) watches() {
	p.t.Helper()
	p.types("toolward approvals watch --json &")
	p.sees(`\[1\] \d+`)
}

// recorded is one line of the exported record.
type recorded struct {
	Type       string `json:"type"`
	Tool       string `json:"tool"`
	NativeName string `json:"nativeName"`
	Verdict    string `json:"verdict"`
	Status     string `json:"status"`
	CallID     string `json:"callId"`
}

// records reads the daemon's record, through the person.
func (p *person) records(path string) []recorded {
	p.t.Helper()
	p.types("toolward audit export > " + path + "; echo exported=$?")
	p.sees(`exported=0`)
	data, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	var all []recorded
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var r recorded
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Fatalf("%v: %s", err, line)
		}
		all = append(all, r)
	}
	return all
}
