// Package otheruser is another user's program for tests: it listens at a socket in the place of the daemon, and shows what it
// was sent.
package otheruser

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// UID is the user: nobody's, and not that of any test.
const UID = 64123

const variable = "TOOLWARD_TEST_OTHER_USER_LISTENS_AT"

// init makes a test binary that was started by Listen the other user's program.
func init() {
	path := os.Getenv(variable)
	if path == "" {
		return
	}
	listener, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("uid " + strconv.Itoa(os.Getuid()))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test has gone
		os.Exit(0)
	}()
	for {
		conn, err := listener.Accept()
		if err != nil {
			os.Exit(1)
		}
		data, _ := io.ReadAll(io.LimitReader(conn, 1)) // one byte is one too many
		fmt.Printf("was sent %d\n", len(data))
		_ = conn.Close()
	}
}

// Listen has a process of another user listen at a path, whose directory that user must be able to write. What it returns
// waits for the next connection to end and says how many bytes came, at most one.
func Listen(t *testing.T, path string) (sent func() string) {
	t.Helper()
	if os.Geteuid() != 0 {
		if live.All() {
			t.Fatal("TOOLWARD_LIVE=all, but only root can start another user's program")
		}
		t.Skip("only root can start another user's program")
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	c := exec.Command("/proc/self/fd/3") // the directory of a test binary is its user's alone
	c.Dir, c.Env, c.ExtraFiles = "/", []string{variable + "=" + path}, []*os.File{self}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: UID, Gid: UID}}
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = c.Wait()
	})
	line := func() string {
		var text bytes.Buffer
		for b := make([]byte, 1); ; text.WriteByte(b[0]) {
			if _, err := said.Read(b); err != nil || b[0] == '\n' {
				return text.String()
			}
		}
	}
	if got := line(); got != "uid "+strconv.Itoa(UID) {
		t.Fatalf("the other user's program: %s", got)
	}
	return line
}
