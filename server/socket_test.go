package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shortHome makes a home whose socket path is short enough on every system.
func shortHome(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "tw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	return home
}

func TestListenSocket(t *testing.T) {
	t.Run("modes", func(t *testing.T) {
		home := shortHome(t)
		l, err := listenSocket(home, "")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		info, err := os.Stat(filepath.Join(home, SocketName))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("socket mode %v, %v; want 0600", info.Mode(), err)
		}
	})
	t.Run("a dead socket of ours is replaced", func(t *testing.T) {
		home := shortHome(t)
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(home, SocketName), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false)
		dead.Close()
		l, err := listenSocket(home, "")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
	t.Run("a live socket is left alone", func(t *testing.T) {
		home := shortHome(t)
		l, err := listenSocket(home, "")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if _, err := listenSocket(home, ""); err == nil || !strings.Contains(err.Error(), "already running") {
			t.Errorf("second daemon: %v", err)
		}
	})
	for name, prepare := range map[string]func(path string) error{
		"a file":      func(path string) error { return os.WriteFile(path, []byte("precious"), 0o600) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a symbolic link": func(path string) error {
			return os.Symlink("/etc/hostname", path)
		},
	} {
		t.Run(name+" in the way is not removed", func(t *testing.T) {
			home := shortHome(t)
			path := filepath.Join(home, SocketName)
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			if _, err := listenSocket(home, ""); err == nil || !strings.Contains(err.Error(), "in the way") {
				t.Errorf("listen: %v", err)
			}
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("it was removed: %v", err)
			}
		})
	}
	t.Run("a home that others can enter", func(t *testing.T) {
		home := shortHome(t)
		os.Chmod(home, 0o755)
		if _, err := listenSocket(home, ""); err == nil || !strings.Contains(err.Error(), "chmod 700") {
			t.Errorf("listen: %v", err)
		}
	})
	t.Run("a path that is too long", func(t *testing.T) {
		home := filepath.Join(shortHome(t), strings.Repeat("d", 100))
		os.MkdirAll(home, 0o700)
		if _, err := listenSocket(home, ""); err == nil || !strings.Contains(err.Error(), "TOOLWARD_HOME") {
			t.Errorf("listen: %v", err)
		}
	})
}
