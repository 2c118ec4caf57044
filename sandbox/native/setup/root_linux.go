package setup

import (
	"golang.org/x/sys/unix"
)

// hostRoot is where the host's files are while the new root is made, newRoot where the new root is.
const (
	hostRoot = "/host"
	newRoot  = "/new"
)

// builder makes the new root.
type builder struct {
	host, root int // descriptors of the two roots
	fds        []int
}

// failure is a step that failed.
type failure struct {
	step, path string
	err        error
}

func (f *failure) Error() string {
	text := f.step
	if f.path != "" {
		text += " " + f.path
	}
	return text + ": " + f.err.Error()
}

func fail(step, path string, err error) error {
	if err == nil {
		return nil
	}
	return &failure{step, path, err}
}

// newBuilder makes a place for the new root: the host's files move below /host, the new root is an empty file system in
// memory at /new. Nothing of this is seen outside this mount namespace.
func newBuilder() (*builder, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fail("private mounts", "/", err)
	}
	// Whatever directory every machine has will do; what is there stays reachable below /host.
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=0755"); err != nil {
		return nil, fail("mount tmpfs", "/tmp", err)
	}
	for _, dir := range []string{hostRoot, newRoot} {
		if err := unix.Mkdir("/tmp"+dir, 0o755); err != nil {
			return nil, fail("mkdir", dir, err)
		}
	}
	if err := unix.PivotRoot("/tmp", "/tmp"+hostRoot); err != nil {
		return nil, fail("pivot_root", "/tmp", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return nil, fail("chdir", "/", err)
	}
	if err := unix.Mount("tmpfs", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=4m,mode=0755"); err != nil {
		return nil, fail("mount tmpfs", newRoot, err)
	}
	b := &builder{}
	var err error
	if b.host, err = unix.Open(hostRoot, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fail("open", hostRoot, err)
	}
	b.root, err = unix.Open(newRoot, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return b, fail("open", newRoot, err)
}

// enter makes the new root the only one: the host's files are no longer in this namespace.
func (b *builder) enter() error {
	if err := unix.Fchdir(b.root); err != nil {
		return fail("chdir", newRoot, err)
	}
	// The old root is stacked on the new one and then taken off, so that no directory is needed for it.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fail("pivot_root", newRoot, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fail("umount the host", "", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fail("chdir", "/", err)
	}
	// A descriptor of the host's root would be a way back.
	_ = unix.Close(b.host)
	_ = unix.Close(b.root)
	for _, fd := range b.fds {
		_ = unix.Close(fd)
	}
	return nil
}

func (b *builder) run(steps []Step) error {
	for i := range steps {
		if err := b.step(&steps[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) step(s *Step) error {
	switch s.Kind {
	case Mkdir:
		fd, err := b.directory(s.Path)
		if err != nil {
			return fail("mkdir", s.Path, err)
		}
		defer unix.Close(fd)
		if s.Mode == 0 || s.Mode == 0o755 {
			return nil
		}
		return fail("chmod", s.Path, chmod(fd, s.Mode))
	case Symlink:
		return fail("symlink", s.Path, b.inParent(s.Path, func(dir int, name string) error {
			return unix.Symlinkat(s.Source, dir, name)
		}))
	case File:
		return fail("write", s.Path, b.inParent(s.Path, func(dir int, name string) error {
			return writeFile(dir, name, s.Mode, s.Data)
		}))
	case Tmpfs:
		return fail("mount tmpfs", s.Path, b.tmpfs(s))
	case Bind, Pinned:
		return b.bind(s)
	case Detached:
		if int(s.FD) >= len(b.fds) {
			return fail("mount", s.Path, unix.EBADF)
		}
		return fail("mount", s.Path, b.attach(b.fds[s.FD], s.Path))
	case Proc:
		return fail("mount proc", s.Path, b.fileSystem("proc", s, nil))
	case Terminals:
		return fail("mount devpts", s.Path, b.fileSystem("devpts", s, []option{
			{"newinstance", ""}, {"ptmxmode", "0666"}, {"mode", "0620"},
		}))
	case Again:
		return fail("mount again", s.Path, b.again(s))
	case Mask:
		return fail("mask", s.Path, b.mask(s.Path))
	case Overlay:
		return b.overlay(s)
	case Attributes:
		fd, err := b.open(b.root, s.Path, unix.RESOLVE_NO_SYMLINKS)
		if err != nil {
			return fail("open", s.Path, err)
		}
		defer unix.Close(fd)
		return fail("remount", s.Path, setAttributes(fd, s.Attr, false))
	case Setting:
		return fail("set", s.Path, b.set(s))
	case Loopback:
		return fail("bring up", "lo", loopback())
	case CgroupNamespace:
		return fail("cgroup namespace", "", unix.Unshare(unix.CLONE_NEWCGROUP))
	default:
		return fail("step", s.Path, errPlan)
	}
}

// openAttempts bounds how often a path is opened again: the kernel gives up where something was renamed or mounted
// anywhere on the machine while it followed "..".
const openAttempts = 1000

// open opens a path below a root, which it cannot leave.
func (b *builder) open(root int, path string, resolve uint64) (fd int, err error) {
	for range openAttempts {
		fd, err = unix.Openat2(root, relative(path), &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_CLOEXEC,
			Resolve: resolve | unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
		})
		if err != unix.EAGAIN && err != unix.EINTR {
			break
		}
	}
	return fd, err
}

// directory opens a directory of the new root and makes what is missing. Symbolic links are not followed: a workspace
// may hold some, and what they lead to would be made or covered in the wrong place.
func (b *builder) directory(path string) (int, error) {
	fd, err := b.open(b.root, "/", 0)
	for rest := relative(path); rest != "." && err == nil; {
		name := rest
		if i := index(rest, '/'); i >= 0 {
			name, rest = rest[:i], rest[i+1:]
		} else {
			rest = "."
		}
		var next int
		next, err = enterDirectory(fd, name)
		_ = unix.Close(fd)
		fd = next
	}
	return fd, err
}

func enterDirectory(dir int, name string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0)
	if err != unix.ENOENT {
		return fd, err
	}
	if err := unix.Mkdirat(dir, name, 0o755); err != nil && err != unix.EEXIST {
		return -1, err
	}
	return unix.Openat(dir, name, flags, 0)
}

func (b *builder) inParent(path string, do func(dir int, name string) error) error {
	parent, name := split(path)
	dir, err := b.directory(parent)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return do(dir, name)
}

// place opens what something is mounted on: a directory, or a file for a file.
func (b *builder) place(path string, dir bool) (int, error) {
	if dir {
		return b.directory(path)
	}
	fd := -1
	err := b.inParent(path, func(parent int, name string) error {
		made, err := unix.Openat(parent, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
		if err == nil {
			_ = unix.Close(made)
		}
		fd, err = unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// attach puts a detached mount at a path of the new root.
func (b *builder) attach(mount int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(mount, &st); err != nil {
		return err
	}
	fd, err := b.place(path, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.MoveMount(mount, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// chmod changes the mode of what an O_PATH descriptor stands for.
func chmod(fd int, mode uint32) error {
	real, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(real)
	return unix.Fchmod(real, mode)
}

func writeFile(dir int, name string, mode uint32, data []byte) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// loopback brings up the loopback interface, the only one there is.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
