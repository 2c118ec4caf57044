package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// dockerPatience bounds how long a container engine may take to start or stop on a busy machine.
const dockerPatience = 90 * time.Second

var machineDocker struct {
	sync.Mutex
	started *Dockerd
}

// Docker returns the address of a container engine: the one of this machine if it answers. Under TOOLWARD_LIVE=all one
// is started where none does; [StopDocker] stops it.
func Docker(t testing.TB) string {
	t.Helper()
	host := os.Getenv("DOCKER_HOST")
	if host == "" {
		host = "unix:///var/run/docker.sock"
	}
	missing := pingDocker(host)
	if missing == nil {
		return host
	}
	if !All() {
		t.Skipf("not run: no container engine answers at %s: %v", host, missing)
	}
	machineDocker.Lock()
	defer machineDocker.Unlock()
	if machineDocker.started == nil {
		d, err := startDockerd()
		if err != nil {
			t.Fatalf("TOOLWARD_LIVE=all, but no container engine answers at %s (%v), and none can be started: %v", host, missing, err)
		}
		machineDocker.started = d
	}
	return machineDocker.started.Host
}

// StopDocker stops what [Docker] has started, for TestMain.
func StopDocker() error {
	machineDocker.Lock()
	defer machineDocker.Unlock()
	d := machineDocker.started
	machineDocker.started = nil
	if d == nil {
		return nil
	}
	return d.end()
}

// Dockerd is a container engine of a test's own: it can be stopped without harm to others.
type Dockerd struct {
	Host string // its address

	dir    string
	more   []string // arguments
	cmd    *exec.Cmd
	said   *bytes.Buffer
	exited chan struct{}
}

// OwnDockerd starts a container engine that is the test's alone, with further arguments, and removes it with everything it
// holds at the end.
func OwnDockerd(t testing.TB, arguments ...string) *Dockerd {
	t.Helper()
	Need(t, Program("dockerd"))
	if os.Geteuid() != 0 {
		t.Skip("not run: only root can start a container engine")
	}
	d, err := startDockerd(arguments...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.end(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func startDockerd(arguments ...string) (*Dockerd, error) {
	if _, err := exec.LookPath("dockerd"); err != nil {
		return nil, errors.New("install the package docker.io")
	}
	dir, err := os.MkdirTemp("", "toolward-dockerd")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o711); err != nil { // tests of ordinary users reach the socket, if its group is theirs
		return nil, err
	}
	d := &Dockerd{Host: "unix://" + filepath.Join(dir, "docker.sock"), dir: dir, more: arguments}
	if err := d.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return d, nil
}

// Start starts it, again after [Dockerd.Stop].
func (d *Dockerd) Start() error {
	d.said = &bytes.Buffer{}
	d.exited = make(chan struct{})
	bridge := "none"
	if _, err := net.InterfaceByName("docker0"); err == nil {
		bridge = "docker0" // the machine's container engine has made it, and one without a bridge would remove it
	}
	d.cmd = exec.Command("dockerd", append([]string{
		"--host", d.Host, "--data-root", filepath.Join(d.dir, "data"), "--exec-root", filepath.Join(d.dir, "exec"),
		"--pidfile", filepath.Join(d.dir, "pid"), "--bridge", bridge, "--iptables=false", "--ip-masq=false",
		"--containerd-namespace", filepath.Base(d.dir),
	}, d.more...)...)
	d.cmd.Stdout, d.cmd.Stderr = d.said, d.said
	if err := d.cmd.Start(); err != nil {
		return err
	}
	exited := d.exited
	go func() {
		_ = d.cmd.Wait() // what it said is told
		close(exited)
	}()
	deadline := time.After(dockerPatience)
	for {
		err := pingDocker(d.Host)
		if err == nil {
			return nil
		}
		select {
		case <-d.exited:
			return fmt.Errorf("dockerd ended: %s", d.said)
		case <-deadline:
			return errors.Join(fmt.Errorf("dockerd does not answer: %w", err), d.Stop())
		case <-time.After(100 * time.Millisecond): // what is waited for happens in another process
		}
	}
}

// Stop stops it. Containers end; what it holds stays.
func (d *Dockerd) Stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-d.exited:
		return nil
	case <-time.After(dockerPatience):
		_ = d.cmd.Process.Kill() // as above
		<-d.exited
		return fmt.Errorf("dockerd did not end when it was asked to: %s", d.said)
	}
}

func (d *Dockerd) end() error {
	err := d.Stop()
	for _, mount := range mountsBelow(d.dir) {
		err = errors.Join(err, exec.Command("umount", "--lazy", mount).Run())
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// mountsBelow are the mount points in a directory, the deepest first.
func mountsBelow(dir string) []string {
	data, _ := os.ReadFile("/proc/self/mounts")
	var found []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			found = append([]string{fields[1]}, found...)
		}
	}
	return found
}

func pingDocker(host string) error {
	path, local := strings.CutPrefix(host, "unix://")
	if !local {
		return nil // whoever names another one has one
	}
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	response, err := c.Get("http://docker/_ping")
	if err != nil {
		return err
	}
	_ = response.Body.Close() // nothing was written
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", response.Status)
	}
	return nil
}
