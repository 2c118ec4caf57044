package live_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/client/local"
)

const intruderVariable = "TOOLWARD_TEST_SYSTEM_INTRUDER"

// init makes this program one of an agent's, which tries what SECURITY.md says that a program of the gateway's own user could.
func init() {
	text, ok := os.LookupEnv(intruderVariable)
	if !ok {
		return
	}
	words := strings.Fields(text)
	pid, err := strconv.Atoi(words[0])
	if err != nil || os.Getuid() != 64200 {
		fmt.Println("not as the agent's user")
		os.Exit(1)
	}
	for _, tries := range []map[string]func() error{
		tryFiles(words[1:]), tryMachine(), tryProcess(pid), tryDoors(),
	} {
		for name, try := range tries {
			if err := try(); err != nil {
				fmt.Println("refused: "+name+":", err)
			} else {
				fmt.Println("DONE: " + name)
			}
		}
	}
	os.Exit(0)
}

// tryFiles reads, changes and rewinds the state: the database with its passphrase hash, passkeys, grants and tokens, authority.json,
// keys, configuration and record.
func tryFiles(files []string) map[string]func() error {
	tries := map[string]func() error{
		"list the state":    func() error { _, err := os.ReadDir("/var/lib/toolward"); return err },
		"open the state":    func() error { return os.Chmod("/var/lib/toolward", 0o777) },
		"own the state":     func() error { return os.Chown("/var/lib/toolward", 64200, 64200) },
		"move the state":    func() error { return os.Rename("/var/lib/toolward", "/var/lib/old") },
		"add to the state":  func() error { return os.WriteFile("/var/lib/toolward/exec-approvals.json", []byte("{}"), 0o600) },
		"configure":         func() error { return os.WriteFile("/var/lib/toolward/toolward.jsonc", []byte("{}"), 0o600) },
		"enter by a link":   func() error { return throughLink("/var/lib/toolward/toolward.db") },
		"own what was made": func() error { return os.WriteFile("/var/lib/toolward-install/system.json", nil, 0o600) },
		"turn the clock":    func() error { return unix.Settimeofday(&unix.Timeval{Sec: 1}) },
		"cover it (mount)":  func() error { return unix.Mount("none", "/var/lib/toolward", "tmpfs", 0, "") },
		"cover it (chroot)": func() error { return unix.Chroot("/home/alice") },
		"become its user":   func() error { return unix.Setuid(999) },
		"become its group":  func() error { return unix.Setgid(999) },
		"become root":       func() error { return unix.Setuid(0) },
		"take its rights": func() error {
			return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_DAC_READ_SEARCH, 0, 0)
		},
		"start it by itself": startItself,
	}
	for _, file := range files {
		tries["read "+file] = func() error { _, err := os.ReadFile(file); return err }
		tries["write "+file] = func() error { _, err := os.OpenFile(file, os.O_WRONLY, 0); return err }
		tries["remove "+file] = func() error { return os.Remove(file) }
		tries["put an old one beside "+file] = func() error { return os.WriteFile(file+".old", nil, 0o600) }
		tries["keep a name of "+file] = func() error { return os.Link(file, "/home/alice/kept") }
	}
	return tries
}

// throughLink reads through a link of the agent's.
func throughLink(path string) error {
	const link = "/home/alice/link"
	if err := os.Symlink(path, link); err != nil {
		return nil // it must be possible, or this tries nothing
	}
	_, err := os.ReadFile(link)
	return err
}

// startItself starts the gateway's own program in the agent's name.
func startItself() error {
	child, err := os.StartProcess("/usr/local/sbin/toolward", []string{"toolward", "--home", "/home/alice/own", "up", "--for", "alice"}, &os.ProcAttr{})
	if err != nil {
		return err
	}
	state, err := child.Wait()
	if err == nil && !state.Success() {
		err = errors.New(state.String())
	}
	return err
}

// tryMachine changes what root has installed.
func tryMachine() map[string]func() error {
	tries := map[string]func() error{
		"listen in the daemon's place": func() error { _, err := net.Listen("unix", "/run/toolward/other.sock"); return err },
		"listen at its port":           func() error { _, err := net.Listen("tcp", "127.0.0.1:7411"); return err },
		"listen at localhost":          func() error { _, err := net.Listen("tcp", "[::1]:7411"); return err },
		"add a user":                   func() error { _, err := os.OpenFile("/etc/passwd", os.O_WRONLY|os.O_APPEND, 0); return err },
		"add managed settings":         func() error { return os.MkdirAll("/etc/claude-code", 0o755) },
		"add programs":                 func() error { return os.MkdirAll("/usr/local/libexec/toolward", 0o755) },
	}
	for _, file := range []string{"/etc/toolward/daemon", "/usr/local/sbin/toolward", "/etc/systemd/system/toolward.service", "/var/lib/toolward-install/system.json"} {
		tries["write "+file] = func() error { _, err := os.OpenFile(file, os.O_WRONLY, 0); return err }
	}
	for _, path := range []string{
		"/run/toolward", "/run/toolward/toolward.sock", "/etc/toolward", "/etc/toolward/daemon", "/usr/local/sbin/toolward",
		"/etc/systemd/system/toolward.service", "/var/lib/toolward-install/system.json",
	} {
		tries["move "+path] = func() error { return os.Rename(path, path+".old") }
		tries["put another beside "+path] = func() error { return os.WriteFile(path+".new", nil, 0o755) }
		tries["remove "+path] = func() error { return os.RemoveAll(path) }
		tries["own "+path] = func() error { return os.Chmod(path, 0o777) }
	}
	return tries
}

