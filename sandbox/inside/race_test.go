//go:build linux

package inside_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
)

// swaps is how often a file and a directory are exchanged for links that lead outside while they are used.
const swaps = 100_000

// Whatever is exchanged between check and use, no byte from outside is read, and none is written there.
func TestLinksSwappedWhileFilesAreUsed(t *testing.T) {
	b, _, outside := newFileBox(t)
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte("secret"), 0o644))
	b.put("file", "inside")
	b.put("dir/file", "inside")
	must(t, os.Symlink(filepath.Join(outside, "file"), b.path("file-out")))
	must(t, os.Symlink(outside, b.path("dir-out")))
	var swapped, used atomic.Int64
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{"file", "dir"} {
				if err := unix.Renameat2(unix.AT_FDCWD, b.path(name), unix.AT_FDCWD, b.path(name+"-out"), unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
				swapped.Add(1)
			}
		}
	})
	var got sync.Map // what reading came to
	for _, use := range []func(path string) error{
		func(path string) error {
			data, _, err := b.ReadFile(b.Context(), path, 0, 100)
			if strings.Contains(string(data), "secret") {
				t.Errorf("%q was read from %s", data, path)
			}
			return err
		},
		func(path string) error {
			_, err := b.WriteFile(b.Context(), path, []byte("inside, new"), sandbox.WriteOptions{})
			return err
		},
		func(path string) error {
			_, err := b.WriteFile(b.Context(), path, []byte("+"), sandbox.WriteOptions{Append: true})
			return err
		},
		func(path string) error {
			_, err := b.WriteFile(b.Context(), path+"-x/y", []byte("inside, new"), sandbox.WriteOptions{Parents: true})
			if err == nil {
				err = b.Remove(b.Context(), path+"-x", true)
			}
			return err
		},
	} {
		for _, path := range []string{b.path("file"), b.path("dir/file")} {
			wait.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					count, _ := got.LoadOrStore(sandbox.CodeOf(use(path)), new(atomic.Int64))
					count.(*atomic.Int64).Add(1)
					used.Add(1)
				}
			})
		}
	}
	for end := time.Now().Add(patience); time.Now().Before(end) && !t.Failed() && (swapped.Load() < swaps || used.Load() < 5_000); {
		time.Sleep(10 * time.Millisecond)
	}
	close(stop)
	wait.Wait()
	got.Range(func(code, count any) bool {
		t.Logf("%q: %d times", code, count.(*atomic.Int64).Load())
		return true
	})
	if swapped.Load() < swaps {
		t.Errorf("only %d swaps", swapped.Load())
	}
	for _, outcome := range []sandbox.Code{"", sandbox.CodeEscape} { // else nothing was raced for
		if _, ok := got.Load(outcome); !ok {
			t.Errorf("%q never happened", outcome)
		}
	}
	if _, ok := got.Load(sandbox.CodeUnavailable); ok {
		t.Error("the connection broke")
	}
	entries, err := os.ReadDir(outside)
	must(t, err)
	for _, entry := range entries {
		content, _ := os.ReadFile(filepath.Join(outside, entry.Name()))
		if string(content) != "secret" {
			t.Errorf("outside, %s is now %q", entry.Name(), content)
		}
	}
}
