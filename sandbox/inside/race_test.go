//go:build linux

package inside_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// racing is a workspace in which a file and a directory are exchanged, without a pause, for links that lead outside.
type racing struct {
	*box
	outside string
	inside  int // the directory "dir", whatever its name is at the moment
}

// race is one operation that is tried while names are exchanged.
type race struct {
	name string
	// prepare makes what use needs, in the directory itself. It may be nil.
	prepare func(r *racing, n string)
	// use returns the real path of what was used, if the operation tells it.
	use func(r *racing, n string) (real, asked string, err error)
	// seen: what falls between check and use can be told from the outcome.
	seen bool
}

var races = []race{
	{"read", nil, func(r *racing, _ string) (string, string, error) {
		return r.read(r.path("file"))
	}, true},
	{"read below", nil, func(r *racing, _ string) (string, string, error) {
		return r.read(r.path("dir/file"))
	}, true},
	{"write", nil, func(r *racing, _ string) (string, string, error) {
		return r.write(r.path("file"), sandbox.WriteOptions{})
	}, true},
	{"write below", nil, func(r *racing, _ string) (string, string, error) {
		return r.write(r.path("dir/file"), sandbox.WriteOptions{})
	}, true},
	{"write exactly", nil, func(r *racing, _ string) (string, string, error) {
		return r.write(r.path("dir/file"), sandbox.WriteOptions{Exact: true, Parents: true})
	}, true},
	{"append", nil, func(r *racing, _ string) (string, string, error) {
		return r.write(r.path("file"), sandbox.WriteOptions{Append: true})
	}, true},
	{"stat", nil, func(r *racing, _ string) (string, string, error) {
		info, err := r.Stat(r.Context(), r.path("file"))
		return info.Path, r.path("file"), err
	}, true},
	{"list", nil, func(r *racing, _ string) (string, string, error) {
		entries, _, err := r.List(r.Context(), r.path("dir"), sandbox.ListOptions{Limit: 10_000})
		for _, e := range entries {
			if e.Name == "secret" {
				r.Error("what is outside was listed")
			}
		}
		return "", "", err
	}, true},
	{"make directories", nil, func(r *racing, n string) (string, string, error) {
		return "", "", r.Mkdir(r.Context(), r.path("dir/made-"+n+"/deep"))
	}, false},
	{"write with parents", nil, func(r *racing, n string) (string, string, error) {
		return r.write(r.path("dir/new-"+n+"/file"), sandbox.WriteOptions{Parents: true})
	}, true},
	{"remove", (*racing).victim, func(r *racing, n string) (string, string, error) {
		return "", "", r.Remove(r.Context(), r.path("dir/victim-"+n), sandbox.RemoveOptions{})
	}, false},
	{"remove a tree", (*racing).tree, func(r *racing, n string) (string, string, error) {
		return "", "", r.Remove(r.Context(), r.path("dir/tree-"+n), sandbox.RemoveOptions{Recursive: true})
	}, false},
	{"rename", (*racing).victim, func(r *racing, n string) (string, string, error) {
		return "", "", r.Rename(r.Context(), r.path("dir/victim-"+n), r.path("dir/renamed-"+n))
	}, false},
}

func (r *racing) read(path string) (real, asked string, err error) {
	data, info, err := r.ReadFile(r.Context(), path, 0, 100)
	if strings.Contains(string(data), "secret") {
		r.Errorf("%q was read from %s", data, path)
	}
	return info.Path, path, err
}

func (r *racing) write(path string, options sandbox.WriteOptions) (real, asked string, err error) {
	info, err := r.WriteFile(r.Context(), path, []byte("+"), options)
	return info.Path, path, err
}

func (r *racing) victim(n string) {
	fd, err := unix.Openat(r.inside, "victim-"+n, unix.O_CREAT|unix.O_WRONLY, 0o644)
	must(r, err)
	must(r, unix.Close(fd))
}

func (r *racing) tree(n string) {
	must(r, unix.Mkdirat(r.inside, "tree-"+n, 0o755))
	fd, err := unix.Openat(r.inside, "tree-"+n+"/leaf", unix.O_CREAT|unix.O_WRONLY, 0o644)
	must(r, err)
	must(r, unix.Close(fd))
}

// raceUsers are who tries an operation at the same time.
const raceUsers = 4

// Whatever is exchanged between check and use, no byte from outside is read, and nothing is changed there: each operation
// is tried until names were exchanged as often as is wanted (TOOLWARD_SWAPS).
func TestLinksSwappedWhileFilesAreUsed(t *testing.T) {
	want := int64(live.Swaps(t, 5_000, 20_000))
	for _, c := range races {
		t.Run(c.name, func(t *testing.T) {
			r := newRacing(t)
			before := contents(t, r.outside)
			swapped, outcomes := r.run(&c, want)
			t.Logf("%d swaps, %d uses: %v", swapped, total(outcomes), outcomes)
			if after := contents(t, r.outside); !maps.Equal(before, after) {
				t.Errorf("outside there was %v, and now there is %v", before, after)
			}
			if outcomes["unavailable"] > 0 {
				t.Error("the connection broke")
			}
			if outcomes["done"] == 0 || outcomes["refused"]+outcomes["refused late"] == 0 {
				t.Error("it was never done, or never refused: nothing was raced for")
			}
			if c.seen && outcomes["refused late"]+outcomes["done elsewhere"] == 0 {
				t.Error("no swap fell between check and use")
			}
		})
	}
}

