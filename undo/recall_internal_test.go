package undo

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recalled is a store that has read a workspace, and was closed.
type recalled struct {
	*testing.T
	dir, workspace string
	calls          int
}

func newRecalled(t *testing.T) *recalled {
	t.Helper()
	root := t.TempDir()
	r := &recalled{T: t, dir: filepath.Join(root, "undo"), workspace: filepath.Join(root, "ws")}
	for i := range 30 {
		r.write(fmt.Sprint("dir", i%3, "/sub/file", i), strings.Repeat("x", i))
	}
	if err := os.Symlink("dir0", filepath.Join(r.workspace, "link")); err != nil {
		t.Fatal(err)
	}
	r.settle()
	r.with(Limits{}, func(s *Store) { r.call(s, nil) })
	return r
}

// settle makes every file old enough for its stamp to count.
func (r *recalled) settle() {
	for start := time.Now(); time.Since(start) < 2*tick; {
		if err := os.WriteFile(filepath.Join(r.dir+"-clock"), nil, 0o600); err != nil { // the file system's clock goes on
			r.Fatal(err)
		}
	}
}

func (r *recalled) write(name, content string) {
	r.Helper()
	at := filepath.Join(r.workspace, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
		r.Fatal(err)
	}
}

func (r *recalled) with(limits Limits, f func(*Store)) {
	r.Helper()
	s, err := Open(r.Context(), r.dir, limits)
	if err != nil {
		r.Fatal(err)
	}
	f(s)
	if err := s.Close(); err != nil {
		r.Fatal(err)
	}
}

// call makes a call, which changes something, and returns its ID.
func (r *recalled) call(s *Store, change func()) string {
	r.Helper()
	r.calls++
	id := fmt.Sprint("call", r.calls)
	if err := s.Begin(r.Context(), Call{ID: id, Workspace: []byte(r.workspace), At: time.Now()}); err != nil {
		r.Fatal(err)
	}
	r.write("new", id)
	if change != nil {
		change()
	}
	if err := s.End(r.Context(), id); err != nil {
		r.Fatal(err)
	}
	return id
}

// known counts the files of which the content is known without reading them.
func known(f *folder) (files int) {
	if f == nil {
		return 0
	}
	for i := range f.items {
		switch one := &f.items[i]; {
		case one.Kind == Directory:
			files += known(one.folder)
		case one.Kind == File && one.settled:
			files++
		}
	}
	return files
}

