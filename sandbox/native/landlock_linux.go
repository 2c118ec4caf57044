package native

import (
	"context"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/native/setup"
)

// What of the host a sandbox without a root of its own may read beyond the system's programs.
var landlockRead = append([]string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/etc/passwd", "/etc/group", "/etc/hosts",
	"/etc/nsswitch.conf", "/etc/localtime",
}, systemEtc...)

// startLandlock makes a sandbox without namespaces: the host's files where they are, of which Landlock leaves few, and no
// sockets. It is for machines that refuse namespaces, and only where that was agreed to.
func (e *Engine) startLandlock(ctx context.Context, b *box, spec *sandbox.Spec) error {
	if e.root {
		return sandbox.Errorf(sandbox.CodeUnavailable, "root's sandboxes need namespaces: without them they would be root's processes")
	}
	if spec.Network.Mode == sandbox.NetworkEgress {
		return sandbox.Errorf(sandbox.CodeConfig, `without namespaces there is no network "egress", only "none"`)
	}
	m, err := landlockMounts(spec)
	if err != nil {
		return err
	}
	defer m.close()
	program, err := filterFor(spec, true)
	if err != nil {
		return err
	}
	plan := &setup.Plan{
		Last: true, NoNamespace: true, Rlimits: rlimits(spec.Limits), LandlockABI: e.landlockABI(), LandlockTCP: true,
		Filter: program, Landlock: m.rules,
	}
	for _, path := range landlockRead {
		plan.Landlock = append(plan.Landlock, setup.Rule{Path: path, Right: setup.RightRead})
	}
	for _, name := range devices {
		plan.Landlock = append(plan.Landlock, setup.Rule{Path: "/dev/" + name, Right: setup.RightUse})
	}
	if h, err := e.groups(); err == nil {
		if b.group, err = h.create(e.owner + "-" + strconv.FormatInt(e.serial.Add(1), 10)); err != nil {
			return err
		}
	}
	if b.helper, err = e.startHelper(ctx, 0, identity{}); err != nil {
		return err
	}
	if b.group != nil {
		if err := b.group.add(b.helper.pid); err != nil {
			return err
		}
		if err := b.group.limit(spec.Limits); err != nil {
			return err
		}
	}
	return explainSetup(b.helper.send(ctx, plan, m.fds))
}

// landlockMounts turns mounts into rules. Nothing can be mounted, so everything has to be where it is.
func landlockMounts(spec *sandbox.Spec) (*mounts, error) {
	m := &mounts{}
	for i := range spec.Mounts {
		mount := &spec.Mounts[i]
		if path.Clean(mount.Source) != path.Clean(mount.Target) {
			m.close()
			return nil, sandbox.Errorf(sandbox.CodeConfig, "without namespaces %s cannot be shown as %s", mount.Source, mount.Target)
		}
		if above := writableAbove(spec.Mounts, mount); above != "" {
			m.close()
			return nil, sandbox.Errorf(sandbox.CodeConfig, "without namespaces %s cannot be read-only, because %s can be written to", mount.Source, above)
		}
		pinned := mount.Pinned
		if pinned == nil {
			opened, err := pin(mount.Source)
			if err != nil {
				m.close()
				return nil, sandbox.Errorf(sandbox.CodeNotFound, "mount %s: %v", mount.Source, err)
			}
			defer opened.Close() // it was a path only
			pinned = opened
		}
		fd, err := unix.FcntlInt(pinned.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			m.close()
			return nil, sandbox.Errorf(sandbox.CodeFailed, "mount %s: %v", mount.Source, err)
		}
		m.fds = append(m.fds, fd)
		right := setup.RightRead
		if mount.Writable {
			right = setup.RightWrite
		}
		m.rules = append(m.rules, setup.Rule{Path: mount.Source, Right: right, FD: uint32(len(m.fds))})
	}
	return m, nil
}

// writableAbove is the writable mount that a read-only one lies in; "" if there is none. Landlock allows what any rule above
// a file allows: commands would write what file tools refuse to.
func writableAbove(all []sandbox.Mount, mount *sandbox.Mount) string {
	if mount.Writable {
		return ""
	}
	source := path.Clean(mount.Source)
	for _, m := range all {
		above := path.Clean(m.Source)
		if m.Writable && (source == above || strings.HasPrefix(source, strings.TrimSuffix(above, "/")+"/")) {
			return above
		}
	}
	return ""
}
