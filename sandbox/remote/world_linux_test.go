package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/native"
	"github.com/toolward/toolward/sandbox/remote"
)

// person is the user whose rights sandboxes have here; the gateway is the test's own user.
const person = 64124

const variable = "TOOLWARD_TEST_SERVES_SANDBOXES"

// init makes a test binary that was started by serve the person's process.
func init() {
	if os.Getenv(variable) == "" {
		return
	}
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err == nil {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // until the test has gone
			os.Exit(0)
		}()
		server := &remote.Server{Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Engines: func(t remote.Terms) []sandbox.Engine {
			return []sandbox.Engine{native.New(native.Options{Instance: t.Instance, Cgroup: t.Cgroup})}
		}}
		err = server.Serve(context.Background(), listener.(*net.UnixListener))
	}
	fmt.Println(err)
	os.Exit(1)
}

// world is a server with the person's rights, and a gateway that calls it.
type world struct {
	socket string
	server *exec.Cmd
	client *remote.Client
	dir    string // the person's
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		if live.All() {
			t.Fatal("TOOLWARD_LIVE=all, but only root can start another user's program")
		}
		t.Skip("only root can start another user's program")
	}
	base, err := os.MkdirTemp("", "toolward-remote")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	w := &world{socket: filepath.Join(base, "sandboxes.sock"), dir: filepath.Join(base, "person")}
	if err := errors.Join(os.Chmod(base, 0o755), os.Mkdir(w.dir, 0o700), os.Chown(w.dir, person, person)); err != nil {
		t.Fatal(err)
	}
	live.Build(t, "cmd/toolward-inside", filepath.Join(base, "toolward-inside"))
	copyProgram(t, filepath.Join(base, "serve"))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: w.socket})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(w.socket, 0o666); err != nil { // so that only what the server checks itself keeps others away
		t.Fatal(err)
	}
	w.serve(t, listener, filepath.Join(base, "serve"))
	w.client = w.gateway(t)
	return w
}

// gateway is one more gateway of the same user.
func (w *world) gateway(t *testing.T) *remote.Client {
	c := remote.New(remote.Options{Address: w.socket, Trusts: remote.Trusted(0), Terms: remote.Terms{Instance: t.Name()}})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *world) engine() sandbox.Engine { return w.client.Engine(sandbox.EngineNative) }

func copyProgram(t *testing.T, to string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts the person's process. As in a system install root has made the socket, and the process only has its descriptor.
func (w *world) serve(t *testing.T, listener *net.UnixListener, program string) {
	t.Helper()
	socket, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	w.server = exec.Command(program)
	w.server.Dir, w.server.Env, w.server.ExtraFiles, w.server.Stderr = "/", []string{variable + "=1", "PATH=/usr/bin:/bin"}, []*os.File{socket}, os.Stderr
	w.server.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: person, Gid: person}}
	stdin, err := w.server.StdinPipe()
	if err == nil {
		err = w.server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = w.server.Wait()
	})
}

// spec is a sandbox with a workspace that belongs to the person, pinned as the gateway pins it.
func (w *world) spec(t *testing.T, workspace string) *sandbox.Spec {
	t.Helper()
	err := filepath.WalkDir(workspace, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, person, person))
	})
	if err != nil {
		t.Fatal(err)
	}
	for above := filepath.Dir(workspace); above != os.TempDir() && above != w.dir && len(above) > 1; above = filepath.Dir(above) {
		if err := os.Chmod(above, 0o711); err != nil { // the kernel lets the person's process mount what the person can get to
			t.Fatal(err)
		}
	}
	fd, err := unix.Open(workspace, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	pinned := os.NewFile(uintptr(fd), workspace)
	t.Cleanup(func() { _ = pinned.Close() })
	return &sandbox.Spec{
		Name: filepath.Base(t.Name()), Hash: "1", ScopeKey: "agent:test", Instance: t.Name(), Workdir: "/workspace",
		Mounts:    []sandbox.Mount{{Kind: sandbox.MountWorkspace, Source: workspace, Target: "/workspace", Writable: true, Pinned: pinned}},
		Env:       []string{"LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace"},
		User:      sandbox.User{UID: person, GID: person},
		Tmpfs:     []sandbox.Tmpfs{{Target: "/tmp"}, {Target: "/var/tmp"}, {Target: "/run"}},
		Network:   sandbox.Network{Mode: sandbox.NetworkNone},
		Limits:    sandbox.Limits{Memory: 1 << 30, Pids: 512},
		DegradeOK: []string{"cgroup"},
	}
}

// sandbox makes one.
func (w *world) sandbox(t *testing.T) sandbox.Handle {
	t.Helper()
	workspace := filepath.Join(w.dir, "ws"+strconv.Itoa(len(t.Name())))
	if err := os.MkdirAll(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := w.engine().Ensure(t.Context(), w.spec(t, workspace))
	if err != nil {
		t.Fatal(err)
	}
	return h
}
