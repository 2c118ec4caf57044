package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
)

func TestASecondDaemonIsRefused(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	first, err := Open(t.Context(), home, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), home, Options{})
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("second daemon: %v, want a LockedError with pid %d", err, os.Getpid())
	}
	if want := fmt.Sprintf("pid %d", os.Getpid()); !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not name the pid", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context(), home, Options{})
	if err != nil {
		t.Fatalf("after the first one ended: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

// A daemon that was killed while it started a process: that process has the lock for a moment more.
func TestLockOfADaemonThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := t.TempDir()
		ended := exec.Command("true")
		if err := ended.Run(); err != nil {
			t.Fatal(err)
		}
		left, err := os.OpenFile(filepath.Join(home, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(left, ended.Process.Pid)
		}
		if err = errors.Join(err, syscall.Flock(int(left.Fd()), syscall.LOCK_EX)); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := lockHome(home); err == nil || time.Since(begin) < lockPatience || !strings.Contains(err.Error(), strconv.Itoa(ended.Process.Pid)) {
			t.Errorf("a lock that stays: %v after %v", err, time.Since(begin))
		}
		time.AfterFunc(lockPatience/2, func() { left.Close() })
		lock, err := lockHome(home)
		if err != nil {
			t.Fatalf("a lock that is let go: %v", err)
		}
		begin = time.Now()
		if _, err := lockHome(home); err == nil || time.Since(begin) > 0 {
			t.Errorf("the lock of a daemon that runs: %v after %v", err, time.Since(begin))
		}
		lock.Close()
	})
}

func TestHomesThatCannotBeTrusted(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(t *testing.T, dir string) string // returns the home
		want string
	}{
		{"no path", func(*testing.T, string) string { return "" }, "no path"},
		{"a file", func(t *testing.T, dir string) string {
			return writeFile(t, filepath.Join(dir, "home"), "")
		}, "cannot be created"},
		{"below a file", func(t *testing.T, dir string) string {
			return filepath.Join(writeFile(t, filepath.Join(dir, "file"), ""), "home")
		}, "cannot be created"},
		{"the database is a link", func(t *testing.T, dir string) string {
			if err := os.Symlink(writeFile(t, filepath.Join(dir, "elsewhere"), ""), filepath.Join(dir, FileName)); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "not a plain file"},
		{"the lock is a link", func(t *testing.T, dir string) string {
			if err := os.Symlink(writeFile(t, filepath.Join(dir, "elsewhere"), ""), filepath.Join(dir, "lock")); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "symbolic link"},
		{"the database is a directory", func(t *testing.T, dir string) string {
			if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "not a plain file"},
		{"the database is something else", func(t *testing.T, dir string) string {
			writeFile(t, filepath.Join(dir, FileName), strings.Repeat("not a database ", 100))
			return dir
		}, "not a database"},
		{"read-only", readOnly, "cannot be written"},
		{"of another user", foreign, "belongs to uid"},
		{"the database of another user", func(t *testing.T, dir string) string {
			writeFile(t, filepath.Join(dir, FileName), "")
			foreign(t, filepath.Join(dir, FileName))
			return dir
		}, "belongs to uid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := test.make(t, t.TempDir())
			db, err := Open(t.Context(), home, Options{})
			if err == nil {
				_ = db.Close()
				t.Fatal("the home was accepted")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want %q in it", err, test.want)
			}
		})
	}
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func foreign(t *testing.T, path string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAFullDiskDeniesAndRecovers fills the disk under an open log: decisions
// fail, one alert is told, what was written stays, and all goes on when there
// is room again.
func TestAFullDiskDeniesAndRecovers(t *testing.T) {
	disk := smallDisk(t)
	db, err := Open(t.Context(), filepath.Join(disk, "home"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	alerts, recoveries := make(chan error, 100), make(chan bool, 100)
	log := startLog(t, db, audit.Options{
		OnUnavailable: func(err error) { alerts <- err },
		OnAvailable:   func() { recoveries <- true },
	})
	defer log.Close()
	written := decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	running := decide(t, log, typical(toolward.Allow), "")

	ballast := fill(t, disk)
	failed := 0
	for range 50 {
		if _, err := log.Decide(context.Background(), typical(toolward.Allow)); err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Fatal("the disk is full and every decision was recorded")
	}
	if n := len(alerts); n != 1 {
		t.Errorf("%d alerts, want one", n)
	}
	outcome := &toolward.OutcomeRecord{Status: toolward.StatusOK}
	if err := log.Conclude(context.Background(), running, outcome); err == nil {
		t.Error("an outcome was recorded on a full disk")
	}
	if _, err := log.Query(t.Context(), audit.Filter{}); err != nil {
		t.Errorf("reading on a full disk: %v", err)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	again := decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	if again <= written || len(recoveries) != 1 {
		t.Errorf("decision %d after %d; %d recoveries told, want one", again, written, len(recoveries))
	}
	// The outcome that could not be written is written now, by itself.
	tail := log.Tail()
	defer tail.Close()
	kept, err := log.Query(t.Context(), audit.Filter{Ref: int64(running)})
	if err != nil {
		t.Fatal(err)
	}
	for len(kept) == 0 {
		if r := <-tail.C; r.Ref == int64(running) {
			kept = append(kept, r)
		}
	}
	if kept[0].Status != "ok" {
		t.Errorf("the kept outcome says %q", kept[0].Status)
	}
	verify(t, log)
}

// fill takes all the room that is left.
func fill(t *testing.T, dir string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "ballast")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 64 << 10; size > 0; {
		if n, err := file.Write(make([]byte, size)); err != nil || n < size {
			size /= 2
		}
	}
	return path
}
