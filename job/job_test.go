//go:build unix

package job_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward/job"
)

func signalNumber(state *os.ProcessState) int {
	return int(state.Sys().(syscall.WaitStatus).Signal())
}

// texts are commands whose whole outcome is compared with bash: output, status and the files that are left.
var texts = []string{
	"true", "false", "echo hello", "printf '%s|' a 'b c' ''",
	"true && echo yes", "false && echo no", "true || echo no", "false || echo yes",
	"false && echo a || echo b", "true || echo a && echo b", "false || false && echo a; echo b", "true && false || echo c && echo d",
	"false; true", "true; false", "false; echo one; false", "echo a;",
	"echo b a c | tr ' ' '\\n' | sort", "false | true", "true | false", "printf 'a\\nb\\n' | head -1 && echo after",
	"yes | head -3", "seq 100000 | tail -1", "cat in | wc -l",
	"cat < in", "cat <in >out", "sort in > out && cat out", "echo x >> in; cat in", "echo x >| in; cat in",
	"cat missing", "cat < missing", "cat < missing || echo rescued", "cat < missing | wc -c", "echo a | cat < missing; echo b",
	"ls missing > out 2>&1", "ls missing 2>&1 > out", "ls missing &> out", "ls missing &>> in", "ls missing in > out 2> err",
	"ls missing 2>err <missing2", "ls missing 2>&1 | wc -l", "ls missing 2>/dev/null", "ls in missing > /dev/null 2>&1",
	"echo a > sub/missing/x", "echo a > sub", "echo a > out > out2", "echo a >out 2>&1 >>out2",
	"cat <<'EOF'\nline $HOME\nEOF", "cat <<EOF | tr a-z A-Z\nhome\nEOF", "cat <<EOF\nEOF",
	"cd sub && cat f", "cd sub && pwd && cd .. && pwd", "cd missing && echo no", "cd missing || echo rescued", "cd missing; pwd", "cd sub | cat; pwd",
	"echo a | cd sub; pwd", "cd sub > made && ls ..", "cd in", "cd sub && env | grep PWD | sort",
	"LANG=C env | grep ^LANG", "LC_ALL=C.UTF-8 env | grep ^LC_", "TZ=UTC date -d @0 +%H",
	"timeout 5 echo a", "nice -n 3 echo a | cat", "timeout 0.05 sleep 5", "nohup echo a",
	"sh -c 'kill -9 $$'", "sh -c 'kill -9 $$' | cat", "true | sh -c 'kill -15 $$'; echo after", "sh -c 'exit 77' || echo rescued",
	"./script a 'b c'", "./sub/script", "cd sub && ./script", "./denied", "./badinterpreter",
	"mkdir new && cd new && echo x > f && cd .. && cat new/f", "echo one > made && cat < made | tr o 0 > made2 && cat made2",
}

func (b *bench) fixture() {
	b.write("in", "3\n1\n2\n")
	if err := os.Mkdir(b.dir+"/sub", 0o755); err != nil {
		b.Fatal(err)
	}
	b.write("sub/f", "in sub\n")
	b.script("script", "#!/bin/sh\necho \"${0##*/}\" \"$#\" \"$2\"; exit 3\n")
	b.script("sub/script", "#!/usr/bin/env bash\necho \"${0##*/}\"; pwd\n")
	b.script("badinterpreter", "#!/no/such/interpreter\n")
	b.write("denied", "#!/bin/sh\n")
}

func TestAsBash(t *testing.T) {
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if !compare(t, text) {
				t.Error("this is not for us")
			}
		})
	}
}

// compare runs a text in two equal directories, unless it is not for us: a program is not there, or it goes on where a
// cd failed, which is refused.
func compare(t *testing.T, text string) bool {
	t.Helper()
	ours, theirs := newBench(t), newBench(t)
	ours.fixture()
	theirs.fixture()
	wantOut, wantErr, wantCode := theirs.bash(text)
	plan, err := planFor(text, ours.dir, ours.env)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false
	}
	must(t, err)
	got, err := runPlan(plan, nil)
	if errors.Is(err, job.ErrElsewhere) || errors.Is(got.result.Err, job.ErrElsewhere) {
		return false
	}
	must(t, err)
	defer func() {
		if t.Failed() {
			t.Log(text)
		}
	}()
	if got, want := ours.plain(got.out), theirs.plain(wantOut); got != want {
		t.Errorf("output:\n%s\nbash:\n%s", got, want)
	}
	// The end of the last program by a signal is told by the result.
	if (got.err == "") != (wantErr == "") && got.result.Signal == 0 {
		t.Errorf("standard error: %q, bash: %q", got.err, wantErr)
	}
	if got.result.Code != wantCode || got.result.Err != nil {
		t.Errorf("status %d (%v), bash: %d", got.result.Code, got.result.Err, wantCode)
	}
	if got, want := ours.plain(ours.tree()), theirs.plain(theirs.tree()); got != want {
		t.Errorf("files left:\n%s\nbash:\n%s", got, want)
	}
	return true
}

// message is what stands before a message: the program by its path or by its name, and who says it.
var message = regexp.MustCompile(`(?mi)^(bash: line [0-9]+: |toolward: |)(?:/[^ :]*/)?([a-z0-9./_-]+: .*)$`)

// plain makes texts comparable: places by name, and messages without their author.
func (b *bench) plain(text string) string {
	text = strings.ReplaceAll(strings.ToLower(text), strings.ToLower(b.dir), ".")
	return message.ReplaceAllString(text, "$2")
}

// tree is all files of a bench with their content.
func (b *bench) tree() string {
	b.Helper()
	list := exec.Command("sh", "-c", `find . | sort | while read -r f; do echo "== $f"; test -f "$f" && cat "$f"; done; true`)
	list.Dir = b.dir
	out, err := list.CombinedOutput()
	if err != nil {
		b.Fatal(err)
	}
	return string(out)
}
