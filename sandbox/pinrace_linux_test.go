package sandbox

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A source that is swapped for a link to something secret between check and use, again and again, is either what was
// checked or refused: the secret is never what is mounted.
func TestBindSourceThatIsSwapped(t *testing.T) {
	rounds := 10_000
	if os.Getenv("TOOLWARD_LIVE") != "" {
		rounds = 100_000
	}
	w := newWorld(t)
	secret := filepath.Join(w.home, ".ssh")
	data, link := filepath.Join(w.workspace, "data"), filepath.Join(w.workspace, "link")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	var forbidden unix.Stat_t
	if err := unix.Stat(secret, &forbidden); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default: // the directory and the link change places, at once
				_ = unix.Renameat2(unix.AT_FDCWD, data, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	})
	rules := BindRules{Home: w.home, StateDir: w.state, Roots: []string{w.workspace}, Files: Host}
	mounted, refused := 0, 0
	for range rounds {
		binds, err := rules.Validate([]string{data + ":/data"})
		if err != nil {
			refused++
			continue
		}
		f, err := pin(binds[0].Source)
		if err != nil {
			refused++
			continue
		}
		var got unix.Stat_t
		err = unix.Fstat(int(f.Fd()), &got)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got.Dev == forbidden.Dev && got.Ino == forbidden.Ino {
			t.Fatal("the secret directory would be mounted")
		}
		mounted++
	}
	close(stop)
	swapper.Wait()
	t.Logf("%d mounted, %d refused", mounted, refused)
	if mounted == 0 || refused == 0 {
		t.Error("nothing was swapped in time")
	}
}
