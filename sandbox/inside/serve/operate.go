//go:build linux

package serve

import (
	"io"
	"os"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
	"github.com/toolward/toolward/sandbox/task"
)

// operate carries out a file operation and returns the last frame.
func (st *stream) operate(c *wire.Call) (wire.Type, []byte) {
	answer, err := st.operation(c)
	if err != nil {
		return wire.Error, wire.EncodeError(failure(c.Path, err))
	}
	return wire.Response, answer
}

func (st *stream) operation(c *wire.Call) (answer []byte, err error) {
	f := st.server.files
	switch c.Op {
	case wire.OpStat:
		info, err := f.stat(c.Path, c.Follow)
		return encoded(info, err)
	case wire.OpRead:
		return st.read(c)
	case wire.OpWrite:
		info, err := f.write(c, st)
		return encoded(info, err)
	case wire.OpMkdir:
		return nil, f.mkdir(c.Path)
	case wire.OpRemove:
		return nil, f.remove(c.Path, &c.Remove, st.gone)
	case wire.OpRename:
		return nil, f.rename(c.Path, c.Target, st.gone)
	case wire.OpList:
		entries, more, err := f.list(c, st.gone)
		return wire.EncodeEntries(entries, more), err
	case wire.OpPorts:
		ports, more, err := ports(st.gone)
		return wire.EncodePorts(ports, more), err
	}
	return wire.EncodeStats(st.server.stats()), nil
}

func encoded(info task.FileInfo, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return wire.EncodeInfo(&info), nil
}

// stat describes what a path leads to, or is.
func (f *files) stat(p string, followed bool) (info task.FileInfo, err error) {
	find := locate
	if followed {
		find = follow
	}
	l, err := find(p)
	if err != nil {
		return info, err
	}
	defer l.close()
	fd, real, err := l.openLast(unix.O_PATH)
	if err != nil {
		if f.readable(l.path()) != nil { // what is not there must not be told apart from what may not be known
			return info, f.readable(l.path())
		}
		return info, err
	}
	defer unix.Close(fd)
	if err := f.readable(real); err != nil {
		return info, err
	}
	info, err = describe(fd, real)
	if err == nil && followed && info.Type == task.TypeSymlink {
		err = unix.ELOOP // put there meanwhile
	}
	return info, err
}

func describe(fd int, real string) (task.FileInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return task.FileInfo{}, err
	}
	return infoOf(&st, real), nil
}

func infoOf(st *unix.Stat_t, real string) task.FileInfo {
	identity := task.Identity{
		Device: st.Dev, Inode: st.Ino, Size: max(st.Size, 0), Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(),
	}
	return task.FileInfo{
		Path: real, Type: typeOf(st.Mode), Mode: os.FileMode(st.Mode & 0o777), Size: identity.Size,
		Modified: time.Unix(0, identity.Modified), Links: uint64(st.Nlink), Identity: identity, // widths differ between architectures
	}
}

func typeOf(mode uint32) task.FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return task.TypeRegular
	case unix.S_IFDIR:
		return task.TypeDirectory
	case unix.S_IFLNK:
		return task.TypeSymlink
	}
	return task.TypeOther
}

// regular refuses everything but a regular file with one name.
func (f *files) regular(info *task.FileInfo, reading bool) error {
	switch {
	case info.Type == task.TypeDirectory:
		return task.Errorf(task.CodeDirectory, "%s is a directory", shown(info.Path))
	case info.Type != task.TypeRegular:
		return task.Errorf(task.CodeNotRegular, "%s is no regular file", shown(info.Path))
	// Another name of the file may lie where the sandbox has no right, and where nobody looks.
	case info.Links > 1 && !(reading && f.hardlinks):
		return task.Errorf(task.CodeHardlink, "%s has %d names", shown(info.Path), info.Links)
	}
	return nil
}

// open opens a file for reading or appending. Nothing has been done with it when it turns out to lie elsewhere.
func (f *files) open(p string, flags int) (fd int, info task.FileInfo, err error) {
	reading := flags&unix.O_ACCMODE == unix.O_RDONLY
	l, err := follow(p)
	if err != nil {
		return -1, info, err
	}
	defer l.close()
	if err := f.allowed(l.path(), reading); err != nil { // also for what is not there
		return -1, info, err
	}
	fd, real, err := l.openLast(flags)
	if err != nil {
		return -1, info, f.notOpened(l, err)
	}
	if err = f.allowed(real, reading); err == nil {
		info, err = describe(fd, real)
	}
	if err == nil {
		err = f.regular(&info, reading)
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was written
		return -1, info, err
	}
	return fd, info, nil
}

func (f *files) allowed(real string, reading bool) error {
	if reading {
		return f.readable(real)
	}
	return f.writable(real)
}

// notOpened tells a socket from other reasons not to open something.
func (f *files) notOpened(l *located, err error) error {
	var st unix.Stat_t
	if err == unix.ENXIO && unix.Fstatat(l.dir, l.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		info := infoOf(&st, l.path())
		if refusal := f.regular(&info, true); refusal != nil {
			return refusal
		}
	}
	return err
}

