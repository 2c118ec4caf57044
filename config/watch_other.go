//go:build !linux

package config

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// changes tells when the file of that name may have changed, until the context ends. Editors replace files, so the
// directory is watched.
func changes(ctx context.Context, path string) (<-chan struct{}, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", path, err)
	}
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		_ = watcher.Close()
		return nil, fmt.Errorf("watch %s: %w", filepath.Dir(path), err)
	}
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		defer watcher.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case event, ok := <-watcher.Events:
				if !ok {
					return
				}
				if filepath.Base(event.Name) != filepath.Base(path) {
					continue
				}
			case <-watcher.Errors: // an overflow: look at the file, whatever was missed
			}
			select {
			case changed <- struct{}{}:
			default: // it is told already
			}
		}
	}()
	return changed, nil
}
