package light

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	inside "github.com/toolward/toolward/sandbox/light/box"
)

// leastLandlock is the first version of Landlock under which programs can move files between directories.
const leastLandlock = 2

// buildPatience bounds how long the first use waits until toolward-inside is built.
const buildPatience = 3 * time.Minute

// probe finds out what this machine can do by doing it in a box that is thrown away.
func (l *Light) probe() Check {
	ctx, cancel := context.WithTimeout(l.life, buildPatience)
	defer cancel()
	_, _, err := l.options.Program(ctx)
	if err == nil {
		err = ctx.Err() // the gateway is stopping
	}
	if err != nil {
		return Check{Mode: None, Found: err.Error(), Fix: "go install ./cmd/..."}
	}
	err = l.try(ctx, Namespaces)
	if err == nil {
		return Check{Mode: Namespaces}
	}
	check := Check{Mode: None, Found: err.Error(), Fix: remedy(err)}
	if os.Geteuid() != 0 && landlockVersion() >= leastLandlock && l.try(ctx, Landlock) == nil {
		check.Mode = Landlock
	}
	return check
}

// try makes a whole confinement, in which nothing is hidden but an empty directory.
func (l *Light) try(ctx context.Context, mode Mode) error {
	dir, err := os.MkdirTemp("", "toolward-light-")
	if err != nil {
		return err
	}
	defer os.Remove(dir) // it is empty
	b, err := l.newBox(ctx, mode)
	if err != nil {
		return err
	}
	defer b.End()
	setup := &inside.Setup{Namespaces: mode == Namespaces, Root: os.Geteuid() == 0, Landlock: landlockVersion(), Hide: []string{withoutLinks(dir)}}
	return b.confine(setup)
}

// landlockVersion is the version of Landlock that the kernel has; 0 is none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// remedy names what to change about a machine that refuses a confinement.
func remedy(err error) string {
	setting := func(name string) string {
		data, _ := os.ReadFile("/proc/sys/" + name)
		return strings.TrimSpace(string(data))
	}
	var number syscall.Errno
	errors.As(err, &number)
	switch {
	case number == unix.ENOSPC || number == unix.EUSERS:
		return "sysctl user.max_user_namespaces=15000"
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		program, _ := os.Executable()
		return fmt.Sprintf("install the AppArmor profile for %s (packaging/apparmor/toolward) and start the gateway again", program)
	case setting("kernel/unprivileged_userns_clone") == "0":
		return "sysctl kernel.unprivileged_userns_clone=1"
	}
	return "toolward sandbox probe says what the machine lacks"
}