// tryProcess looks into the daemon, changes it and ends it.
func tryProcess(pid int) map[string]func() error {
	proc := "/proc/" + strconv.Itoa(pid)
	tries := map[string]func() error{
		"attach a debugger": func() error { return syscall.PtraceAttach(pid) },
		"seize":             func() error { return ptraceSeize(pid) },
		"read its memory":   func() error { return readMemory(pid) },
		"take its files":    func() error { return takeFile(pid) },
		"limit it": func() error {
			return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil)
		},
		"slow it": func() error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) },
		"list its files": func() error {
			_, err := os.ReadDir(proc + "/fd")
			return err
		},
		"have it killed first": func() error { return os.WriteFile(proc+"/oom_score_adj", []byte("1000"), 0) },
		"dump its core":        func() error { return syscall.Kill(pid, syscall.SIGABRT) },
	}
	for _, name := range []string{"environ", "mem", "maps", "auxv", "syscall", "stack", "io", "pagemap"} {
		tries["read "+name] = func() error { return readSome(proc + "/" + name) }
	}
	for _, name := range []string{"root", "cwd", "exe"} {
		tries["follow "+name] = func() error { _, err := os.Stat(proc + "/" + name + "/"); return err }
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGQUIT, syscall.SIGHUP} {
		tries["send it "+signal.String()] = func() error { return syscall.Kill(pid, signal) }
	}
	return tries
}

func readSome(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Read(make([]byte, 16))
	return err
}

func ptraceSeize(pid int) error {
	const seize = 0x4206
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, seize, uintptr(pid), 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func readMemory(pid int) error {
	into := make([]byte, 8)
	here := []unix.Iovec{{Base: &into[0], Len: 8}}
	there := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&into[0])), Len: 8}}
	_, err := unix.ProcessVMReadv(pid, here, there, 0)
	return err
}

func takeFile(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(fd, 3, 0)
	return err
}

// tryDoors asks the gateway for what only a person may, at the socket and at the console.
func tryDoors() map[string]func() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	_ = cancel // it ends with this program
	g := local.At("/home/alice/own")
	only := func(_ any, err error) error { return err }
	tries := map[string]func() error{
		"answer":                func() error { return only(g.Answer(ctx, "a1", local.Answer{Decision: "allow-once"})) },
		"see what waits":        func() error { return only(g.Waiting(ctx)) },
		"read the record":       func() error { return only(g.Decisions(ctx, 5)) },
		"read the tokens":       func() error { return only(g.Tokens(ctx)) },
		"make a token":          func() error { return only(g.CreateToken(ctx, local.NewToken{})) },
		"allow a program":       func() error { return only(g.AllowProgram(ctx, local.AllowlistEntry{Pattern: "/usr/bin/rm"})) },
		"pair a device":         func() error { return only(g.ApproveDevice(ctx, "d1")) },
		"apply configuration":   func() error { return g.ApplyConfig(ctx, "r1") },
		"calm a session":        func() error { return only(g.ClearLevel(ctx, "agent:claude-code:hook:claude-code:s1", "")) },
		"sign a terminal in":    func() error { return only(g.SignIn(ctx, "guess")) },
		"set the passphrase up": func() error { return only(g.SetUp(ctx, "AAAAA-AAAAA", "a passphrase of the agent's")) },
	}
	for _, path := range []string{"/passkeys", "/passkeys/new", "/approvals/a1", "/tokens", "/passphrase", "/config", "/v1/approvals/a1", "/setup", "/sign-in"} {
		tries["post "+path] = func() error {
			response, err := http.PostForm("http://127.0.0.1:7411"+path, url.Values{"passphrase": {"guess"}, "again": {"guess"}, "code": {"AAAAA-AAAAA"}, "decision": {"allow-once"}})
			if err == nil && response.StatusCode >= 400 {
				err = errors.New(response.Status)
			}
			return err
		}
	}
	return tries
}
