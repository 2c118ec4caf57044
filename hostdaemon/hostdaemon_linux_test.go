package hostdaemon_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward/hostdaemon"
	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/internal/otheruser"
)

// rootsDirectory is a directory like /etc/toolward: root's alone, and so is all above it.
func rootsDirectory(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		if live.All() {
			t.Fatal("TOOLWARD_LIVE=all, but only root can make root's files")
		}
		t.Skip("only root can make root's files")
	}
	dir, err := os.MkdirTemp("/run", "toolward-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

const line = "uid 990 socket /run/toolward/toolward.sock\n"

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestTheMachinesDaemonIsWhatRootWrote(t *testing.T) {
	path := filepath.Join(rootsDirectory(t), "daemon")
	if _, ok, err := hostdaemon.Read(path); ok || err != nil {
		t.Errorf("without a file: %v, %v", ok, err)
	}
	if _, ok, err := hostdaemon.Read(filepath.Join(path, "none", "daemon")); ok || err != nil {
		t.Errorf("without its directory: %v, %v", ok, err)
	}
	must(t, os.WriteFile(path, []byte(line), 0o644))
	want := hostdaemon.Daemon{UID: 990, Socket: "/run/toolward/toolward.sock", System: true}
	if got, ok, err := hostdaemon.Read(path); got != want || !ok || err != nil {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
}

// TestWhatIsOddNamesNobody stops whoever could change, move or exchange the file from choosing the daemon.
func TestWhatIsOddNamesNobody(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string) (odd string){
		"link": func(t *testing.T, path string) string {
			must(t, os.Rename(path, path+"2"), os.Symlink(path+"2", path))
			return path
		},
		"dangling link": func(t *testing.T, path string) string {
			must(t, os.Remove(path), os.Symlink(path+"2", path))
			return path
		},
		"another's file": func(t *testing.T, path string) string { must(t, os.Chown(path, otheruser.UID, 0)); return path },
		"mode 0666":      func(t *testing.T, path string) string { must(t, os.Chmod(path, 0o666)); return path },
		"group writes":   func(t *testing.T, path string) string { must(t, os.Chmod(path, 0o664)); return path },
		"directory":      func(t *testing.T, path string) string { must(t, os.Remove(path), os.Mkdir(path, 0o755)); return path },
		"pipe": func(t *testing.T, path string) string {
			must(t, os.Remove(path), syscall.Mkfifo(path, 0o644))
			return path
		},
		"parent writable": func(t *testing.T, path string) string {
			must(t, os.Chmod(filepath.Dir(path), 0o777))
			return filepath.Dir(path)
		},
		"parent writable, sticky": func(t *testing.T, path string) string {
			must(t, os.Chmod(filepath.Dir(path), 0o777|os.ModeSticky))
			return filepath.Dir(path)
		},
		"parent writable, no file": func(t *testing.T, path string) string {
			must(t, os.Remove(path), os.Chmod(filepath.Dir(path), 0o775))
			return filepath.Dir(path)
		},
		"parent of another": func(t *testing.T, path string) string {
			must(t, os.Chown(filepath.Dir(path), otheruser.UID, 0))
			return filepath.Dir(path)
		},
		"grandparent of another": func(t *testing.T, path string) string {
			must(t, os.Chown(filepath.Dir(filepath.Dir(path)), otheruser.UID, 0))
			return filepath.Dir(filepath.Dir(path))
		},
		"parent is a link": func(t *testing.T, path string) string {
			dir := filepath.Dir(path)
			must(t, os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir))
			return dir
		},
		"parent is a dangling link": func(t *testing.T, path string) string {
			dir := filepath.Dir(path)
			must(t, os.RemoveAll(dir), os.Symlink(dir+"2", dir))
			return dir
		},
		"parent is a file": func(t *testing.T, path string) string {
			dir := filepath.Dir(path)
			must(t, os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644))
			return dir
		},
		"huge": func(t *testing.T, path string) string {
			must(t, os.WriteFile(path, []byte(line+strings.Repeat("x", 1<<20)), 0o644))
			return path
		},
		"two lines": func(t *testing.T, path string) string {
			must(t, os.WriteFile(path, []byte(line+line), 0o644))
			return path
		},
		"empty":   func(t *testing.T, path string) string { must(t, os.Truncate(path, 0)); return path },
		"cut off": func(t *testing.T, path string) string { must(t, os.Truncate(path, int64(len(line)-1))); return path },
		"blank line": func(t *testing.T, path string) string {
			must(t, os.WriteFile(path, []byte(line+"\n"), 0o644))
			return path
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(rootsDirectory(t), "toolward", "daemon")
			must(t, os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(line), 0o644), os.Chmod(path, 0o644))
			must(t, os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755))
			if _, ok, err := hostdaemon.Read(path); !ok || err != nil {
				t.Fatalf("before it was spoiled: %v, %v", ok, err)
			}
			odd := spoil(t, path)
			got, ok, err := hostdaemon.Read(path)
			if _, untrusted := errors.AsType[*hostdaemon.UntrustedError](err); ok || !untrusted || got != (hostdaemon.Daemon{}) {
				t.Fatalf("it names %+v, %v, %v", got, ok, err)
			}
			if !strings.HasPrefix(err.Error(), odd+" ") || !strings.Contains(err.Error(), "must be root's alone") {
				t.Errorf("not said what is odd (%s) or how to mend it: %v", odd, err)
			}
		})
	}
}

