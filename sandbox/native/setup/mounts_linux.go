package setup

import (
	"golang.org/x/sys/unix"
)

func (b *builder) bind(s *Step) error {
	var resolve uint64
	if s.Kind == Pinned {
		resolve = unix.RESOLVE_NO_SYMLINKS
	}
	source, err := b.open(b.host, s.Source, resolve)
	if err == unix.ENOENT && s.Optional {
		return nil
	}
	if err != nil {
		return fail("open", s.Source, err)
	}
	defer unix.Close(source)
	if s.Kind == Pinned {
		// What was validated is what is mounted: another file at the same path is refused, and this descriptor, not
		// the path, is what is mounted from here on.
		var st unix.Stat_t
		if err := unix.Fstat(source, &st); err != nil {
			return fail("stat", s.Source, err)
		}
		if st.Dev != s.Device || st.Ino != s.Inode {
			return fail("changed since it was checked:", s.Source, unix.ESTALE)
		}
	}
	return fail("bind", s.Path, b.clone(source, s))
}

// clone mounts a copy of the tree at a descriptor.
func (b *builder) clone(source int, s *Step) error {
	mount, err := unix.OpenTree(source, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	if err := setAttributes(mount, s.Attr, true); err != nil {
		return err
	}
	return b.attach(mount, s.Path)
}

func (b *builder) again(s *Step) error {
	fd, err := b.open(b.root, s.Path, unix.RESOLVE_NO_SYMLINKS)
	if err == unix.ENOENT || err == unix.ELOOP || err == unix.ENOTDIR {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	mount, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	if err := setAttributes(mount, s.Attr, true); err != nil {
		return err
	}
	return unix.MoveMount(mount, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// set writes a setting. A kernel that does not have it needs none.
func (b *builder) set(s *Step) error {
	fd, err := unix.Openat2(b.root, relative(s.Path), &unix.OpenHow{
		Flags: unix.O_WRONLY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_IN_ROOT,
	})
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, s.Data)
	return err
}

// mask hides a file behind an empty one and a directory behind an empty one.
func (b *builder) mask(path string) error {
	fd, err := b.open(b.root, path, unix.RESOLVE_NO_SYMLINKS)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	_ = unix.Close(fd)
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return b.tmpfs(&Step{Path: path, Size: 4096, Mode: 0o555, Attr: ReadOnly | NoSetuid | NoDevices | NoExec})
	}
	null, err := b.open(b.host, "/dev/null", 0)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	return b.clone(null, &Step{Path: path, Attr: NoSetuid | NoExec})
}

type option struct{ name, value string }

func (b *builder) tmpfs(s *Step) error {
	options := []option{{"mode", octal(s.Mode)}}
	if s.Size > 0 {
		// Files without content take memory as well: no more of them than pages.
		options = append(options, option{"size", decimal(s.Size)}, option{"nr_inodes", decimal(max(s.Size/4096, 64))})
	}
	return b.fileSystem("tmpfs", s, options)
}

// fileSystem mounts a new file system of a type.
func (b *builder) fileSystem(kind string, s *Step, options []option) error {
	context, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(context)
	for _, o := range options {
		if o.value == "" {
			err = unix.FsconfigSetFlag(context, o.name)
		} else {
			err = unix.FsconfigSetString(context, o.name, o.value)
		}
		if err != nil {
			return err
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return err
	}
	mount, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, mountAttr(s.Attr))
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	return b.attach(mount, s.Path)
}

// overlay mounts two directories as one. That the kernel refuses is no error: the machine's own files were to be read only, and
// the sandbox is whole without them.
func (b *builder) overlay(s *Step) error {
	lower, layer := newRoot+s.Source+"/lower", newRoot+s.Source+"/layer"
	failed := b.fileSystem("overlay", s, []option{
		{"lowerdir", lower}, {"upperdir", layer + "/upper"}, {"workdir", layer + "/work"}, {"userxattr", ""},
	})
	for _, at := range []string{lower, layer} {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			return fail("umount", at, err) // it would be a second way to what is laid over it
		}
		if err := unix.Rmdir(at); err != nil {
			return fail("rmdir", at, err)
		}
	}
	if failed != nil {
		return nil
	}
	return fail("rmdir", s.Source, unix.Rmdir(newRoot+s.Source))
}

func mountAttr(a Attr) int {
	var flags int
	if a&ReadOnly != 0 {
		flags |= unix.MOUNT_ATTR_RDONLY
	}
	if a&NoSetuid != 0 {
		flags |= unix.MOUNT_ATTR_NOSUID
	}
	if a&NoDevices != 0 {
		flags |= unix.MOUNT_ATTR_NODEV
	}
	if a&NoExec != 0 {
		flags |= unix.MOUNT_ATTR_NOEXEC
	}
	return flags
}

func setAttributes(fd int, a Attr, recursive bool) error {
	if a == 0 {
		return nil
	}
	flags := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	return unix.MountSetattr(fd, "", flags, &unix.MountAttr{Attr_set: uint64(mountAttr(a))})
}