// lastData is how much of a file goes with the answer.
const lastData = 512 << 10

// read sends a part of a file, the end of it with the answer.
func (st *stream) read(c *wire.Call) ([]byte, error) {
	fd, info, err := st.server.files.open(c.Path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	offset, left := c.Offset, c.Limit
	for min(left, info.Size-offset) > lastData {
		n, err := st.sendPart(fd, offset, min(left, info.Size-offset))
		if err != nil {
			return nil, err
		}
		if n == 0 { // it has become shorter
			break
		}
		offset, left = offset+int64(n), left-int64(n)
	}
	answer := wire.EncodeInfo(&info)
	rest := max(0, min(left, info.Size-offset, lastData))
	start := len(answer)
	answer = append(answer, make([]byte, rest)...)
	n, err := readAll(fd, answer[start:], offset)
	return answer[:start+n], err
}

func (st *stream) sendPart(fd int, offset, most int64) (int, error) {
	taken := buffers.Get().(*[]byte)
	defer buffers.Put(taken)
	frame := *taken
	allowed, err := st.stdout.Take(int(min(most, int64(len(frame)-wire.HeaderSize))))
	if err != nil {
		return 0, err
	}
	n, err := readAll(fd, frame[wire.HeaderSize:wire.HeaderSize+allowed], offset)
	st.stdout.Return(allowed - n)
	if err != nil || n == 0 {
		return 0, err
	}
	return n, st.server.out.sendFrame(wire.Stdout, st.id, frame[:wire.HeaderSize+n])
}

// readAll reads until the buffer is full or the file ends.
func readAll(fd int, b []byte, offset int64) (total int, err error) {
	for total < len(b) {
		n, err := unix.Pread(fd, b[total:], offset+int64(total))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return total, err
		}
		if n == 0 {
			break
		}
		total += n
	}
	return total, nil
}

// list returns the first entries of a directory in order of names.
func (f *files) list(c *wire.Call, gone func() bool) (entries []task.Entry, more bool, err error) {
	l, err := follow(c.Path)
	if err != nil {
		return nil, false, err
	}
	defer l.close()
	if err := f.readable(l.path()); err != nil {
		return nil, false, err
	}
	fd, real, err := l.openLast(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return nil, false, err
	}
	dir := os.NewFile(uintptr(fd), real)
	defer dir.Close()
	if err := f.readable(real); err != nil {
		return nil, false, err
	}
	if c.Exact {
		if err := exactly(c.Path, real); err != nil {
			return nil, false, err
		}
	}
	return firstEntries(dir, int(min(c.Limit, wire.MaxEntries)), gone)
}

// firstEntries keeps no more than twice as many entries as are wanted, however many there are.
func firstEntries(dir *os.File, limit int, gone func() bool) (entries []task.Entry, more bool, err error) {
	cut := func() {
		sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
		if len(entries) > limit {
			entries, more = entries[:limit], true
		}
	}
	for {
		if gone() {
			return nil, false, errStopped
		}
		part, err := dir.ReadDir(512)
		for _, entry := range part {
			entries = append(entries, task.Entry{Name: entry.Name(), Type: entryType(entry.Type())})
		}
		if len(entries) > 2*limit+512 {
			cut()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	cut()
	for size, i := 0, 0; i < len(entries); i++ { // an answer is one frame
		if size += 5 + len(entries[i].Name); size > wire.MaxPayload-64 {
			return entries[:i], true, nil
		}
	}
	return entries, more, nil
}

func entryType(mode os.FileMode) task.FileType {
	switch mode.Type() {
	case 0:
		return task.TypeRegular
	case os.ModeDir:
		return task.TypeDirectory
	case os.ModeSymlink:
		return task.TypeSymlink
	}
	return task.TypeOther
}

// mkdir creates a directory and its missing parents.
func (f *files) mkdir(p string) error {
	l, err := f.makeParents(strings.TrimRight(p, "/")+"/x", false, 0)
	if err != nil {
		return err
	}
	defer l.close()
	return f.readable(l.real)
}

// maxDepth is how many directories are created or removed within each other.
const maxDepth = 256

// makeParents locates a path, creating the directories on the way that are missing. exact: there is no link on the way.
func (f *files) makeParents(p string, exact bool, depth int) (*located, error) {
	l, err := locate(p)
	if task.CodeOf(err) != task.CodeNotFound || depth > maxDepth {
		return l, err
	}
	trimmed := strings.TrimRight(p, "/")
	parent := strings.TrimRight(trimmed[:strings.LastIndexByte(trimmed, '/')+1], "/")
	if parent == "" {
		return nil, err
	}
	above, err := f.makeParents(parent, exact, depth+1)
	if err != nil {
		return nil, err
	}
	defer above.close()
	if err := f.writable(above.path()); err != nil {
		return nil, err
	}
	if exact {
		if err := exactly(parent, above.path()); err != nil {
			return nil, err
		}
	}
	if err := unix.Mkdirat(above.dir, above.name, 0o755); err != nil && err != unix.EEXIST {
		return nil, err
	}
	return locate(p)
}
