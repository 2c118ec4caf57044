package box

import (
	"fmt"
	"os"
	"path"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/native/setup"
)

// confine makes the confinement for this thread and all that it starts.
func (s *Setup) confine() error {
	if s.Namespaces {
		if err := s.mounts(); err != nil {
			return err
		}
		if err := s.processes(); err != nil {
			return err
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("subreaper: %w", err) // who loses the parent must not get away
	}
	if err := s.dropCapabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if !s.Namespaces {
		return s.landlock()
	}
	return s.scope()
}

// mounts changes what is seen of the file system. The order matters: what stays is taken before it is covered.
func (s *Setup) mounts() error {
	// What the machine mounts later comes in here; what is mounted here goes nowhere.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts apart: %w", err)
	}
	shown := make([]int, len(s.Show))
	for i, p := range s.Show {
		fd, err := clone(p)
		if err != nil {
			return err
		}
		shown[i] = fd
	}
	defer closeAll(shown)
	for _, p := range s.Pin {
		if err := cover(p, 0); err != nil {
			return err
		}
	}
	for _, p := range s.Read {
		if err := cover(p, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	for _, p := range s.Fresh {
		if _, err := empty(p, "0700"); err != nil {
			return err
		}
	}
	sealed, err := s.hide()
	if err != nil {
		return err
	}
	for i, p := range s.Show {
		if err := s.show(p, shown[i]); err != nil {
			return err
		}
	}
	for _, p := range sealed {
		if err := seal(p); err != nil {
			return err
		}
	}
	return nil
}

// nothing is the name, below the first hidden directory, of the empty file that stands in the place of hidden ones.
const nothing = ".hidden"

// hide puts an empty directory over every hidden one, and an empty file over everything else.
func (s *Setup) hide() (sealed []string, err error) {
	for i, p := range s.Hide {
		there, err := stat(p)
		switch {
		case err == unix.ENOENT || err == unix.EACCES:
			if i == 0 {
				return nil, fmt.Errorf("hide %s: %w", p, err)
			}
			continue // there is nothing, or what is there nobody here can reach
		case err != nil:
			return nil, fmt.Errorf("hide %s: %w", p, err)
		case there.Mode&unix.S_IFMT == unix.S_IFDIR:
			if made, err := empty(p, "0755"); err != nil {
				return nil, err
			} else if made {
				sealed = append(sealed, p)
			}
			if i == 0 {
				if err := os.WriteFile(path.Join(p, nothing), nil, 0o444); err != nil {
					return nil, err
				}
			}
		default:
			if err := s.hideFile(p); err != nil {
				return nil, err
			}
		}
	}
	return sealed, nil
}

func (s *Setup) hideFile(p string) error {
	fd, err := clone(path.Join(s.Hide[0], nothing))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := attributes(fd, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	return attach(fd, p)
}

// show puts back what was there, below something that covers it. The ways to it are made in what is empty now.
func (s *Setup) show(p string, fd int) error {
	if fd < 0 {
		return nil // it was not there
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if _, err := stat(p); err == unix.ENOENT {
		if err := os.MkdirAll(path.Dir(p), 0o755); err != nil {
			return err
		}
		err := os.Mkdir(p, 0o755)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			_ = os.Remove(p) // it is no directory that is shown
			err = os.WriteFile(p, nil, 0o444)
		}
		if err != nil {
			return err
		}
	}
	return attach(fd, p)
}

// processes shows those of this namespace alone.
func (s *Setup) processes() error {
	if err := fileSystem("proc", "/proc", nil); err != nil {
		return fmt.Errorf("show no other processes: %w", err)
	}
	if !s.Root {
		return nil
	}
	// Root can change the machine by these: a program that the kernel starts, the memory of everything.
	for _, p := range []string{"/proc/sys", "/proc/sysrq-trigger", "/sys"} {
		if err := cover(p, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	return s.hideDevices()
}

// hideDevices hides disks and memory: who reads them reads every file.
func (s *Setup) hideDevices() error {
	entries, err := os.ReadDir("/dev")
	if err != nil {
		return err
	}
	for _, e := range entries {
		disk := e.Type()&os.ModeDevice != 0 && e.Type()&os.ModeCharDevice == 0
		if name := e.Name(); !disk && name != "mem" && name != "kmem" && name != "port" && name != "mapper" && name != "fuse" {
			continue
		} else if e.IsDir() {
			_, err = empty("/dev/"+name, "0755")
		} else {
			err = s.hideFile("/dev/" + name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stat looks at a path. A link that has come there meanwhile is an error: what it leads to was not meant.
func stat(p string) (st unix.Stat_t, err error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	return st, unix.Fstat(fd, &st)
}

// clone takes what is at a path with all below it; -1 if nothing is there.
func clone(p string) (int, error) {
	at, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err == unix.ENOENT || err == unix.EACCES {
		return -1, nil
	}
	if err == nil {
		defer unix.Close(at)
		var fd int
		fd, err = unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err == nil {
			return fd, nil
		}
	}
	return -1, fmt.Errorf("take %s: %w", p, err)
}

// cover mounts what is at a path on itself, with other attributes. It cannot be renamed from then on.
func cover(p string, attr uint64) error {
	fd, err := clone(p)
	if fd < 0 || err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := attributes(fd, attr); err != nil {
		return fmt.Errorf("guard %s: %w", p, err)
	}
	return attach(fd, p)
}

func attributes(fd int, attr uint64) error {
	if attr == 0 {
		return nil
	}
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr})
}

func attach(fd int, p string) error {
	if fd < 0 {
		return nil
	}
	at, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err == nil {
		defer unix.Close(at)
		err = unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("mount on %s: %w", p, err)
	}
	return nil
}

// empty puts an empty directory over one; false: there is none.
func empty(p, mode string) (bool, error) {
	if there, err := stat(p); err == unix.ENOENT || err == unix.EACCES || err == nil && there.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false, nil
	}
	return true, fileSystem("tmpfs", p, map[string]string{"mode": mode, "size": "64m"})
}

// seal makes the mount at a path read-only, and not those below it.
func seal(p string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

func fileSystem(kind, p string, options map[string]string) error {
	context, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	defer unix.Close(context)
	for name, value := range options {
		if err := unix.FsconfigSetString(context, name, value); err != nil {
			return fmt.Errorf("%s: %s: %w", kind, name, err)
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	mount, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	defer unix.Close(mount)
	return attach(mount, p)
}

// keptCapabilities are what root keeps: rights over files and users, none over the kernel, its mounts and other processes.
const keptCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_KILL |
	1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_IPC_LOCK |
	1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SYS_NICE | 1<<unix.CAP_SYS_RESOURCE | 1<<unix.CAP_AUDIT_WRITE | 1<<unix.CAP_SETFCAP

// dropCapabilities gives up what could take the confinement away. Others than root have rights in their user namespace
// only until the next program starts, and programs must not get them back.
func (s *Setup) dropCapabilities() error {
	var kept uint64
	if s.Root {
		kept = keptCapabilities
	}
	if s.Namespaces {
		for c := uintptr(0); ; c++ {
			if c < 64 && kept&(1<<c) != 0 {
				continue
			}
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
				break // the kernel knows no more
			} else if err != nil {
				return fmt.Errorf("drop a capability: %w", err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	for i := range sets {
		word := uint32(kept>>(32*i)) & sets[i].Permitted
		sets[i] = unix.CapUserData{Effective: word, Permitted: word}
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// scope keeps programs from the sockets without a file of others: the session bus of old, the screen.
func (s *Setup) scope() error {
	if s.Landlock < 6 {
		return nil
	}
	attr := struct{ files, net, scoped uint64 }{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	defer unix.Close(int(ruleset))
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

// landlock allows everything but what is hidden or guarded: without mounts nothing can be covered, and Landlock only
// knows what is allowed. So each directory on the way to something hidden is allowed entry by entry.
func (s *Setup) landlock() error {
	plan := &setup.Plan{LandlockABI: uint32(s.Landlock)}
	s.allow(plan, "/")
	for _, p := range s.Show {
		plan.Landlock = append(plan.Landlock, setup.Rule{Path: p, Right: setup.RightWrite})
	}
	return setup.Restrict(plan)
}

// maxRules bounds the rules of one confinement.
const maxRules = 20_000

func (s *Setup) allow(plan *setup.Plan, dir string) {
	plan.Landlock = append(plan.Landlock, setup.Rule{Path: dir, Right: setup.RightList})
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // nobody here can look into it
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		switch {
		case len(plan.Landlock) > maxRules:
			return // what has no rule cannot be reached
		case e.Type()&os.ModeSymlink != 0 || isOneOf(s.Hide, p) || isOneOf(s.Fresh, p):
		case isOneOf(s.Read, p):
			plan.Landlock = append(plan.Landlock, setup.Rule{Path: p, Right: setup.RightRead})
		case e.IsDir() && (above(s.Hide, p) || above(s.Fresh, p) || above(s.Read, p)):
			s.allow(plan, p)
		default:
			plan.Landlock = append(plan.Landlock, setup.Rule{Path: p, Right: setup.RightWrite})
		}
	}
}

// isOneOf reports whether a path is one of a list.
func isOneOf(list []string, p string) bool {
	for _, l := range list {
		if l == p {
			return true
		}
	}
	return false
}

// above reports whether something in a list lies below a path.
func above(list []string, p string) bool {
	for _, l := range list {
		if strings.HasPrefix(l, p+"/") {
			return true
		}
	}
	return false
}
