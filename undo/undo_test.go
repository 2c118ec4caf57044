package undo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/undo"
)

// Taking back restores byte for byte, whatever the call did, and taking that back restores what the call had done.
func TestTakingBackRestoresEverything(t *testing.T) {
	s := open(t, undo.Limits{})
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			v := &vandal{t, rand.New(rand.NewPCG(seed, 7)), t.TempDir()}
			v.rage(80)
			before := look(t, v.root)
			id := fmt.Sprint("call ", seed)
			during(t, s, id, v.root, func() { v.rage(30) })
			after := look(t, v.root)
			if _, changed := s.Call(id); !changed {
				expect(t, v.root, before)
				return
			}
			takeBack(t, s, undo.Request{ID: id}, id+" undone")
			expect(t, v.root, before)
			takeBack(t, s, undo.Request{ID: id + " undone"}, id+" redone")
			expect(t, v.root, after)
			v.rage(30)
			takeBack(t, s, undo.Request{ID: id, Everything: true}, id+" all")
			expect(t, v.root, before)
		})
	}
}

func TestACallThatChangedNothingIsForgotten(t *testing.T) {
	s, root := open(t, undo.Limits{}), t.TempDir()
	write(t, filepath.Join(root, "a"), "1")
	during(t, s, "call", root, func() { write(t, filepath.Join(root, "a"), "1") })
	if calls := s.Calls(); len(calls) != 0 {
		t.Errorf("kept %v", calls)
	}
}

// What somebody has changed since is never overwritten unasked.
func TestChoices(t *testing.T) {
	set := func(t *testing.T) (*undo.Store, string) {
		s, root := open(t, undo.Limits{}), t.TempDir()
		write(t, filepath.Join(root, "both"), "before")
		write(t, filepath.Join(root, "mine"), "before")
		write(t, filepath.Join(root, "dir/gone"), "before")
		during(t, s, "call", root, func() {
			write(t, filepath.Join(root, "both"), "call")
			write(t, filepath.Join(root, "mine"), "call")
			write(t, filepath.Join(root, "new/file"), "call")
			if err := os.RemoveAll(filepath.Join(root, "dir")); err != nil {
				t.Fatal(err)
			}
		})
		write(t, filepath.Join(root, "both"), "person")
		write(t, filepath.Join(root, "new/other"), "person")
		write(t, filepath.Join(root, "dir"), "person")
		return s, root
	}
	common := map[string]string{"mine": `file 644 "before"`, "new": "40755", "new/other": `file 644 "person"`}
	for _, c := range []struct {
		name      string
		choice    undo.Choice
		want      map[string]string
		conflicts string
	}{
		{"keep", undo.KeepTheirs, map[string]string{"both": `file 644 "person"`, "dir": `file 644 "person"`}, "both dir dir/gone new"},
		{"bring back", undo.BringBack, map[string]string{"both": `file 644 "before"`, "dir": "40755", "dir/gone": `file 644 "before"`}, "new"},
		{"side by side", undo.SideBySide, map[string]string{
			"both": `file 644 "person"`, "both.before-1": `file 644 "before"`, "dir": `file 644 "person"`,
		}, "dir dir/gone new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, root := set(t)
			preview, err := s.Preview(t.Context(), undo.Request{ID: "call", Choice: c.choice})
			if err != nil {
				t.Fatal(err)
			}
			taken := takeBack(t, s, undo.Request{ID: "call", Choice: c.choice}, "undo")
			want := map[string]string{}
			for _, part := range []map[string]string{common, c.want} {
				for at, is := range part {
					want[at] = is
				}
			}
			expect(t, root, want)
			var conflicts []string
			for _, conflict := range taken.Conflicts {
				conflicts = append(conflicts, conflict.Path)
			}
			if got := strings.Join(conflicts, " "); got != c.conflicts {
				t.Errorf("conflicts %q, want %q", got, c.conflicts)
			}
			if asJSON(t, preview) != asJSON(t, taken) {
				t.Errorf("the preview said %v, then %v was done", preview, taken)
			}
		})
	}
}

// Whatever somebody has done since, what they have made stays under the first choice, and every choice comes to an end.
func TestWhatWasDoneSinceStays(t *testing.T) {
	for seed := range uint64(10) {
		for choice := undo.KeepTheirs; choice <= undo.SideBySide; choice++ {
			t.Run(fmt.Sprint(seed, " ", choice), func(t *testing.T) {
				s := open(t, undo.Limits{})
				v := &vandal{t, rand.New(rand.NewPCG(seed, 13)), t.TempDir()}
				v.rage(60)
				during(t, s, "call", v.root, func() { v.rage(25) })
				after := look(t, v.root)
				v.rage(25)
				since := look(t, v.root)
				if _, changed := s.Call("call"); !changed {
					return
				}
				taken := takeBack(t, s, undo.Request{ID: "call", Choice: choice}, "undo")
				now := look(t, v.root)
				for at, is := range since {
					if choice == undo.KeepTheirs && is != after[at] && now[at] != is {
						t.Errorf("%q was %.100s since and is %.100s", at, is, now[at])
					}
				}
				for _, c := range taken.Restored {
					if _, there := now[c.Path]; there != (c.After != nil) {
						t.Errorf("%q is said to be restored, and is there: %t", c.Path, there)
					}
				}
				if len(taken.Restored) == 0 {
					return
				}
				if _, kept := s.Call("undo"); kept {
					takeBack(t, s, undo.Request{ID: "undo"}, "redo")
					expect(t, v.root, since)
				}
			})
		}
	}
}

