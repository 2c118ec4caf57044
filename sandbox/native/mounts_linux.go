package native

import (
	"context"
	"errors"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/native/setup"
)

// mounts is what a Spec mounts, as steps and descriptors for the helper.
type mounts struct {
	steps []setup.Step
	late  []setup.Step // what lies over others
	rules []setup.Rule
	fds   []int
}

func (m *mounts) close() {
	for _, fd := range m.fds {
		_ = unix.Close(fd) // the helper has copies
	}
}

// mountsOf prepares the mounts of a Spec. Root makes the mounts itself and hands them over, because nobody else reaches
// everything; others let the helper open the path again and compare.
func (e *Engine) mountsOf(ctx context.Context, spec *sandbox.Spec, who identity) (*mounts, error) {
	m := &mounts{}
	for i := range spec.Mounts {
		if err := e.addMount(ctx, m, &spec.Mounts[i], who); err != nil {
			m.close()
			return nil, err
		}
	}
	if spec.Network.Mode == sandbox.NetworkEgress {
		// The directory, not the socket: the gateway may make another one. Read-only, so that what runs inside cannot put its
		// own in the place.
		proxy := sandbox.Mount{Kind: sandbox.MountBind, Source: spec.Network.EgressDir, Target: setup.EgressDir}
		if err := e.addMount(ctx, m, &proxy, who); err != nil {
			m.close()
			return nil, err
		}
	}
	return m, nil
}

func (e *Engine) addMount(ctx context.Context, m *mounts, mount *sandbox.Mount, who identity) error {
	target := path.Clean(mount.Target)
	if !path.IsAbs(target) || target == "/" {
		return sandbox.Errorf(sandbox.CodeConfig, "mount %s: the target %q is no absolute path below /", mount.Source, mount.Target)
	}
	attr, right := hardened, setup.RightWrite
	if !mount.Writable {
		attr, right = hardened|setup.ReadOnly, setup.RightRead
	}
	if mount.Layer != "" {
		return e.addLayered(ctx, m, mount, who)
	}
	m.rules = append(m.rules, setup.Rule{Path: target, Right: right})
	step, err := e.mountStep(ctx, m, mount, who, target, attr)
	if err == nil {
		m.steps = append(m.steps, step)
	}
	return err
}

// addLayered has a layer of the sandbox's own laid over something of the machine, in a place that is gone afterwards.
func (e *Engine) addLayered(ctx context.Context, m *mounts, mount *sandbox.Mount, who identity) error {
	at := "/." + sandbox.Brand + "/layers-" + strconv.Itoa(len(m.late))
	layer := sandbox.Mount{Kind: sandbox.MountHome, Source: mount.Layer, Writable: true}
	lower, err := e.mountStep(ctx, m, mount, who, at+"/lower", hardened|setup.ReadOnly)
	if err != nil {
		return err
	}
	upper, err := e.mountStep(ctx, m, &layer, who, at+"/layer", hardened)
	if err != nil {
		return err
	}
	m.late = append(m.late, lower, upper, setup.Step{Kind: setup.Overlay, Source: at, Path: path.Clean(mount.Target), Attr: hardened})
	m.rules = append(m.rules, setup.Rule{Path: path.Clean(mount.Target), Right: setup.RightWrite})
	return nil
}