func TestOnlyTheWholeLineIsUnderstood(t *testing.T) {
	for _, uid := range []uint32{0, 1, 990, 1<<32 - 2} {
		want := hostdaemon.Daemon{UID: uid, Socket: "/run/x.sock", System: true}
		if got, err := hostdaemon.Parse(want.Line()); err != nil || got != want {
			t.Errorf("%q is read as %+v, %v", want.Line(), got, err)
		}
	}
	long := "/" + strings.Repeat("x", 100)
	for _, text := range []string{
		"", "\n", "uid 990 socket /s", "uid -1 socket /s\n", "uid +1 socket /s\n", "uid 01 socket /s\n", "uid  1 socket /s\n", "uid 4294967295 socket /s\n",
		"uid 4294967296 socket /s\n", "uid 18446744073709551616 socket /s\n", "uid  socket /s\n", "uid x socket /s\n", "uid 0x1 socket /s\n", "uid 1 socket \n",
		"uid 1 socket /\n", "uid 1 socket s\n", "uid 1 socket ./s\n", "uid 1 socket @s\n", "uid 1 socket /a/../s\n", "uid 1 socket /a/./s\n", "uid 1 socket /a//s\n",
		"uid 1 socket /a/\n", "uid 1 socket /a\r\n", "uid 1 socket /a b\n", "uid 1 socket /a\x00b\n", "uid 1 socket /ä\n", "uid 1 socket /a\n\n", "uid 1 socket /a\nuid 2 socket /b\n",
		"uid 1 socket /a socket /b\n", " uid 1 socket /a\n", "UID 1 socket /a\n", "uid\t1 socket /a\n", "\ufeffuid 1 socket /a\n", "uid 1 socket " + long + "\n",
	} {
		if got, err := hostdaemon.Parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	if got, err := hostdaemon.Parse("uid 1 socket " + long[:100] + "\n"); err != nil {
		t.Errorf("a path of 100 bytes: %+v, %v", got, err)
	}
}

func TestWithoutASystemInstallTheDaemonIsTheUsersOwn(t *testing.T) {
	if _, err := os.Lstat(filepath.Dir(hostdaemon.File)); err == nil {
		t.Skip("this machine has a system install")
	}
	got, err := hostdaemon.Of("/home/x/.toolward")
	want := hostdaemon.Daemon{UID: uint32(os.Geteuid()), Socket: "/home/x/.toolward/" + hostdaemon.SocketName}
	if got != want || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := hostdaemon.Of(""); err == nil {
		t.Errorf("without a home: %+v", got)
	}
}

func TestWhoListensIsTheOneWhoShould(t *testing.T) {
	foreign := filepath.Join(writable(t), "s")
	otheruser.Listen(t, foreign)
	own := filepath.Join(writable(t), "s")
	listener, err := net.Listen("unix", own)
	must(t, err)
	defer listener.Close()
	for _, c := range []struct {
		name, socket string
		uid          int
		good         bool
	}{
		{"own", own, os.Geteuid(), true},
		{"own, another was named", own, otheruser.UID, false},
		{"another", foreign, os.Geteuid(), false},
		{"another, as named", foreign, otheruser.UID, true},
		{"a third", foreign, otheruser.UID + 1, false},
	} {
		conn, err := net.Dial("unix", c.socket)
		must(t, err)
		err = hostdaemon.Daemon{UID: uint32(c.uid), Socket: c.socket}.Check(conn.(*net.UnixConn))
		if (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, untrusted := errors.AsType[*hostdaemon.UntrustedError](err); !c.good && (!untrusted || !strings.Contains(err.Error(), c.socket)) {
			t.Errorf("%s: not said what is wrong: %v", c.name, err)
		}
		conn.Close()
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	conn, err := net.Dial("tcp", tcp.Addr().String())
	must(t, err)
	defer conn.Close()
	if err := (hostdaemon.Daemon{UID: uint32(os.Geteuid())}).Check(conn.(*net.TCPConn)); err == nil {
		t.Error("nobody knows who listens at a port, and it passed")
	}
}

// writable is a directory in which everybody may listen.
func writable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tw")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o777))
	return dir
}