// A workspace that somebody changed after a crash, so that the rest cannot be done, is told of; the store opens.
func TestAnUnfinishedJournalIsToldOf(t *testing.T) {
	dir, root := filepath.Join(t.TempDir(), "undo"), t.TempDir()
	s := openAt(t, dir, undo.Limits{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "a"), "a file where a directory was")
	journal := fmt.Sprintf(`{"call":"gone","workspace":%s,"staging":".toolward-undo-X","ready":true,"steps":[{"path":%s,"want":{"Kind":102,"Mode":420},"staged":"0"}]}`,
		asJSON(t, []byte(root)), asJSON(t, []byte("a/b")))
	write(t, filepath.Join(dir, "journals", "000000000001.json"), journal)
	again := openAt(t, dir, undo.Limits{})
	if problems := again.Problems(); len(problems) != 1 || !strings.Contains(problems[0].Error(), root) {
		t.Errorf("got %v", problems)
	}
	expect(t, root, map[string]string{"a": `file 644 "a file where a directory was"`, ".toolward-undo-X": "40700"})
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if problems := openAt(t, dir, undo.Limits{}).Problems(); len(problems) != 0 {
		t.Errorf("told twice: %v", problems)
	}
}

func TestOnlyThePathsAskedFor(t *testing.T) {
	s, root := open(t, undo.Limits{}), t.TempDir()
	for _, name := range []string{"src/a", "src2/a", "b"} {
		write(t, filepath.Join(root, name), "before")
	}
	during(t, s, "call", root, func() {
		for _, name := range []string{"src/a", "src2/a", "b"} {
			write(t, filepath.Join(root, name), "after")
		}
	})
	takeBack(t, s, undo.Request{ID: "call", Paths: []string{"./src/", "b"}}, "undo")
	expect(t, root, map[string]string{
		"src": "40755", "src2": "40755", "src/a": `file 644 "before"`, "src2/a": `file 644 "after"`, "b": `file 644 "before"`,
	})
}

// git only adds objects: an undo that removed one could break a commit that somebody made since.
func TestGitObjectsStay(t *testing.T) {
	s, root := open(t, undo.Limits{}), t.TempDir()
	write(t, filepath.Join(root, ".git/HEAD"), "ref: refs/heads/main")
	during(t, s, "call", root, func() {
		write(t, filepath.Join(root, ".git/objects/ab/cdef"), "object")
		write(t, filepath.Join(root, ".git/refs/heads/main"), "abcdef")
	})
	takeBack(t, s, undo.Request{ID: "call"}, "undo")
	expect(t, root, map[string]string{
		".git": "40755", ".git/HEAD": `file 644 "ref: refs/heads/main"`,
		".git/objects": "40755", ".git/objects/ab": "40755", ".git/objects/ab/cdef": `file 644 "object"`,
	})
}

func TestACallThatRunsIsTakenBackOnlyWithEverything(t *testing.T) {
	s, root := open(t, undo.Limits{}), t.TempDir()
	write(t, filepath.Join(root, "a"), "before")
	if err := s.Begin(t.Context(), undo.Call{ID: "call", Workspace: []byte(root), At: begun}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "a"), "after")
	if _, err := s.TakeBack(t.Context(), undo.Request{ID: "call"}, undo.Call{ID: "undo", At: begun}); err == nil {
		t.Error("a call whose changes are not known was taken back")
	}
	takeBack(t, s, undo.Request{ID: "call", Everything: true}, "undo")
	expect(t, root, map[string]string{"a": `file 644 "before"`})
}

