package live

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Pane is a terminal that programs can draw on, with a real shell in it: tmux keeps what its screen shows.
type Pane struct {
	t      testing.TB
	m      *Machine
	tmux   string
	socket string
}

// OpenPane opens a terminal of so many columns and rows in the workspace. It needs tmux.
func (m *Machine) OpenPane(columns, rows int) *Pane {
	m.t.Helper()
	p := &Pane{t: m.t, m: m, tmux: Need(m.t, Program("tmux")), socket: filepath.Join(m.Home, "tmux")}
	// In the foreground the server ends with this test program, however that ends.
	server := m.Command(p.tmux, "-S", p.socket, "-f", "/dev/null", "-D")
	server.Env = append(server.Env, "HISTFILE=") // a shell that is hung up writes it, while the home is being removed
	if err := server.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = server.Process.Kill() // its terminals hang up, and end what runs in them
		_ = server.Wait()         // killed: that is no news
	})
	size := []string{"-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows)}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		out, err := p.command(append([]string{"new-session", "-d"}, append(size, "bash --noprofile --norc -i")...)...).CombinedOutput()
		if err == nil {
			return p
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("tmux: %v\n%s", err, out)
		}
	}
}

// command is one for the server that runs. Without -N it would start another where that does not listen yet, which nobody ends.
func (p *Pane) command(arguments ...string) *exec.Cmd {
	return p.m.Command(p.tmux, append([]string{"-N", "-S", p.socket}, arguments...)...)
}

func (p *Pane) run(arguments ...string) string {
	p.t.Helper()
	out, err := p.command(arguments...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %s: %v\n%s", arguments[0], err, out)
	}
	return string(out)
}

// Press presses keys, by the names that tmux has for them.
func (p *Pane) Press(keys ...string) {
	p.t.Helper()
	p.run(append([]string{"send-keys"}, keys...)...)
}

// Type types a text.
func (p *Pane) Type(text string) {
	p.t.Helper()
	p.run("send-keys", "-l", text)
}

// Resize gives the terminal another size.
func (p *Pane) Resize(columns, rows int) {
	p.t.Helper()
	p.run("resize-window", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows))
}

// Screen is what the screen shows, row by row; with its escape sequences if raw.
func (p *Pane) Screen(raw bool) string {
	p.t.Helper()
	if raw {
		return p.run("capture-pane", "-p", "-e")
	}
	return p.run("capture-pane", "-p")
}

// See waits until all of these texts are on the screen, and returns it.
func (p *Pane) See(texts ...string) string {
	p.t.Helper()
	return p.await(func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	}, "does not show "+strings.Join(texts, " and "))
}

// Lose waits until a text is not on the screen any more.
func (p *Pane) Lose(text string) string {
	p.t.Helper()
	return p.await(func(screen string) bool { return !strings.Contains(screen, text) }, "still shows "+text)
}

func (p *Pane) await(good func(screen string) bool, fault string) string {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		screen := p.Screen(false)
		if good(screen) {
			return screen
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the screen %s:\n%s", fault, screen)
		}
	}
}
