package docker

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// noexec reports whether no program can be run from where a file is. A mount in a container inherits that.
func noexec(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && s.Flags&unix.ST_NOEXEC != 0
}

// stateOf is the state of a file of this machine; false: it cannot be told.
func stateOf(info os.FileInfo) (fileState, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileState{}, false
	}
	s := fileState{directory: info.IsDir(), permissions: info.Mode().Perm(), modified: st.Mtim.Nano(), changed: st.Ctim.Nano()}
	if info.Mode().IsRegular() {
		s.size = st.Size
	}
	return s, true
}

// touch gives a file another time of change, and changes nothing else of it; false: it could not.
func touch(file *os.File) bool {
	before, err := file.Stat()
	if err != nil || before.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 { // programs would lose those
		return false
	}
	was, known := stateOf(before)
	for range 100 { // older kernels tell times in steps of up to 10 ms
		if !known || unix.Fchownat(int(file.Fd()), "", -1, -1, unix.AT_EMPTY_PATH) != nil {
			return false
		}
		after, err := file.Stat()
		if err != nil {
			return false
		}
		if now, _ := stateOf(after); now.changed != was.changed {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}
