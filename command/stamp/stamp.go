// Package stamp tells two states of a file apart without reading it.
package stamp

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp is the state of a file.
type Stamp struct {
	Device, Inode uint64
	Size          int64
	Mode, Owner   uint32
	Changed       int64 // change time in nanoseconds, which no program can set
	Settled       bool  // the last change is long enough ago that the next one must have another time
}

// Tick is more than file systems' clocks lag behind.
const Tick = 50 * time.Millisecond

// Of is the stamp of what stands at a path; a link is not followed. What cannot be looked at has one that never settles.
func Of(path string) Stamp {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return Stamp{Settled: errors.Is(err, fs.ErrNotExist)}
	}
	return From(&st)
}

// From is the stamp of what the kernel has said about a file.
func From(st *unix.Stat_t) Stamp {
	changed := time.Unix(st.Ctim.Unix())
	return Stamp{
		uint64(st.Dev), st.Ino, st.Size, uint32(st.Mode), st.Uid, changed.UnixNano(), // widths differ between systems
		time.Since(changed) > Tick,
	}
}
