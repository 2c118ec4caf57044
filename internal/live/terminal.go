package live

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// Terminal is a real terminal with a real shell in it, and a person who types. A sign-in is bound to that shell.
type Terminal struct {
	t    testing.TB
	file *os.File

	mu      sync.Mutex
	seen    strings.Builder // what has been on the screen and was not looked at yet
	changed chan struct{}
	lines   int
}

// patience is how long a person looks at the screen.
const patience = 30 * time.Second

// OpenTerminal opens a terminal in the workspace.
func (m *Machine) OpenTerminal() *Terminal {
	m.t.Helper()
	shell := m.Command("bash", "--noprofile", "--norc", "--noediting", "-i")
	shell.Env = append(shell.Env, "PS1=", "PS2=", "PROMPT_COMMAND=", "HISTFILE=")
	shell.SysProcAttr = nil // pty makes the shell the leader of a session of its own
	file, err := startInTerminal(shell)
	if err != nil {
		m.t.Fatal(err)
	}
	p := &Terminal{t: m.t, file: file, changed: make(chan struct{}, 1)}
	var reading sync.WaitGroup
	m.t.Cleanup(func() {
		_ = file.Close() // hangs up: the shell passes it on to what it still runs
		reading.Wait()
		late := time.AfterFunc(2*time.Second, func() { _ = shell.Process.Kill() })
		_ = shell.Wait() // hung up or killed: that is no news
		late.Stop()
	})
	reading.Go(p.read)
	p.Type("stty -echo -onlcr")
	p.Run("true") // from here on there is nothing on the screen but what programs print
	return p
}

// startInTerminal starts a program in a new terminal. The file it returns can be closed while somebody reads it,
// unlike the one that pty makes.
func startInTerminal(program *exec.Cmd) (*os.File, error) {
	file, err := pty.StartWithSize(program, &pty.Winsize{Rows: 50, Cols: 400})
	if err != nil {
		return nil, fmt.Errorf("start a shell in a terminal: %w", err)
	}
	defer file.Close()
	again, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(again)
	if err := syscall.SetNonblock(again, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(again), "terminal"), nil
}

// SignedIn opens a terminal and signs the person in.
func (m *Machine) SignedIn() *Terminal {
	m.t.Helper()
	p := m.OpenTerminal()
	p.SignIn()
	return p
}

// SignIn signs the person in, by typing.
func (p *Terminal) SignIn() {
	p.t.Helper()
	p.Type("toolward login")
	p.See(`Passphrase: `)
	p.Type(Passphrase)
	p.See(`Signed in as .*\n`)
}

// Watch shows calls as they come, in the background: from then on the person is somebody who could answer.
func (p *Terminal) Watch() {
	p.t.Helper()
	p.Type(`seen=$(mktemp -p ~); toolward approvals watch --json > "$seen" & until [ -s "$seen" ]; do sleep 0.02; done; echo watching`)
	p.See(`watching\n`)
}

// Type types a line.
func (p *Terminal) Type(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.file, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// Run types a command that does not read what is typed, waits for its end, and returns what it printed and its exit
// code. A newline at the end is left out.
func (p *Terminal) Run(line string) (output string, status int) {
	p.t.Helper()
	p.lines++
	p.Type(line)
	p.Type(fmt.Sprintf(`printf '[%%s %d %%d]\n' end $?`, p.lines))
	groups := p.See(fmt.Sprintf(`(?s)^(.*?)\[end %d (\d+)\]\n`, p.lines))
	status, err := strconv.Atoi(groups[2])
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSuffix(groups[1], "\n"), status
}

// See waits until the pattern is on the screen and returns its groups. What stood before its end is forgotten.
func (p *Terminal) See(pattern string) []string {
	p.t.Helper()
	expression := regexp.MustCompile(pattern)
	for deadline := time.After(patience); ; {
		if groups := p.look(expression); groups != nil {
			return groups
		}
		select {
		case <-p.changed:
		case <-deadline:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("the person does not see %s in:\n%s", pattern, p.seen.String())
		}
	}
}

func (p *Terminal) look(expression *regexp.Regexp) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.seen.String()
	at := expression.FindStringSubmatchIndex(text)
	if at == nil {
		return nil
	}
	groups := expression.FindStringSubmatch(text)
	p.seen.Reset()
	p.seen.WriteString(text[at[1]:])
	return groups
}

func (p *Terminal) read() {
	for chunk := make([]byte, 4096); ; {
		n, err := p.file.Read(chunk)
		p.mu.Lock()
		p.seen.WriteString(strings.ReplaceAll(string(chunk[:n]), "\r", ""))
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}
