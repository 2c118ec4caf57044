package undo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/undo"
)

// Three calls of a session, and between them a person: what the calls did goes, in one step that can itself be taken back.
func TestSeveralCallsAreTakenBackAsOne(t *testing.T) {
	s, root := open(t, undo.Limits{}), t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	write(t, at("a"), "0")
	write(t, at("between"), "0")
	during(t, s, "1", root, func() { write(t, at("a"), "1"); write(t, at("new/x"), "1"); write(t, at("between"), "1") })
	write(t, at("mine"), "person")
	write(t, at("between"), "person")
	during(t, s, "2", root, func() { write(t, at("a"), "2"); write(t, at("between"), "2"); write(t, at("gone"), "2") })
	during(t, s, "3", root, func() {
		if err := os.Remove(at("gone")); err != nil {
			t.Fatal(err)
		}
	})
	before := look(t, root)
	session := undo.Request{ID: "2", With: []string{"3", "1", "2"}}
	taken := takeBack(t, s, session, "undo")
	if len(taken.Conflicts) != 1 || taken.Conflicts[0].Path != "between" {
		t.Errorf("in conflict are %+v", taken.Conflicts)
	}
	expect(t, root, map[string]string{"a": `file 644 "0"`, "between": `file 644 "2"`, "mine": `file 644 "person"`})
	takeBack(t, s, undo.Request{ID: "undo"}, "redo")
	expect(t, root, before)
	session.Choice = undo.BringBack
	takeBack(t, s, session, "again")
	expect(t, root, map[string]string{"a": `file 644 "0"`, "between": `file 644 "0"`, "mine": `file 644 "person"`})
}

func TestCallsOfTwoWorkspacesAreNotTakenBackTogether(t *testing.T) {
	s, one, two := open(t, undo.Limits{}), t.TempDir(), t.TempDir()
	during(t, s, "one", one, func() { write(t, filepath.Join(one, "a"), "1") })
	during(t, s, "two", two, func() { write(t, filepath.Join(two, "a"), "2") })
	if _, err := s.TakeBack(t.Context(), undo.Request{ID: "one", With: []string{"two"}}, undo.Call{ID: "undo", At: begun}); err == nil {
		t.Error("they were")
	}
	expect(t, one, map[string]string{"a": `file 644 "1"`})
	expect(t, two, map[string]string{"a": `file 644 "2"`})
}

// An agent fills a workspace of its own, so that nobody can bring back what was destroyed elsewhere before.
func TestNobodyPushesOutTheHistoryOfAnotherWorkspace(t *testing.T) {
	s, quiet, busy := open(t, undo.Limits{Total: 500_000}), t.TempDir(), t.TempDir()
	write(t, filepath.Join(quiet, "work"), "of weeks")
	during(t, s, "loss", quiet, func() {
		if err := os.Remove(filepath.Join(quiet, "work")); err != nil {
			t.Fatal(err)
		}
	})
	r := rand.New(rand.NewPCG(1, 1))
	noise := make([]byte, 100_000)
	for i := range 20 {
		during(t, s, fmt.Sprint(i), busy, func() {
			for j := range noise {
				noise[j] = byte(r.Uint32())
			}
			write(t, filepath.Join(busy, "a"), string(noise))
		})
	}
	if _, kept := s.Call("0"); kept {
		t.Error("nothing of the busy workspace went")
	}
	takeBack(t, s, undo.Request{ID: "loss"}, "undo")
	expect(t, quiet, map[string]string{"work": `file 644 "of weeks"`})
}

func TestWhetherATreeFits(t *testing.T) {
	root := t.TempDir()
	for i := range 6 {
		write(t, filepath.Join(root, fmt.Sprint(i%2), fmt.Sprint(i)), strings.Repeat("x", 100))
	}
	if err := os.Symlink("/", filepath.Join(root, "link")); err != nil { // it leads to more than fits anywhere
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		limits undo.Limits
		want   error
	}{
		{"all that is kept", undo.Limits{Entries: 9, Total: 600}, nil},
		{"one entry too many", undo.Limits{Entries: 8}, undo.ErrTooMany},
		{"one byte too much", undo.Limits{Total: 599}, undo.ErrTooMuch},
		{"but for files that are not kept", undo.Limits{File: 99, Total: 1}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := open(t, c.limits).Fits(t.Context(), root); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
