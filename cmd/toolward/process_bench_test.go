package main

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
)

// runningDaemon is the real program in a process of its own.
type runningDaemon struct {
	home, workspace string
	process         *os.Process
	url             string
	programs        string
}

// startDaemon builds and starts "toolward up" with a passphrase, and waits until its doors are open.
func startDaemon(b *testing.B) *runningDaemon {
	b.Helper()
	// Built before the home changes: the build cache is in the real one.
	programs := buildPrograms(b, ".", "../toolward-hook", "./testdata/baremcp", "./testdata/empty")
	home := benchHome(b)
	d := &runningDaemon{home: home, workspace: filepath.Join(home, "project"), programs: programs}
	up := exec.Command(d.program("toolward"), "up", "--passphrase-stdin", "--listen", "127.0.0.1:0")
	up.Env, up.Stdin = d.environment(), strings.NewReader(benchPassphrase+"\n")
	var log bytes.Buffer
	up.Stderr = &log
	out, err := up.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := up.Start(); err != nil {
		b.Fatal(err)
	}
	d.process = up.Process
	b.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM)
		_ = up.Wait()
		if b.Failed() {
			b.Log(log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, url, found := strings.Cut(strings.TrimSpace(line), "Toolward is up: "); found {
		d.url = url
	} else {
		b.Fatalf("the daemon did not start: %q %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return d
}

func (d *runningDaemon) program(name string) string { return filepath.Join(d.programs, name) }

// environment is that of a process of the daemon's user.
func (d *runningDaemon) environment() []string {
	return []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH")}
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
