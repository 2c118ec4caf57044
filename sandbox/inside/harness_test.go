//go:build linux

package inside_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// patience bounds every wait: what takes longer hangs.
const patience = 60 * time.Second

// box is the real program with no sandbox around it, on a temporary directory.
type box struct {
	testing.TB
	*inside.Client
	dir     string // the real path of the workspace
	program *exec.Cmd
	ended   chan struct{}
	setup   inside.Setup
}

// newBox starts the program. change may change its set-up.
func newBox(t testing.TB, change ...func(*inside.Setup)) *box {
	t.Helper()
	b := &box{TB: t, dir: realDir(t), ended: make(chan struct{})}
	b.setup = inside.Setup{
		Mounts:  []sandbox.Mount{{Target: b.dir, Writable: true}},
		Workdir: b.dir, Env: []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"},
	}
	for _, c := range change {
		c(&b.setup)
	}
	stream := b.start()
	client, err := inside.Connect(b.context(), stream, b.setup)
	if err != nil {
		t.Fatal(err)
	}
	b.Client = client
	t.Cleanup(b.end)
	return b
}

func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// start starts the program with a socket as its standard input.
func (b *box) start() io.ReadWriteCloser {
	b.Helper()
	program, err := inside.FindProgram(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		b.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	b.program = exec.Command(program.Path, append(program.Args, inside.Serve)...)
	b.program.Stdin, b.program.Stderr, b.program.Dir = theirs, os.Stderr, "/"
	b.program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.program.Start(); err != nil {
		b.Fatal(err)
	}
	theirs.Close()
	go func() {
		b.program.Wait()
		close(b.ended)
	}()
	return ours
}

// end hangs up and sees to it that nothing is left.
func (b *box) end() {
	b.Client.Close()
	select {
	case <-b.ended:
	case <-time.After(patience):
		b.program.Process.Kill()
		b.Error("the program inside did not end")
	}
}

func (b *box) context() context.Context {
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	b.Cleanup(cancel)
	return ctx
}

func (b *box) path(name string) string { return filepath.Join(b.dir, name) }

func (b *box) put(name, content string) string {
	b.Helper()
	must(b, os.MkdirAll(filepath.Dir(b.path(name)), 0o755))
	must(b, os.WriteFile(b.path(name), []byte(content), 0o644))
	return b.path(name)
}

func (b *box) content(name string) string {
	b.Helper()
	content, err := os.ReadFile(b.path(name))
	must(b, err)
	return string(content)
}

// result is what a command did.
type result struct {
	sandbox.ExitStatus
	out, err string
}

// do runs a command to its end.
func (b *box) do(c sandbox.Command) result {
	b.Helper()
	p, err := b.Start(b.context(), c)
	must(b, err)
	return b.finish(p)
}

func (b *box) finish(p sandbox.Process) result {
	b.Helper()
	errors := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(p.Stderr())
		errors <- string(text)
	}()
	out, err := io.ReadAll(p.Stdout())
	must(b, err)
	status, err := p.Wait(b.context())
	must(b, err)
	return result{status, string(out), <-errors}
}

func (b *box) shell(text string) result {
	b.Helper()
	return b.do(sandbox.Command{Shell: text})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantCode fails unless the error has a code.
func wantCode(t testing.TB, what string, err error, code sandbox.Code) {
	t.Helper()
	if sandbox.CodeOf(err) != code {
		t.Errorf("%s: %v, which is %q and not %q", what, err, sandbox.CodeOf(err), code)
	}
}

// eventually waits for something that another process does.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in %v", what, patience)
		}
	}
}

// alive reports whether a process has not ended.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/stat")
	if err != nil {
		return false
	}
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	return !strings.HasPrefix(rest, " Z")
}
