package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// A program of the gateway's own user reads neither the variables that it was started with, nor its open files, nor its memory.
func TestTheDaemonIsHiddenFromItsUser(t *testing.T) {
	dir, err := os.MkdirTemp("", "toolward-hidden-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	asUser := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 { // nothing is hidden from root
		asUser.Credential = &syscall.Credential{Uid: 12345, Gid: 12345}
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(live.NewQuickMachine(t, "").Program("toolward"))
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "toolward")
	if err := os.WriteFile(at, program, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "SHELL_API_KEY=sk-of-the-shell"}, asUser
		return cmd
	}
	daemon := run(at, "up", "--listen", "127.0.0.1:0", "--passphrase-stdin")
	daemon.Stdin = strings.NewReader(live.Passphrase + "\n")
	left, err := os.Create(filepath.Join(dir, "left open"))
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	daemon.ExtraFiles = []*os.File{left, left, left}
	out, err := daemon.StdoutPipe()
	if err == nil {
		err = daemon.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "Toolward is up") {
		t.Fatalf("%q, %v", line, err)
	}
	entry := "/proc/" + strconv.Itoa(daemon.Process.Pid)
	for _, command := range []string{
		"cat " + entry + "/environ", "ls -l " + entry + "/fd", "cat " + entry + "/maps", "head -c 1 " + entry + "/mem", "ls " + entry + "/cwd/", "readlink " + entry + "/exe",
		"cat " + entry + "/task/*/environ", "cat " + entry + "/auxv",
	} {
		out, err := run("sh", "-c", command).CombinedOutput()
		if err == nil || strings.Contains(string(out), "sk-of-the-shell") {
			t.Errorf("%s: %q, %v", command, out, err)
		}
	}
	if os.Getuid() == 0 {
		if out, err := exec.Command("ls", "-l", entry+"/fd").CombinedOutput(); err != nil || strings.Contains(string(out), "left open") {
			t.Errorf("what was left open in it: %s, %v", out, err)
		}
	}
	if out, err := run("cat", "/proc/self/environ").CombinedOutput(); err != nil || !strings.Contains(string(out), "SHELL_API_KEY") {
		t.Errorf("this test sees nothing at all: %q, %v", out, err)
	}
}
