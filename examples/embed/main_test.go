package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The program is built and run as a reader would, and stays short enough to be read at once.
func TestEmbed(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(source, []byte("\n")); lines > 60 {
		t.Errorf("main.go has %d lines", lines)
	}
	program := filepath.Join(t.TempDir(), "embed")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := exec.Command(program)
	run.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := run.CombinedOutput()
	const want = "Ada [{Hello, Ada.  []}] <nil>\n" +
		"Mallory [] greet refused (denied_by_user): The call did not run: a person declined it. Do not try the same effect another way; ask the user: a stranger\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}
