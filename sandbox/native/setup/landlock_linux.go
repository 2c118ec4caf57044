package setup

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights by the version of Landlock that brought them.
const (
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	allRights1 = 1<<13 - 1
)

// handled is every right of the file system that a version knows.
func handled(abi uint32) uint64 {
	rights := uint64(allRights1)
	if abi >= 2 {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// rightsOf translates a right; a file knows less than a directory.
func rightsOf(right Right, abi uint32, dir bool) uint64 {
	var rights uint64
	switch right {
	case RightRead:
		rights = readRights
	case RightUse:
		rights = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	case RightWrite:
		rights = handled(abi)
	case RightList:
		rights = unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	if !dir {
		rights &= fileRights | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights & handled(abi)
}

type rulesetAttr struct{ fs, net, scoped uint64 }

// pathBeneath has the kernel's layout: packed, 12 bytes.
type pathBeneath struct {
	access [8]byte
	parent int32
}

// Restrict confines this thread, and what it starts, to what the rules of a plan allow.
func Restrict(plan *Plan) error { return landlock(plan, nil, -1) }

// landlock confines this thread, and what it starts, to what the rules allow. self is the program inside, which is
// executed from a descriptor and is in no directory; -1: nothing of the kind is.
func landlock(plan *Plan, fds []int, self int) error {
	attr := rulesetAttr{fs: handled(plan.LandlockABI)}
	size := unsafe.Sizeof(attr.fs)
	if plan.LandlockABI >= 4 {
		size += unsafe.Sizeof(attr.net)
		if plan.LandlockTCP {
			attr.net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if plan.LandlockABI >= 6 {
		size += unsafe.Sizeof(attr.scoped)
		attr.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	ruleset, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return fail("landlock_create_ruleset", "", errno)
	}
	defer unix.Close(int(ruleset))
	for _, rule := range plan.Landlock {
		fd, err := -1, unix.EBADF
		switch n := int(rule.FD); {
		case n == 0:
			fd, err = open(rule.Path)
		case n <= len(fds):
			fd, err = fds[n-1], 0
		}
		if err == unix.ENOENT {
			continue
		}
		if err == 0 {
			err = allow(int(ruleset), fd, rule.Right, plan.LandlockABI)
			_ = unix.Close(fd)
		}
		if err != 0 {
			return fail("landlock_add_rule", rule.Path, err)
		}
	}
	if self < 0 {
		return restrict(int(ruleset))
	}
	// A program in memory is in no file system that Landlock watches: EBADFD, and no rule is needed.
	if err := allow(int(ruleset), self, RightRead, plan.LandlockABI); err != 0 && err != unix.EBADFD {
		return fail("landlock_add_rule", "the program inside", err)
	}
	return restrict(int(ruleset))
}

func restrict(ruleset int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fail("landlock_restrict_self", "", errno)
	}
	return nil
}

// open opens what a rule is about.
func open(path string) (int, unix.Errno) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		errno, _ := err.(unix.Errno)
		return -1, errno
	}
	return fd, 0
}

func allow(ruleset, fd int, right Right, abi uint32) unix.Errno {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return unix.EBADF
	}
	rights := rightsOf(right, abi, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	rule := pathBeneath{access: *(*[8]byte)(unsafe.Pointer(&rights)), parent: int32(fd)}
	_, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	runtime.KeepAlive(&rule)
	return errno
}
