package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A source that is swapped for a link to something secret between check and use, again and again, is either what was
// checked or refused: the secret is never what is mounted.
func TestBindSourceThatIsSwapped(t *testing.T) {
	rounds := 2_000
	if text := os.Getenv("TOOLWARD_SWAPS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	w := newWorld(t)
	secret := filepath.Join(w.Home, ".ssh")
	data, link := filepath.Join(w.Workspace, "data"), filepath.Join(w.Workspace, "link")
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
	rules := BindRules{Home: w.Home, StateDir: w.State, Roots: []string{w.Workspace}, Files: Host}
	// Refused late, or moved: it was exchanged after it was judged.
	mounted, refused, late, moved := 0, 0, 0, 0
	for i := 0; i < rounds || i < 100*rounds && late+moved == 0; i++ {
		binds, err := rules.Validate([]string{data + ":/data"})
		if err != nil {
			refused++
			continue
		}
		f, err := pin(binds[0].Source)
		if err != nil {
			late++
			continue
		}
		var got unix.Stat_t
		err = unix.Fstat(int(f.Fd()), &got)
		if name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); name != data {
			moved++
		}
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
	t.Logf("%d mounted (%d of them elsewhere by then), %d refused by the check, %d between check and use", mounted, moved, refused, late)
	if mounted == 0 || refused == 0 || late+moved == 0 {
		t.Error("nothing was swapped in time")
	}
}