func TestWhatWasReadIsKnownAfterARestart(t *testing.T) {
	r := newRecalled(t)
	r.with(Limits{}, func(s *Store) {
		if n := known(s.recall(r.workspace)); n != 30 {
			t.Errorf("the content of %d files is known, want 30", n)
		}
		// What has changed meanwhile is seen, and can be taken back as it was before the call.
		r.write("dir1/sub/file1", "changed while nobody looked")
		r.settle()
		id := r.call(s, func() { r.write("dir1/sub/file1", "and again") })
		if _, err := s.TakeBack(t.Context(), Request{ID: id}, Call{ID: "undo", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(r.workspace, "dir1/sub/file1")); err != nil || string(got) != "changed while nobody looked" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A process that is killed writes nothing down at its end.
func TestWhatWasReadFirstIsWrittenDownAtOnce(t *testing.T) {
	r := newRecalled(t)
	if err := os.RemoveAll(filepath.Join(r.dir, "read")); err != nil {
		t.Fatal(err)
	}
	r.with(Limits{}, func(s *Store) {
		r.call(s, nil)
		if n := known(s.recall(r.workspace)); n != 30 {
			t.Errorf("the content of %d files is written down, want 30", n)
		}
	})
}

// What is not as this process left it is not believed, whoever changed it.
func TestWhatIsNotBelieved(t *testing.T) {
	r := newRecalled(t)
	s, err := Open(t.Context(), r.dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := s.recallPath(r.workspace)
	whole, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	// summed has the right sum at its end.
	summed := func(b []byte) []byte {
		sum := sha256.Sum256(b)
		return append(b, sum[:]...)
	}
	body := whole[:len(whole)-sha256.Size]
	replaced := func(old, by string) []byte { return summed(bytes.Replace(body, []byte(old), []byte(by), 1)) }
	put := func(content []byte, mode os.FileMode) func() {
		return func() {
			if err := errors.Join(os.RemoveAll(at), os.WriteFile(at, content, mode)); err != nil {
				t.Fatal(err)
			}
		}
	}
	other := filepath.Join(r.dir, "elsewhere")
	cases := map[string]func(){
		"nothing":            put(nil, 0o600),
		"another version":    put(replaced(", 1\n", ", 0\n"), 0o600),
		"another workspace":  put(replaced(r.workspace, r.workspace[:len(r.workspace)-2]+"wt"), 0o600),
		"another run":        put(replaced(bootID()[:8], "01234567"), 0o600),
		"more at the end":    put(summed(append(bytes.Clone(body), 0)), 0o600),
		"a name that leads":  put(replaced("file4", "../.."), 0o600),
		"names out of order": put(replaced("file4", "zile4"), 0o600),
		"one that others may write": func() {
			put(whole, 0o600)()
			if err := os.Chmod(at, 0o620); err != nil {
				t.Fatal(err)
			}
		},
		"a link": func() {
			put(whole, 0o600)()
			if err := errors.Join(os.Rename(at, other), os.Symlink(other, at)); err != nil {
				t.Fatal(err)
			}
		},
		"a directory": func() {
			if err := errors.Join(os.RemoveAll(at), os.Mkdir(at, 0o700)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for n := 0; n < len(whole); n += 1 + len(whole)/40 {
		cases[fmt.Sprint("cut off after ", n)] = put(whole[:n], 0o600)
		cases[fmt.Sprint("cut off after ", n, " with a sum")] = put(summed(bytes.Clone(body[:min(n, len(body)-1)])), 0o600)
		damaged := bytes.Clone(whole)
		damaged[n] ^= 0x10
		cases[fmt.Sprint("damaged at ", n)] = put(damaged, 0o600)
	}
	for name, spoil := range cases {
		if spoil(); s.recall(r.workspace) != nil {
			t.Errorf("%s is believed", name)
		}
	}
	put(whole, 0o600)()
	if n := known(s.recall(r.workspace)); n != 30 {
		t.Errorf("untouched: %d files", n)
	}
	s.limits.File--
	if s.recall(r.workspace) != nil {
		t.Error("made under other limits, it is believed")
	}
}

// What it names and is not kept any more is read again, also while the store stays open.
func TestWhatIsNotKeptAnyMoreIsReadAgain(t *testing.T) {
	for name, lose := range map[string]func(*recalled, *Store){
		"over a restart": func(r *recalled, s *Store) {
			if err := errors.Join(os.RemoveAll(s.objects.dir), os.Mkdir(s.objects.dir, 0o700)); err != nil {
				r.Fatal(err)
			}
		},
		"directories alone": func(r *recalled, s *Store) {
			var remove func(*folder)
			remove = func(f *folder) {
				if err := os.Remove(s.objects.path(f.hash)); err != nil {
					r.Fatal(err)
				}
				for i := range f.items {
					if below := f.items[i].folder; below != nil {
						remove(below)
					}
				}
			}
			remove(s.recall(r.workspace))
		},
		"by collecting": func(r *recalled, s *Store) {
			r.call(s, nil) // it is known in memory
			if err := s.Collect(r.Context(), time.Now().Add(100*24*time.Hour)); err != nil {
				r.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecalled(t)
			r.T = t
			r.with(Limits{}, func(s *Store) {
				lose(r, s)
				if n := known(s.recall(r.workspace)); n != 0 && name != "directories alone" {
					t.Errorf("%d files are known that are not kept", n)
				}
				id := r.call(s, func() {
					if err := os.RemoveAll(filepath.Join(r.workspace, "dir2")); err != nil {
						t.Fatal(err)
					}
				})
				if _, err := s.TakeBack(t.Context(), Request{ID: id}, Call{ID: "undo", At: time.Now()}); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(filepath.Join(r.workspace, "dir2/sub/file29")); err != nil || string(got) != strings.Repeat("x", 29) {
					t.Errorf("%q, %v", got, err)
				}
			})
		})
	}
}

func TestOnlySoManyWorkspacesAreRemembered(t *testing.T) {
	r := newRecalled(t)
	r.with(Limits{}, func(s *Store) {
		for i := range mostRecalled + 5 {
			if err := os.WriteFile(filepath.Join(s.recallDir(), fmt.Sprint(i, ".tree")), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r.call(s, nil)
	})
	// And what was never completed goes.
	if err := os.WriteFile(filepath.Join(r.dir, "read", "new-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.with(Limits{}, func(*Store) {})
	left, err := os.ReadDir(filepath.Join(r.dir, "read"))
	if err != nil || len(left) != mostRecalled {
		t.Errorf("%d, %v", len(left), err)
	}
}
