// Package disk watches how much sandboxes write: a workspace has no quota, in general, that the kernel would keep.
package disk

import (
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
)

const (
	interval = 2 * time.Second
	// share bounds what watching costs in large workspaces: no more than this part of the time is spent looking.
	share = 20
	// floor is the free space of the host's file system that sandboxes leave alone.
	floor = 512 << 20
	// noise is what a sandbox may have written when the floor is reached by others.
	noise = 64 << 20
)

// Book remembers what was there when the first sandbox of a name was made: one that is made anew gets no new share.
// The zero value is an empty one.
type Book struct {
	mu     sync.Mutex
	before map[string]int64 // bytes, by name
}

// Watch looks at how much a sandbox has written. What was in the workspace before does not count: people's own files are
// none of its doing.
type Watch struct {
	book    *Book
	name    string
	sources []string
	limit   int64
	before  int64
}

// Of returns what watches a sandbox; nil if it has no limit or nothing that it could write to.
func (b *Book) Of(spec *sandbox.Spec) *Watch {
	if spec.Limits.Disk <= 0 {
		return nil
	}
	w := &Watch{book: b, name: spec.Name, limit: spec.Limits.Disk}
	for _, m := range spec.Mounts {
		if m.Writable {
			w.sources = append(w.sources, m.Source)
		}
	}
	if len(w.sources) == 0 {
		return nil
	}
	return w
}

// Run looks until the sandbox has ended. It returns what is wrong when it has written more than it may, "" otherwise.
func (w *Watch) Run(done <-chan struct{}) (reason string) {
	w.before = w.book.beforeOf(w)
	for wait := interval; ; {
		select {
		case <-done:
			return ""
		case <-time.After(wait):
		}
		start := time.Now()
		if reason := w.breach(); reason != "" {
			return reason
		}
		wait = max(interval, share*time.Since(start))
	}
}

func (b *Book) beforeOf(w *Watch) int64 {
	b.mu.Lock()
	before, known := b.before[w.name]
	b.mu.Unlock()
	if known {
		return before
	}
	for _, source := range w.sources {
		before += usage(source)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.before == nil {
		b.before = map[string]int64{}
	}
	b.before[w.name] = before
	return before
}

// breach says what is wrong, "" if nothing is.
func (w *Watch) breach() string {
	var used int64
	for _, source := range w.sources {
		used += usage(source)
	}
	written := used - w.before
	if written > w.limit {
		return fmt.Sprintf("it has written %d MiB, and %d MiB are allowed (sandbox.limits.disk)", written>>20, w.limit>>20)
	}
	for _, source := range w.sources {
		var st unix.Statfs_t
		if written > noise && unix.Statfs(source, &st) == nil && int64(st.Bavail)*int64(st.Bsize) < floor {
			return fmt.Sprintf("it has written %d MiB, and the file system of %s is nearly full", written>>20, source)
		}
	}
	return ""
}

// usage is the bytes that the files below a path take on the disk. Symbolic links are not followed, and of a file
// with several names only one counts.
func usage(path string) int64 {
	root, err := os.OpenRoot(path)
	if err != nil {
		if info, err := os.Lstat(path); err == nil {
			return blocks(info)
		}
		return 0
	}
	defer root.Close() //nolint:errcheck // it was only read
	var total int64
	counted := map[uint64]bool{}
	//nolint:errcheck // what cannot be read now is counted the next time
	fs.WalkDir(root.FS(), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it was removed, or cannot be read: the rest counts
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		if st := info.Sys().(*syscall.Stat_t); st.Nlink > 1 && !entry.IsDir() {
			if counted[st.Ino] {
				return nil
			}
			counted[st.Ino] = true
		}
		total += blocks(info)
		return nil
	})
	return total
}

func blocks(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }
