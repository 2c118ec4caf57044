package undo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolward/toolward/undo"
)

// Many calls in many workspaces, while what is old is collected: every one of them can be taken back.
func TestManyAtOnce(t *testing.T) {
	s := open(t, undo.Limits{})
	var workers sync.WaitGroup
	for w := range 8 {
		root := t.TempDir()
		workers.Go(func() {
			for i := range 12 {
				id := fmt.Sprint(w, "-", i)
				during(t, s, id, root, func() {
					write(t, filepath.Join(root, "same"), fmt.Sprint(i)) // the same content in all workspaces
					write(t, filepath.Join(root, fmt.Sprint("own", w)), id)
				})
			}
			for i := 11; i >= 0; i-- {
				id := fmt.Sprint(w, "-", i)
				takeBack(t, s, undo.Request{ID: id}, id+" undo")
			}
			expect(t, root, map[string]string{})
		})
	}
	done := make(chan struct{})
	collected := make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				collected <- nil
				return
			default:
				if err := s.Collect(t.Context(), begun); err != nil {
					collected <- err
					return
				}
			}
		}
	}()
	workers.Wait()
	close(done)
	if err := <-collected; err != nil {
		t.Error(err)
	}
}

// A directory that is exchanged for a link while the tree is read and while a call is taken back leads nowhere: nothing outside of
// the workspace is kept, and nothing there is changed.
func TestNothingOutsideWhileLinksAreSwapped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "undo")
	s, root, outside := openAt(t, dir, undo.Limits{}), t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "file")
	write(t, secret, "secret")
	write(t, filepath.Join(root, "dir/file"), "before")
	write(t, filepath.Join(root, "spare/file"), "other")
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	var stop, still atomic.Bool
	var swaps atomic.Int64
	swapped := make(chan struct{})
	go func() {
		defer close(swapped)
		at := func(name string) string { return filepath.Join(root, name) }
		for !stop.Load() {
			if still.Load() {
				runtime.Gosched()
				continue
			}
			_ = os.Rename(at("dir"), at("real"))
			_ = os.Rename(at("link"), at("dir"))
			_ = os.Rename(at("dir"), at("link"))
			_ = os.Rename(at("real"), at("dir"))
			swaps.Add(1)
		}
	}()
	began, took := 0, 0
	for i := range 120 {
		still.Store(i%2 == 0) // a call that has begun is taken back while the links are swapped, and one begins meanwhile
		id := fmt.Sprint(i)
		soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond) // it would try longer
		err := s.Begin(soon, undo.Call{ID: id, Workspace: []byte(root), At: begun})
		cancel()
		if err != nil && !errors.Is(err, undo.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err == nil {
			began++
			_ = os.WriteFile(filepath.Join(root, "spare/file"), []byte(id), 0o644)
			still.Store(i%4 != 0)
			_, err = s.TakeBack(t.Context(), undo.Request{ID: id, Everything: true, Choice: undo.BringBack}, undo.Call{ID: id + " undo", At: begun})
			if err == nil {
				took++
			}
		}
		if content, err := os.ReadFile(secret); err != nil || string(content) != "secret" {
			t.Fatalf("outside is %q, %v", content, err)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
			t.Fatalf("outside holds %v, %v", entries, err)
		}
	}
	stop.Store(true)
	<-swapped
	t.Logf("%d swaps, %d calls begun, %d taken back", swaps.Load(), began, took)
	if swaps.Load() == 0 || began == 0 || took == 0 {
		t.Error("nothing was raced for")
	}
	objects, err := filepath.Glob(filepath.Join(dir, "objects/*/*"))
	if err != nil || len(objects) == 0 {
		t.Fatal(objects, err)
	}
	for _, path := range objects {
		if content, err := os.ReadFile(path); err != nil || string(content) == "secret" {
			t.Errorf("what is outside was kept, or %v", err)
		}
	}
}

// What others write in bursts into the workspace does not fail a call: it is read in between.
func TestOthersWriteInBursts(t *testing.T) {
	s, root := open(t, undo.Limits{}), t.TempDir()
	write(t, filepath.Join(root, "mine"), "1")
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for burst := time.NewTicker(60 * time.Millisecond); ; {
			for began := time.Now(); time.Since(began) < 40*time.Millisecond; {
				name := filepath.Join(root, "theirs")
				if os.WriteFile(name, nil, 0o644) != nil || os.Remove(name) != nil {
					return
				}
			}
			select {
			case <-burst.C:
			case <-done:
				burst.Stop()
				return
			}
		}
	}()
	for i := range 10 {
		during(t, s, fmt.Sprint(i), root, func() { write(t, filepath.Join(root, "mine"), fmt.Sprint("2", i)) })
	}
	close(done)
	<-ended
}
