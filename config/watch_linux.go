package config

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// changes tells when the file of that name may have changed, until the context ends. Editors replace files, so the
// directory is watched; and because the daemon's own state lies there too, the kernel is asked for the ends of writes
// only. fsnotify always asks for each single write, and so woke the daemon for every page of every record.
func changes(ctx context.Context, path string) (<-chan struct{}, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", path, err)
	}
	watch := os.NewFile(uintptr(fd), "inotify")
	const ends = unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(path), ends|unix.IN_ONLYDIR); err != nil {
		return nil, fmt.Errorf("watch %s: %w", filepath.Dir(path), errors.Join(err, watch.Close()))
	}
	context.AfterFunc(ctx, func() { _ = watch.Close() })
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		buf := make([]byte, 16<<10)
		for {
			n, err := watch.Read(buf)
			if err != nil {
				return
			}
			if !names(buf[:n], filepath.Base(path)) {
				continue
			}
			select {
			case changed <- struct{}{}:
			default: // it is told already
			}
		}
	}()
	return changed, nil
}

// names reports whether one of the events is about the file of that name, or says that events were lost.
func names(events []byte, name string) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		length := int(binary.NativeEndian.Uint32(events[12:]))
		about := string(events[unix.SizeofInotifyEvent:min(unix.SizeofInotifyEvent+length, len(events))])
		if strings.TrimRight(about, "\x00") == name || mask&unix.IN_Q_OVERFLOW != 0 {
			return true
		}
		events = events[min(unix.SizeofInotifyEvent+length, len(events)):]
	}
	return false
}
