package command

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// watches are the directories of which the kernel tells this process when names in them come, go or mean another file.
// It notes a change before the call that makes it returns, so that whoever asks afterwards hears of it.
type watches struct {
	events int      // epoll, for both of the following
	names  int      // inotify
	mounts *os.File // of this name space: something mounted over a directory changes no names
	buffer [8192]byte

	mu    sync.Mutex
	known map[int32]*watched
}

// maxWatched bounds the directories that are listened to.
const maxWatched = 512

// watchedChanges are all by which another look would find another stamp.
const watchedChanges = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// localSystems are file systems that nobody changes except through this kernel, which hears of it: not those of a
// network, of another program, or of several layers.
var localSystems = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC}

// listening begins to listen for this process; nil if the system does not let it.
var listening = sync.OnceValue(func() *watches {
	w := &watches{known: map[int32]*watched{}}
	var err error
	if w.mounts, err = os.Open("/proc/self/mountinfo"); err != nil {
		return nil
	}
	if w.names, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		_ = w.mounts.Close()
		return nil
	}
	if w.events, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		mounts := int(w.mounts.Fd())
		err = unix.EpollCtl(w.events, unix.EPOLL_CTL_ADD, w.names, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(w.names)})
		if err == nil {
			err = unix.EpollCtl(w.events, unix.EPOLL_CTL_ADD, mounts, &unix.EpollEvent{Events: unix.EPOLLPRI, Fd: int32(mounts)})
		}
		if err == nil {
			return w
		}
		_ = unix.Close(w.events)
	}
	_ = unix.Close(w.names)
	_ = w.mounts.Close()
	return nil
})

func (Disk) hear() {
	if w := listening(); w != nil {
		w.mu.Lock()
		w.hear()
		w.mu.Unlock()
	}
}

func (Disk) watch(dirs []seen) *watch {
	w := listening()
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.known)+len(dirs) > maxWatched {
		w.forget()
	}
	all := &watch{}
	for i := range dirs {
		dir := w.add(dirs[i].dir)
		if dir == nil {
			return nil
		}
		all.add(dir)
	}
	return all
}

func (w *watches) add(dir string) *watched {
	var system unix.Statfs_t
	if unix.Statfs(dir, &system) != nil || !slices.Contains(localSystems, int64(system.Type)) { // differs by architecture
		return nil
	}
	id, err := unix.InotifyAddWatch(w.names, dir, watchedChanges)
	if err != nil {
		return nil
	}
	known := w.known[int32(id)]
	if known == nil {
		known = &watched{}
		w.known[int32(id)] = known
	}
	return known
}

// hear reads what the kernel has noted. What cannot be read may be anything.
func (w *watches) hear() {
	var ready [2]unix.EpollEvent
	n, err := unix.EpollWait(w.events, ready[:], 0)
	if err != nil {
		w.all()
		return
	}
	for _, event := range ready[:n] {
		if event.Fd != int32(w.names) || !w.read() {
			w.all()
		}
	}
}

// read reads until there is no more; not if there is no end.
func (w *watches) read() bool {
	for range 16 {
		n, err := unix.Read(w.names, w.buffer[:])
		switch {
		case err == unix.EAGAIN:
			return true
		case err != nil, n < unix.SizeofInotifyEvent:
			return false
		}
		for rest := w.buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			id, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			if mask&unix.IN_Q_OVERFLOW != 0 || size > len(rest) {
				return false
			}
			if dir := w.known[id]; dir != nil {
				dir.changes.Add(1)
			}
			if mask&unix.IN_IGNORED != 0 { // it is gone, or was given up
				delete(w.known, id)
			}
			rest = rest[size:]
		}
	}
	return false
}

// all takes every directory for changed.
func (w *watches) all() {
	for _, dir := range w.known {
		dir.changes.Add(1)
	}
}

// forget stops listening to any directory.
func (w *watches) forget() {
	w.all()
	for id := range w.known {
		_, _ = unix.InotifyRmWatch(w.names, uint32(id))
	}
	clear(w.known)
}
