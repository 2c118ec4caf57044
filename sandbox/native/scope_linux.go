package native

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// scopePatience bounds how long systemd may take to make a scope.
const scopePatience = 10 * time.Second

// enterScope has systemd put this process into a scope of its own, whose control group is delegated: nobody but systemd may
// give an ordinary user one, and the group of a login session, where programs are started, has other members.
//
// A process is taken out of a scope or of a program that the desktop started, never out of a service that it is the life of:
// systemd would take the service for ended, or leave the gateway running when it is stopped.
func enterScope(ctx context.Context, group string) error {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return &groupError{"systemd does not manage this machine", "run the gateway where it can write control groups, or let sandbox.degradeOk name cgroup"}
	}
	ctx, cancel := context.WithTimeout(ctx, scopePatience)
	defer cancel()
	// Its connections end with ctx, also where nothing comes of them.
	connect := sync.OnceValues(func() (*systemd.Conn, error) {
		return systemd.NewConnection(func() (*dbus.Conn, error) { return dialManager(ctx) })
	})
	err := mayLeave(unitOf(group), func(unit string) (pid uint32, err error) {
		manager, err := connect()
		if err != nil {
			return 0, err
		}
		main, err := manager.GetServicePropertyContext(ctx, unit, "MainPID")
		if err == nil {
			err = main.Value.Store(&pid)
		}
		return pid, err
	})
	if err != nil {
		return err
	}
	manager, err := connect()
	if err != nil {
		return fmt.Errorf("ask systemd for a group: %w", err)
	}
	defer manager.Close()
	return makeScope(ctx, manager)
}

// makeScope makes the scope, with this process in it.
func makeScope(ctx context.Context, manager *systemd.Conn) error {
	name := "toolward-" + strings.ToLower(rand.Text()[:8]) + ".scope"
	done := make(chan string, 1)
	properties := []systemd.Property{
		systemd.PropDescription("Toolward gateway and its sandboxes"), systemd.PropPids(uint32(os.Getpid())),
		{Name: "Delegate", Value: dbus.MakeVariant(true)},
	}
	if _, err := manager.StartTransientUnitContext(ctx, name, "fail", properties, done); err != nil {
		return fmt.Errorf("ask systemd for a group: %w", err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("systemd did not make the scope %s: %s", name, result)
		}
	case <-ctx.Done():
		return fmt.Errorf("systemd did not make the scope %s within %v", name, scopePatience)
	}
	return nil
}

// unitOf is the unit of systemd that a group belongs to.
func unitOf(group string) string {
	for dir := group; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if name := filepath.Base(dir); strings.HasSuffix(name, ".scope") || strings.HasSuffix(name, ".service") {
			return name
		}
	}
	return ""
}

// mayLeave refuses to take the gateway out of a service that it is, or may be, the life of. The programs of a desktop, like a
// terminal, are services or scopes with names that begin with "app-"; what was started in one is not what it lives by.
func mayLeave(unit string, mainPID func(unit string) (uint32, error)) error {
	refused := &groupError{"the gateway runs in the unit " + unit, "let that unit delegate its group: systemctl edit " + unit + `, and in [Service] "Delegate=yes"`}
	switch {
	case unit == "" || unit == "init.scope":
		return &groupError{"systemd did not start what the gateway runs in", "start it in a login session, or as a service with Delegate=yes"}
	case strings.HasSuffix(unit, ".scope"):
		return nil
	case !strings.HasPrefix(unit, "app-"):
		return refused
	}
	if pid, err := mainPID(unit); err != nil || pid == 0 || int64(pid) == int64(os.Getpid()) {
		return refused
	}
	return nil
}

// groupError is why there are no control groups, and what helps.
type groupError struct{ why, fix string }

func (e *groupError) Error() string { return e.why }

// dialManager connects to the manager of root's or of the user's units itself, so that no message bus needs to run.
func dialManager(ctx context.Context) (*dbus.Conn, error) {
	dir := "/run"
	if uid := os.Geteuid(); uid != 0 {
		dir = filepath.Join("/run/user", strconv.Itoa(uid))
	}
	path := filepath.Join(dir, "systemd", "private")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, &groupError{
			"systemd runs no manager for this user (" + path + " is not there)",
			"start the gateway in a login session of the user, or once: loginctl enable-linger " + strconv.Itoa(os.Geteuid()),
		}
	}
	conn, err := dbus.Dial("unix:path="+path, dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
