package gateway

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward/identity"
)

const benchPassphrase = "correct horse battery staple"

// runningDaemon is the real program in a process of its own.
type runningDaemon struct {
	home, workspace string
	programs        string // directory of the built programs
	url             string
	token           string // of the agent coder, for HTTP
	process         *os.Process
}

// startDaemon builds the programs and starts "toolward up" on a home in which a passphrase is set and an agent has a
// token. It returns when the doors are open.
func startDaemon(b *testing.B) *runningDaemon {
	b.Helper()
	// Built before the home changes: the build cache is in the real one.
	d := &runningDaemon{programs: buildPrograms(b, "../cmd/toolward", "../cmd/toolward-hook", "./testdata/baremcp")}
	d.home, d.token = furnishedHome(b)
	d.workspace = filepath.Join(d.home, "project")
	up := d.command("toolward", "up", "--passphrase-stdin", "--listen", "127.0.0.1:0")
	up.Stdin = strings.NewReader(benchPassphrase + "\n")
	line := d.run(b, up)
	d.process = up.Process
	_, url, found := strings.Cut(line, "Toolward is up: ")
	if !found {
		b.Fatalf("the gateway did not start: %q", line)
	}
	d.url = url
	return d
}

// furnishedHome is a home as a person leaves it after the first start.
func furnishedHome(b *testing.B) (home, token string) {
	b.Helper()
	d := openDaemon(b)
	defer d.Close()
	if err := d.people.SetUp(b.Context(), "bench", d.people.SetupCode(), benchPassphrase); err != nil {
		b.Fatal(err)
	}
	person, err := d.people.SignInForeground(b.Context(), benchPassphrase)
	if err != nil {
		b.Fatal(err)
	}
	token, _, err = d.people.CreateToken(b.Context(), person, identity.TokenSpec{Agent: "coder", Workspace: d.benchWorkspace()}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return filepath.Dir(d.home), token
}

func (d *runningDaemon) program(name string) string { return filepath.Join(d.programs, name) }

// command is a program of the gateway's user.
func (d *runningDaemon) command(name string, arguments ...string) *exec.Cmd {
	command := exec.Command(d.program(name), arguments...)
	command.Env = []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH")}
	return command
}

// start starts a program and returns the first line that it prints.
func (d *runningDaemon) start(b *testing.B, name string, arguments ...string) string {
	b.Helper()
	return d.run(b, d.command(name, arguments...))
}

// run starts a command, which ends with the benchmark, and returns the first line that it prints.
func (d *runningDaemon) run(b *testing.B, command *exec.Cmd) string {
	b.Helper()
	var log bytes.Buffer
	command.Stderr = &log
	out, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	drained := make(chan struct{})
	b.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		<-drained
		_ = command.Wait()
		if b.Failed() {
			b.Log(log.String())
		}
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
	if err != nil {
		b.Fatalf("%s ended before it was ready: %v\n%s", command.Path, err, &log)
	}
	return strings.TrimSpace(line)
}

// buildPrograms builds programs of this repository as a release does, and returns their directory.
func buildPrograms(b *testing.B, directories ...string) string {
	b.Helper()
	target := b.TempDir()
	build := exec.Command("go", append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", target}, directories...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build %v: %v\n%s", directories, err, out)
	}
	return target
}
