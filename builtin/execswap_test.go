package builtin

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// swaps is how often something is exchanged between the approval of a command and its start.
const swaps = 10_000

// TestSwappedCommandsNeverRun exchanges the program, a link to it, the working directory or the script of an approved
// command before it starts. Now and then nothing is exchanged, and then it must run.
func TestSwappedCommandsNeverRun(t *testing.T) {
	w := newWorld(t)
	text := func(says string) string { return "#!/bin/sh\necho " + says + "\n" }
	program := func(path, says string) {
		t.Helper()
		w.must(os.WriteFile(path+".new", []byte(text(says)), 0o755))
		w.must(os.Rename(path+".new", path))
	}
	link := func(to string) {
		t.Helper()
		os.Remove(w.workspace + "/l")
		w.must(os.Symlink(to, w.workspace+"/l"))
	}
	w.must(os.Mkdir(w.workspace+"/dir", 0o755))
	program(w.workspace+"/p", "judged")
	program(w.workspace+"/other", "swapped")
	program(w.workspace+"/s.sh", "judged")
	program(w.workspace+"/dir/p", "judged")
	link("p")
	kinds := []struct {
		name, command, dir string
		swap, restore      func()
	}{
		{"program", "./p", "", func() { program(w.workspace+"/p", "swapped") }, func() { program(w.workspace+"/p", "judged") }},
		{"written into", "true && ./p", "", func() { w.must(os.WriteFile(w.workspace+"/p", []byte(text("swapped")), 0o755)) }, func() { program(w.workspace+"/p", "judged") }},
		{"link", "./l", "", func() { link("other") }, func() { link("p") }},
		{"script", "sh s.sh", "", func() { program(w.workspace+"/s.sh", "swapped") }, func() { program(w.workspace+"/s.sh", "judged") }},
		{"script behind a link", "sh ./l", "", func() { link("other") }, func() { link("p") }},
		{
			"working directory", "./p", "dir",
			func() {
				w.must(os.Rename(w.workspace+"/dir", w.workspace+"/was"))
				w.must(os.Mkdir(w.workspace+"/dir", 0o755))
				program(w.workspace+"/dir/p", "swapped")
			},
			func() {
				w.must(os.RemoveAll(w.workspace + "/dir"))
				w.must(os.Rename(w.workspace+"/was", w.workspace+"/dir"))
			},
		},
		{
			"link as working directory", "for i in 1; do ./p; done", "dir",
			func() {
				w.must(os.Rename(w.workspace+"/dir", w.workspace+"/was"))
				w.must(os.Symlink(w.workspace, w.workspace+"/dir"))
			},
			func() {
				w.must(os.Remove(w.workspace + "/dir"))
				w.must(os.Rename(w.workspace+"/was", w.workspace+"/dir"))
			},
		},
	}
	ran := 0
	for i := range swaps {
		k := kinds[i%len(kinds)]
		a := args{"command": k.command}
		if k.dir != "" {
			a["workdir"] = k.dir
		}
		r := w.facts("exec", a)
		if rand.IntN(200) == 0 {
			if got := fmt.Sprint(w.finish(r).Content); !strings.Contains(got, "judged") {
				t.Fatalf("%s: not exchanged, and did not run: %s", k.name, got)
			}
			ran++
			continue
		}
		k.swap()
		result := w.finish(r)
		if got := fmt.Sprint(result.Content); !result.IsError || strings.Contains(got, "swapped\n") || !strings.Contains(got, "not started") {
			t.Fatalf("%s, exchange %d: %s", k.name, i, got)
		}
		k.restore()
	}
	t.Logf("%d exchanges, none ran; %d times nothing was exchanged", swaps-ran, ran)
}
