package native

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
)

const (
	diskInterval = 2 * time.Second
	// diskShare bounds what watching costs in large workspaces: no more than this part of the time is spent looking.
	diskShare = 20
	// diskFloor is the free space of the host's file system that sandboxes leave alone.
	diskFloor = 512 << 20
	// diskNoise is what a sandbox may have written when the floor is reached by others.
	diskNoise = 64 << 20
)

// diskWatch looks at how much a sandbox has written: a workspace has no quota, in general, that the kernel would keep.
type diskWatch struct {
	sources []string
	limit   int64
	before  int64 // bytes that were there when the sandbox was first made
}

// watchDisk ends the sandbox when it has written more than it may. What was in the workspace before does not count:
// people's own files are none of its doing.
func (b *box) watchDisk(spec *sandbox.Spec) {
	if spec.Limits.Disk <= 0 {
		return
	}
	w := diskWatch{limit: spec.Limits.Disk}
	for _, m := range spec.Mounts {
		if m.Writable {
			w.sources = append(w.sources, m.Source)
		}
	}
	if len(w.sources) == 0 {
		return
	}
	name := spec.Name
	b.engine.live.Go(func() {
		w.before = b.engine.diskBefore(name, w.sources)
		for wait := diskInterval; ; {
			select {
			case <-b.done:
				return
			case <-time.After(wait):
			}
			start := time.Now()
			if reason := w.breach(); reason != "" {
				b.breached(reason)
				return
			}
			wait = max(diskInterval, diskShare*time.Since(start))
		}
	})
}

// diskBefore is how much was there when the first sandbox of a name was made: one that is made anew gets no new share.
func (e *Engine) diskBefore(name string, sources []string) int64 {
	e.mu.Lock()
	before, known := e.diskBase[name]
	e.mu.Unlock()
	if known {
		return before
	}
	for _, source := range sources {
		before += diskUsage(source)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.diskBase[name] = before
	return before
}

// breach says what is wrong, "" if nothing is.
func (w *diskWatch) breach() string {
	var used int64
	for _, source := range w.sources {
		used += diskUsage(source)
	}
	written := used - w.before
	if written > w.limit {
		return fmt.Sprintf("it has written %d MiB, and %d MiB are allowed (sandbox.limits.disk)", written>>20, w.limit>>20)
	}
	for _, source := range w.sources {
		var st unix.Statfs_t
		if written > diskNoise && unix.Statfs(source, &st) == nil && int64(st.Bavail)*st.Bsize < diskFloor {
			return fmt.Sprintf("it has written %d MiB, and the file system of %s is nearly full", written>>20, source)
		}
	}
	return ""
}

// breached stops everything where it is, tells, and ends the sandbox.
func (b *box) breached(reason string) {
	if b.group != nil {
		b.group.freeze()
	}
	b.mu.Lock()
	b.reason = reason
	b.mu.Unlock()
	b.engine.log.Warn("a sandbox was ended", "name", b.state.Name, "reason", reason)
	if b.group != nil {
		b.group.kill()
		b.group.thaw()
	}
	b.end() //nolint:errcheck // the next start removes what could not be removed
}

// diskUsage is the bytes that the files below a path take on the disk. Symbolic links are not followed, and of a file
// with several names only one counts.
func diskUsage(path string) int64 {
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
