package identity

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// build recognizes processes that run the daemon's own program. Only toolward itself may use a terminal's sign-in:
// an agent that a person started from that very shell is a child of it too, and could write to the socket directly.
type build struct {
	mu   sync.Mutex
	own  [sha256.Size]byte
	err  error
	once sync.Once
	seen map[fileID][sha256.Size]byte // executables already hashed
}

// fileID changes whenever a file is replaced or written to.
type fileID struct {
	dev, ino uint64
	size     int64
	changed  time.Time
}

func newBuild() *build { return &build{seen: map[fileID][sha256.Size]byte{}} }

// errOtherBuild is what a person sees who uses two builds at once.
var errOtherBuild = errors.New("it is not the program that the daemon runs: use the same toolward, or restart the daemon with this one")

// check returns nil if p runs the same executable as this process, byte for byte.
func (b *build) check(p Process) error {
	b.once.Do(func() { b.own, b.err = b.sumOf(Process{PID: os.Getpid(), Exe: ownPath()}) })
	if b.err != nil {
		return fmt.Errorf("read the daemon's own program: %w", b.err)
	}
	sum, err := b.sumOf(p)
	if err != nil {
		return fmt.Errorf("read the program of process %d: %w", p.PID, err)
	}
	if sum != b.own {
		return errOtherBuild
	}
	return nil
}

func ownPath() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}

const maxExecutable = 1 << 30

func (b *build) sumOf(p Process) (sum [sha256.Size]byte, err error) {
	f, err := openExecutable(p)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return sum, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxExecutable {
		return sum, errors.New("not an ordinary file")
	}
	id, ok := identify(info)
	b.mu.Lock()
	sum, known := b.seen[id]
	b.mu.Unlock()
	if ok && known {
		return sum, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.seen) >= 64 {
		clear(b.seen)
	}
	if ok {
		b.seen[id] = sum
	}
	return sum, nil
}
