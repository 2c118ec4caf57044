package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// A report never writes, never runs a program and never opens a socket, whatever stands in the transcripts: the kernel says so.
func TestReportTouchesNothing(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: apt-get install strace")
	}
	home := reportHome(t)
	program, trace := live.NewQuickMachine(t, "").Program("toolward"), filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-qq", "-e", "trace=%network,%process,%file,openat,creat,ftruncate,fallocate,fchmod,fchown", "-e", "signal=none", "-o", trace,
		program, "--home", filepath.Join(home, ".toolward"), "report")
	cmd.Dir = home
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "55 calls") {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, programs := 0, 0
	for in := bufio.NewScanner(f); in.Scan(); lines++ {
		switch line := in.Text(); {
		case strings.Contains(line, " execve("):
			programs++
		case strings.Contains(line, " socket(AF_UNIX,"), strings.Contains(line, `sun_path="/var/run/nscd/socket"`):
			// With cgo the C library asks here for the names of accounts, before it reads /etc/passwd.
		case changes.MatchString(line) && !strings.Contains(line, `"/dev/null"`):
			t.Error(line)
		}
	}
	if programs != 1 || lines < 100 {
		t.Errorf("%d programs, %d lines of the trace", programs, lines)
	}
}

// changes are system calls that write, run or connect.
var changes = regexp.MustCompile(`^\d+ +(?:socket|connect|bind|sendto|sendmsg|fork|vfork|execveat|rename\w*|unlink\w*|mkdir\w*|rmdir|link\w*|symlink\w*|chmod|fchmod\w*|chown|` +
	`lchown|fchown\w*|truncate|ftruncate|fallocate|creat|utime\w*|mknod\w*|setxattr)\(|O_WRONLY|O_RDWR|O_CREAT|O_TRUNC`)