func TestLimits(t *testing.T) {
	t.Run("a file above the limit is named and not kept", func(t *testing.T) {
		s, root := open(t, undo.Limits{File: 1000}), t.TempDir()
		large := filepath.Join(root, "large")
		write(t, large, "x")
		if err := os.Truncate(large, 50<<30); err != nil { // sparse: reading it would take minutes
			t.Fatal(err)
		}
		during(t, s, "call", root, func() {
			if err := os.Remove(large); err != nil {
				t.Fatal(err)
			}
		})
		taken := takeBack(t, s, undo.Request{ID: "call"}, "undo")
		if len(taken.Lost) != 1 || taken.Lost[0].Path != "large" || len(taken.Restored) != 0 {
			t.Errorf("got %+v", taken)
		}
	})
	t.Run("too many files", func(t *testing.T) {
		s, root := open(t, undo.Limits{Entries: 10}), t.TempDir()
		for i := range 11 {
			write(t, filepath.Join(root, fmt.Sprint(i/6), fmt.Sprint(i)), "")
		}
		err := s.Begin(t.Context(), undo.Call{ID: "call", Workspace: []byte(root), At: begun})
		if !errors.Is(err, undo.ErrTooMany) || len(s.Calls()) != 0 {
			t.Errorf("got %v, %v", err, s.Calls())
		}
	})
	t.Run("the oldest go", func(t *testing.T) {
		s, root := open(t, undo.Limits{Total: 500_000}), t.TempDir()
		r := rand.New(rand.NewPCG(1, 1))
		noise := make([]byte, 100_000)
		for i := range 12 {
			during(t, s, fmt.Sprint(i), root, func() {
				for j := range noise {
					noise[j] = byte(r.Uint32())
				}
				write(t, filepath.Join(root, "a"), string(noise))
			})
		}
		if s.Size() > 500_000+120_000 {
			t.Errorf("%d bytes are kept", s.Size())
		}
		if _, kept := s.Call("0"); kept {
			t.Error("the first call is kept")
		}
		if _, kept := s.Call("11"); !kept {
			t.Error("the last call is not kept")
		}
		taken := takeBack(t, s, undo.Request{ID: "11"}, "undo")
		if len(taken.Restored) != 1 {
			t.Errorf("got %+v", taken)
		}
	})
	t.Run("more than may be kept at all", func(t *testing.T) {
		s, root := open(t, undo.Limits{Total: 1000}), t.TempDir()
		other := t.TempDir()
		during(t, s, "other", other, func() { write(t, filepath.Join(other, "a"), "1") })
		write(t, filepath.Join(root, "a"), strings.Repeat("x", 600))
		write(t, filepath.Join(root, "b"), strings.Repeat("y", 600))
		if err := s.Begin(t.Context(), undo.Call{ID: "call", Workspace: []byte(root), At: begun}); !errors.Is(err, undo.ErrTooMuch) {
			t.Errorf("a call that nobody can take back: %v", err)
		}
		takeBack(t, s, undo.Request{ID: "other"}, "undo") // one large workspace takes nothing from the others
		expect(t, other, map[string]string{})
	})
	t.Run("the old go", func(t *testing.T) {
		s, root := open(t, undo.Limits{}), t.TempDir()
		during(t, s, "call", root, func() { write(t, filepath.Join(root, "a"), "x") })
		if err := s.Collect(t.Context(), begun.AddDate(0, 0, 8)); err != nil {
			t.Fatal(err)
		}
		if len(s.Calls()) != 0 || s.Size() != 0 {
			t.Errorf("%d bytes of %v are kept", s.Size(), s.Calls())
		}
		during(t, s, "next", root, func() { write(t, filepath.Join(root, "a"), "y") })
		takeBack(t, s, undo.Request{ID: "next"}, "undo")
		expect(t, root, map[string]string{"a": `file 644 "x"`})
	})
}

func TestAStoreIsForOneProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "undo")
	s := openAt(t, dir, undo.Limits{})
	if _, err := undo.Open(t.Context(), dir, undo.Limits{}); !errors.Is(err, undo.ErrLocked) {
		t.Errorf("got %v", err)
	}
	root := t.TempDir()
	during(t, s, "call", root, func() { write(t, filepath.Join(root, "a"), "x") })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, dir, undo.Limits{})
	if calls := again.Calls(); len(calls) != 1 || calls[0].ID != "call" || !calls[0].Ended() || again.Size() != s.Size() {
		t.Errorf("got %+v, %d bytes of %d", calls, again.Size(), s.Size())
	}
	takeBack(t, again, undo.Request{ID: "call"}, "undo")
	expect(t, root, map[string]string{})
}

// A file of the store that was changed is noticed before it reaches the workspace.
func TestDamageIsNotRestored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "undo")
	s, root := openAt(t, dir, undo.Limits{}), t.TempDir()
	write(t, filepath.Join(root, "a"), "before")
	during(t, s, "call", root, func() { write(t, filepath.Join(root, "a"), "after") })
	objects, err := filepath.Glob(filepath.Join(dir, "objects/*/*"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(path string) bool { content, _ := os.ReadFile(path); return string(content) == "before" })
	if err := os.WriteFile(objects[i], []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TakeBack(t.Context(), undo.Request{ID: "call"}, undo.Call{ID: "undo", At: begun}); !errors.Is(err, undo.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	expect(t, root, map[string]string{"a": `file 644 "after"`})
}
