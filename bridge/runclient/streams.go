package runclient

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/toolward/toolward/bridge/hookclient"
)

// streams are the standard streams of the client's shell, and the pipes that stand for them at the daemon.
type streams struct {
	empty  bool // there is nothing to read
	merged bool // both outputs are the same file
	open   bool // the daemon has its ends

	outputs sync.WaitGroup
	lost    atomic.Pointer[syscall.Errno] // why output could not be written; nil: it could, or nobody reads it
}

// look finds out what the standard streams are.
func (s *streams) look() {
	s.empty = nothingToRead(0)
	var out, err syscall.Stat_t
	s.merged = syscall.Fstat(1, &out) == nil && syscall.Fstat(2, &err) == nil && out.Dev == err.Dev && out.Ino == err.Ino
}

// nothingToRead reports whether a descriptor is closed, the null device or an empty file.
func nothingToRead(fd int) bool {
	var in, null syscall.Stat_t
	if syscall.Fstat(fd, &in) != nil {
		return true
	}
	switch in.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		at, err := syscall.Seek(fd, 0, 1)
		return err == nil && at >= in.Size
	case syscall.S_IFCHR:
		return syscall.Stat("/dev/null", &null) == nil && in.Rdev == null.Rdev
	}
	return false
}

// handOver makes pipes, gives the daemon their far ends and carries what goes through the near ones.
func (s *streams) handOver(daemon int, terminal bool) (problem string) {
	var far []int
	pipe := func(nearReads bool) (near int, ok bool) {
		var ends [2]int
		syscall.ForkLock.RLock()
		err := syscall.Pipe(ends[:])
		if err == nil {
			syscall.CloseOnExec(ends[0])
			syscall.CloseOnExec(ends[1])
		}
		syscall.ForkLock.RUnlock()
		if err != nil {
			return -1, false
		}
		if nearReads {
			far = append(far, ends[1])
			return ends[0], true
		}
		far = append(far, ends[0])
		return ends[1], true
	}
	in, out, err, ok := -1, -1, -1, true
	if !s.empty || terminal {
		in, ok = pipe(false)
	}
	if ok {
		out, ok = pipe(true)
	}
	if ok && !s.merged && !terminal {
		err, ok = pipe(true)
	}
	if !ok || syscall.Sendmsg(daemon, []byte{0}, syscall.UnixRights(far...), nil, 0) != nil {
		return "the streams could not be handed to the daemon, so the command did not run"
	}
	for _, fd := range far {
		_ = syscall.Close(fd) // the daemon has it
	}
	s.open = true
	if in >= 0 {
		go carryInput(in)
	}
	for near, to := range map[int]int{out: 1, err: 2} {
		if near >= 0 {
			s.outputs.Go(func() { s.carry(near, to) })
		}
	}
	return ""
}

// wait waits until everything that the command wrote is where the shell wanted it.
func (s *streams) wait() { s.outputs.Wait() }

// carryInput hands over what the command may read. It may never end: whoever writes it may wait for the command.
func carryInput(to int) {
	buf := make([]byte, 64<<10)
	for {
		n, err := syscall.Read(0, buf)
		if again(0, err) {
			continue
		}
		if err != nil || n <= 0 || !hookclient.WriteAll(to, buf[:n]) {
			_ = syscall.Close(to) // the command sees the end
			return
		}
	}
}

// carry hands over what the command writes. Where nobody reads it any more, its end of the pipe is closed: then the
// command is told as it would be without us.
func (s *streams) carry(from, to int) {
	defer syscall.Close(from)
	enlarge(from)
	if moved := moveAll(from, to); moved {
		return
	}
	buf := make([]byte, 256<<10)
	for {
		n, err := syscall.Read(from, buf)
		if again(from, err) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		if err := writeAll(to, buf[:n]); err != 0 {
			if err != syscall.EPIPE && err != syscall.EBADF { // nobody wants it
				s.lost.CompareAndSwap(nil, &err)
			}
			return
		}
	}
}

func writeAll(fd int, data []byte) syscall.Errno {
	for len(data) > 0 {
		n, err := syscall.Write(fd, data)
		if again(fd, err) {
			continue
		}
		if number, ok := err.(syscall.Errno); ok {
			return number
		}
		if n <= 0 {
			return syscall.EIO
		}
		data = data[n:]
	}
	return 0
}

// again reports whether a system call is to be repeated. A descriptor that does not block is made to; see hookclient.
func again(fd int, err error) bool {
	switch err {
	case syscall.EINTR:
		return true
	case syscall.EAGAIN:
		return syscall.SetNonblock(fd, false) == nil
	}
	return false
}