// mountStep is what mounts one thing of the host at a path.
func (e *Engine) mountStep(ctx context.Context, m *mounts, mount *sandbox.Mount, who identity, target string, attr setup.Attr) (setup.Step, error) {
	pinned := mount.Pinned
	if pinned == nil {
		opened, err := pin(mount.Source)
		if err != nil {
			return setup.Step{}, sandbox.Errorf(sandbox.CodeNotFound, "mount %s: %v", mount.Source, err)
		}
		defer opened.Close() // it was a path only
		pinned = opened
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(pinned.Fd()), &st); err != nil {
		return setup.Step{}, sandbox.Errorf(sandbox.CodeFailed, "mount %s: %v", mount.Source, err)
	}
	if !e.root {
		return setup.Step{Kind: setup.Pinned, Source: mount.Source, Path: target, Attr: attr, Device: st.Dev, Inode: st.Ino}, nil
	}
	mapping := idmap{}
	// The workspace belongs to the sandbox, whoever owns it on the host. Other mounts keep the rights of their files.
	own := mount.Kind == sandbox.MountWorkspace || mount.Kind == sandbox.MountAgent || mount.Kind == sandbox.MountHome || mount.Layer != ""
	if own && (int(st.Uid) != who.hostUID || int(st.Gid) != who.hostGID) {
		mapping = idmap{int(st.Uid), int(st.Gid), who.hostUID, who.hostGID}
	}
	fd, err := e.detach(ctx, pinned, attr, mapping)
	if err != nil {
		return setup.Step{}, sandbox.Errorf(sandbox.CodeUnavailable, "mount %s: %v", mount.Source, err)
	}
	step := setup.Step{Kind: setup.Detached, Path: target, FD: uint32(len(m.fds))}
	m.fds = append(m.fds, fd)
	return step, nil
}

// pin opens a path that was resolved: a symbolic link on the way is another file than the one that was meant.
func pin(source string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, source, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: source, Err: err}
	}
	return os.NewFile(uintptr(fd), source), nil
}

// detach copies the mount at a descriptor, whatever stands at its path by now, and restricts the copy.
func (e *Engine) detach(ctx context.Context, pinned *os.File, attr setup.Attr, mapping idmap) (int, error) {
	fd, err := unix.OpenTree(int(pinned.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("open_tree", err)
	}
	// Private: what the host mounts below it later would otherwise appear inside, with the rights that it has there.
	request := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if attr&setup.ReadOnly != 0 {
		request.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &request)
	if err == nil && mapping != (idmap{}) {
		err = e.idmaps.apply(ctx, e, fd, mapping)
	}
	if err != nil {
		_ = unix.Close(fd) // it is not used
		return -1, err
	}
	return fd, nil
}

func (m *idmaps) apply(ctx context.Context, e *Engine, mount int, mapping idmap) error {
	namespace, err := m.namespace(ctx, e, mapping)
	if err != nil {
		return err
	}
	err = unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace.Fd()),
	})
	if err == nil {
		return nil
	}
	failed := sandbox.Errorf(sandbox.CodeConfig,
		"it belongs to user %d, sandboxes run as user %d, and the kernel maps no owners there: %v", mapping.fromUID, mapping.toUID, err)
	failed.Fix = "chown the directory to user " + strconv.Itoa(mapping.toUID)
	if errors.Is(err, unix.EINVAL) {
		failed.Fix += ", or move it to a file system with id-mapped mounts (ext4 and xfs, btrfs since Linux 5.15, tmpfs since 6.3)"
	}
	return failed
}

func (m *idmaps) namespace(ctx context.Context, e *Engine, mapping idmap) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if file := m.known[mapping]; file != nil {
		return file, nil
	}
	// A helper whose user namespace has the mapping; it is needed for as long as it takes to open that.
	h, err := e.startHelper(ctx, unix.CLONE_NEWUSER, identity{mapping.toUID, mapping.toGID, mapping.fromUID, mapping.fromGID})
	if err != nil {
		return nil, err
	}
	defer h.end()
	file, err := os.Open("/proc/" + strconv.Itoa(h.pid) + "/ns/user")
	if err != nil {
		return nil, err
	}
	if m.known == nil {
		m.known = map[idmap]*os.File{}
	}
	m.known[mapping] = file
	return file, nil
}

func (m *idmaps) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, file := range m.known {
		_ = file.Close() // it was a name only
	}
	m.known = nil
}

const hardened = setup.NoSetuid | setup.NoDevices
