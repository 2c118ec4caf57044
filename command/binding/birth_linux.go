package binding

import "golang.org/x/sys/unix"

// birthTime is when a file was made, in nanoseconds; 0 where the file system does not say.
func birthTime(fd int, _ *unix.Stat_t) int64 {
	var sx unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &sx) != nil || sx.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return sx.Btime.Sec*1e9 + int64(sx.Btime.Nsec)
}