func newRacing(t *testing.T) *racing {
	t.Helper()
	b, _, outside := newFileBox(t)
	r := &racing{box: b, outside: outside}
	must(t, os.WriteFile(filepath.Join(outside, "file"), []byte("secret"), 0o644))
	for n := range raceUsers { // what is removed inside is there, too
		must(t, os.WriteFile(filepath.Join(outside, "victim-"+strconv.Itoa(n)), []byte("secret"), 0o644))
		must(t, os.MkdirAll(filepath.Join(outside, "tree-"+strconv.Itoa(n), "secret"), 0o755))
	}
	b.put("file", "inside")
	b.put("dir/file", "inside")
	must(t, os.Symlink(filepath.Join(outside, "file"), b.path("file-out")))
	must(t, os.Symlink(outside, b.path("dir-out")))
	fd, err := unix.Open(b.path("dir"), unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	r.inside = fd
	return r
}

// run tries an operation while names are exchanged, and counts what it came to.
func (r *racing) run(c *race, want int64) (swapped int64, outcomes map[string]int64) {
	var swaps, uses atomic.Int64
	stop := make(chan struct{})
	var all, swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{"file", "dir"} {
				if err := unix.Renameat2(unix.AT_FDCWD, r.path(name), unix.AT_FDCWD, r.path(name+"-out"), unix.RENAME_EXCHANGE); err != nil {
					r.Error(err)
					return
				}
				swaps.Add(1)
			}
			r.relink("file-out", "file")
		}
	})
	outcomes = map[string]int64{}
	var mu sync.Mutex
	for user := range raceUsers {
		all.Go(func() {
			// The first name is there outside, too; the others show what was not found.
			for n := strconv.Itoa(user); !r.Failed(); n = strconv.Itoa(user + raceUsers*int(uses.Load()+1)) {
				if c.prepare != nil {
					c.prepare(r, strconv.Itoa(user))
					n = strconv.Itoa(user)
				}
				outcome := outcomeOf(c.use(r, n))
				if c.prepare != nil {
					r.tidy(n)
				}
				mu.Lock()
				outcomes[outcome]++
				done := swaps.Load() >= want && total(outcomes) >= want/10 && enough(c, outcomes)
				mu.Unlock()
				if uses.Add(1); done {
					return
				}
			}
		})
	}
	late := time.AfterFunc(10*patience, func() { r.Error("it takes too long") })
	all.Wait()
	late.Stop()
	close(stop)
	swapper.Wait()
	return swaps.Load(), outcomes
}

// relink puts a link back where a write that was checked before the exchange has replaced it, whichever name it has now.
func (r *racing) relink(link, other string) {
	for _, name := range []string{link, other} {
		if info, err := os.Lstat(r.path(name)); err != nil || info.Mode()&os.ModeSymlink != 0 {
			return
		}
	}
	if err := errors.Join(os.Remove(r.path(link)), os.Symlink(filepath.Join(r.outside, other), r.path(link))); err != nil {
		r.Error(err)
	}
}

// tidy removes what an operation has left, so that the next one finds what it needs.
func (r *racing) tidy(n string) {
	for _, name := range []string{"victim-" + n, "renamed-" + n, "tree-" + n + "/leaf"} {
		unix.Unlinkat(r.inside, name, 0) // it may be gone
	}
	unix.Unlinkat(r.inside, "tree-"+n, unix.AT_REMOVEDIR) // as above
}

// enough reports whether every outcome that the test wants to see was there.
func enough(c *race, outcomes map[string]int64) bool {
	return outcomes["done"] > 0 && outcomes["refused"]+outcomes["refused late"] > 0 && (!c.seen || outcomes["refused late"]+outcomes["done elsewhere"] > 0)
}

// outcomeOf names what an operation came to. Late is what was seen only when the file was open, after its check.
func outcomeOf(real, asked string, err error) string {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch code := sandbox.CodeOf(err); {
	case err == nil && real == asked:
		return "done"
	case err == nil:
		return "done elsewhere" // in the same directory, which had another name by then
	case code == sandbox.CodeEscape && strings.Contains(text, "leads out"), code == sandbox.CodeChanged && strings.Contains(text, "leads to"):
		return "refused"
	case code == sandbox.CodeEscape, code == sandbox.CodeChanged, code == sandbox.CodeDirectory, code == sandbox.CodeNotRegular:
		return "refused late"
	}
	return string(sandbox.CodeOf(err))
}

func total(outcomes map[string]int64) (sum int64) {
	for n := range maps.Values(outcomes) {
		sum += n
	}
	return sum
}

// contents is everything in a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[path] = ""
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	}))
	return all
}
