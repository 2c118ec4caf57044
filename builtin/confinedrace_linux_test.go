package builtin

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/internal/live"
)

// exchange makes two names change places, at once.
func (w *world) exchange(a, b string) {
	w.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, w.workspace+"/"+a, unix.AT_FDCWD, w.workspace+"/"+b, unix.RENAME_EXCHANGE); err != nil {
		w.Fatal(err)
	}
}

// confinedUse is a call of a tool on something that is exchanged after it was decided.
type confinedUse struct {
	tool, swapped string // "file" or "dir"
	args          args
	done          string // what the tool says where nothing was exchanged
}

var confinedUses = []confinedUse{
	{"read", "file", args{"path": "file"}, "plain"},
	{"read", "dir", args{"path": "dir/file"}, "plain"},
	{"write", "file", args{"path": "file", "content": "plain, written\n"}, "Replaced"},
	{"write", "dir", args{"path": "dir/file", "content": "plain, written\n"}, "Replaced"},
	{"write", "dir", args{"path": "dir/deep/er/new", "content": "plain\n"}, "Created"},
	{"edit", "dir", args{"path": "dir/file", "oldText": "plain", "newText": "plain, edited"}, "Changed"},
	{"list", "dir", args{"path": "dir"}, "file"},
	{"search", "dir", args{"path": "dir", "pattern": "plain"}, "plain"},
	{"apply_patch", "dir", args{"patch": "*** Begin Patch\n*** Delete File: dir/victim\n*** End Patch\n"}, "Done"},
	{"apply_patch", "dir", args{"patch": "*** Begin Patch\n*** Add File: dir/added\n+plain\n*** End Patch\n"}, "Done"},
	{"apply_patch", "dir", args{"patch": "*** Begin Patch\n*** Update File: dir/victim\n*** Move to: dir/moved\n@@\n-plain\n+plain too\n*** End Patch\n"}, "Done"},
}

// swapLinks are the links that files and directories are exchanged for, and where they lead.
func (w *world) swapLinks() map[string]string {
	return map[string]string{"file-in": "other/file", "dir-in": "other", "file-out": w.outside + "/file", "dir-out": w.outside}
}

// relink puts a link back where a write that was checked before the exchange has replaced it.
func (w *world) relink(link string) {
	w.Helper()
	path := w.workspace + "/" + link
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return
	}
	if err := errors.Join(os.Remove(path), os.Symlink(w.swapLinks()[link], path)); err != nil {
		w.Error(err)
	}
}

// newSwapWorld is a confined workspace with a directory that nothing was decided about, in the sandbox too, and links to
// it and out of it.
func newSwapWorld(t *testing.T) *world {
	w := newWorld(t)
	for _, name := range []string{"ws/file", "ws/dir/file", "ws/dir/victim"} {
		w.put(name, "plain\n")
	}
	for _, name := range []string{"ws/other/file", "ws/other/victim", "ws/other/secret", "outside/file", "outside/victim", "outside/secret"} {
		w.put(name, "secret plain\n")
	}
	for link, to := range w.swapLinks() {
		if err := os.Symlink(to, w.workspace+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	w.confine()
	return w
}

// untouched checks what nothing was decided about.
func (w *world) untouched() {
	w.Helper()
	for _, dir := range []string{"ws/other", "outside"} {
		w.tidy(dir, "file", "secret", "victim")
		for _, name := range []string{"/file", "/secret", "/victim"} {
			w.holds(dir+name, "secret plain\n")
		}
	}
}

// reset puts the directory back as it was.
func (w *world) reset() {
	for _, name := range []string{"/dir/added", "/dir/moved"} {
		os.Remove(w.workspace + name)
	}
	os.RemoveAll(w.workspace + "/dir/deep")
	for _, name := range []string{"/file", "/dir/file", "/dir/victim"} {
		if data, err := os.ReadFile(w.workspace + name); err != nil || string(data) != "plain\n" {
			if err := os.WriteFile(w.workspace+name, []byte("plain\n"), 0o666); err != nil {
				w.Fatal(err)
			}
		}
	}
	if os.Geteuid() == 0 { // what the test has made is the sandbox's
		for _, name := range []string{"/file", "/dir/file", "/dir/victim"} {
			os.Lchown(w.workspace+name, 10001, 10001) // a write that fails says so
		}
	}
}

// What is exchanged for a link between the decision and the use is refused, wherever the link leads: out of the sandbox,
// or to another place in it, about which nothing was decided.
func TestConfinedToolsUseWhatWasDecided(t *testing.T) {
	w := newSwapWorld(t)
	for _, u := range confinedUses {
		for _, to := range []string{"", "-in", "-out"} {
			w.reset()
			r := w.facts(u.tool, u.args)
			if to != "" {
				w.exchange(u.swapped, u.swapped+to)
			}
			result := w.finish(r)
			if to != "" {
				w.exchange(u.swapped, u.swapped+to)
			}
			said := text(result)
			switch {
			case to == "" && (result.IsError || !strings.Contains(said, u.done)):
				t.Errorf("%s %v, nothing exchanged: %q", u.tool, u.args, said)
			case to != "" && (!result.IsError && u.tool != "search" || strings.Contains(said, "secret")):
				t.Errorf("%s %v, exchanged for %s%s: %q", u.tool, u.args, u.swapped, to, said)
			}
			w.untouched()
		}
	}
}

// The same while names are exchanged without a pause: TOOLWARD_SWAPS times for each of reading and writing.
func TestConfinedToolsWhileLinksAreSwapped(t *testing.T) {
	want := int64(live.Swaps(t, 2_000, 5_000))
	for _, u := range []confinedUse{confinedUses[0], confinedUses[1], confinedUses[2], confinedUses[3], confinedUses[6], confinedUses[7]} {
		t.Run(u.tool+" "+u.swapped, func(t *testing.T) {
			w := newSwapWorld(t)
			var swaps atomic.Int64
			stop := make(chan struct{})
			var swapper sync.WaitGroup
			swapper.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						link := u.swapped + []string{"-in", "-out"}[i/2%2]
						w.exchange(u.swapped, link)
						if swaps.Add(1); i%2 == 1 {
							w.relink(link)
						}
					}
				}
			})
			tooLong := time.AfterFunc(10*time.Minute, func() { t.Error("it takes too long") })
			defer tooLong.Stop()
			// Refused late is what was right when it was decided, and not any more when it was used.
			done, refused, late := 0, 0, 0
			for i := 0; !t.Failed() && (swaps.Load() < want || done == 0 || late == 0 || i < int(want/50)); i++ {
				r, err := w.request(u.tool, u.args)
				if err != nil || len(r.Facts.Targets) == 0 || strings.Contains(r.Facts.Targets[0].Real, "other") {
					refused++ // or something else was decided
					continue
				}
				switch result := w.finish(r); {
				case strings.Contains(text(result), "secret"):
					t.Errorf("%q", text(result))
				case result.IsError:
					late++
				default:
					done++
				}
			}
			close(stop)
			swapper.Wait()
			t.Logf("%d swaps: %d done, %d refused by the decision, %d refused between decision and use", swaps.Load(), done, refused, late)
			w.untouched()
		})
	}
}
