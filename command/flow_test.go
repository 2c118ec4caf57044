package command

import (
	"slices"
	"testing"

	"github.com/toolward/toolward"
)

// Where a command starts, after every cd that may have happened or not.
func TestWhereCommandsStart(t *testing.T) {
	w := newWorld(t, map[string]string{"/ws/sub/a.txt": "f", "/ws/sub/s/b.txt": "f", "/ws/a.txt": "f"})
	for command, want := range map[string][]string{
		"ls":                              {w.dir},
		"cd sub && ls":                    {w.dir + "/sub"},
		"cd sub; ls":                      {w.dir + "/sub"},
		"cd nowhere && ls":                {w.dir + "/nowhere"},
		"cd nowhere; ls":                  {w.dir + "/nowhere", w.dir},
		"cd nowhere || ls":                {w.dir},
		"cd sub || cd s && ls":            {w.dir + "/sub/s", w.dir + "/sub"}, // the second cd does not run
		"ls || cd sub || cd s && ls":      {w.dir + "/s", w.dir, w.dir + "/sub"},
		"touch x; cd sub; ls":             {w.dir + "/sub", w.dir}, // it may have been removed
		"touch x; cd sub && ls":           {w.dir + "/sub"},
		"cd sub | ls; ls":                 {w.dir},
		"cd sub && cat a.txt; cd s && ls": {w.dir + "/sub/s"},
		"bash -c 'cd sub && ls'; ls":      {w.dir},
	} {
		a := w.evaluate(t, onMiss(Developer), command)
		if !a.OK {
			t.Fatalf("%s: %s", command, a.Reason)
		}
		last := a.Segments[len(a.Segments)-1]
		got := append([]string{last.Dir}, last.OtherDir...)
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: starts in %q, want %q", command, got, want)
		}
	}
}

// What cd does that is not followed is blocked, for a program of that name, too.
func TestOtherFormsOfCd(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/cd": "x", "/ws/sub/a.txt": "f"})
	for command, want := range map[string]bool{
		"cd sub && ls": false, "cd ../ws && ls": false,
		"cd && ls": true, "cd - && ls": true, "cd sub sub && ls": true, "cd -P sub && ls": true, "cd sub > x && ls": true,
		"CI=1 cd sub && ls": true, "cd sub/../sub && ls": true, "cd //ws && ls": true, "cd ~ && ls": true, "cd s* && ls": true,
	} {
		a := w.evaluate(t, onMiss(Developer, "*"), command)
		if blocked := a.Segments[0].Blocked != ""; blocked != want || want && verdict(a) == toolward.Allow {
			t.Errorf("%s: blocked %t, %s", command, blocked, verdict(a))
		}
	}
}

// Nobody follows a command through directories that multiply.
func TestManyDirectories(t *testing.T) {
	w := newWorld(t, map[string]string{})
	command := ""
	for range 60 {
		command += "cd a; "
	}
	a := w.evaluate(t, onMiss(Developer), command+"ls")
	if last := a.Segments[len(a.Segments)-1]; !last.refuses(Expansion) || verdict(a) == toolward.Allow {
		t.Errorf("%s %v", verdict(a), last.Asks)
	}
}

// $PWD is another one in every directory in which a command may start, and takes part in splitting.
func TestPWD(t *testing.T) {
	w := newWorld(t, map[string]string{"/ws/a b/c.txt": "f", "/ws/a.txt": "f"})
	for command, asks := range map[string]bool{
		"ls $PWD": false, "cd nowhere; ls $PWD": true, "cd nowhere; ls \"$PWD\"": true, "cd 'a b' && ls $PWD": true, "cd 'a b' && ls \"$PWD\"": false,
		"cd nowhere; cat <<E\n$PWD\nE": true,
	} {
		a := w.evaluate(t, onMiss(Developer), command)
		if got := a.Segments[len(a.Segments)-1].refuses(Expansion); got != asks {
			t.Errorf("%s: %t, %v", command, got, codes(a))
		}
	}
}

// With -u a shell ends where it would take a parameter that is not set for nothing.
func TestUnsetParameters(t *testing.T) {
	w := newWorld(t, map[string]string{"/bin/bash": "x", "/ws/a.txt": "f"})
	for command, want := range map[string]toolward.Verdict{
		"bash -c 'ls $NOWHERE'": toolward.Allow, "bash -euc 'ls $NOWHERE'": toolward.Ask, "bash -u -c 'ls \"$NOWHERE\"'": toolward.Ask,
		"bash -euc 'ls $PWD'": toolward.Allow, "bash -ec 'ls $NOWHERE'": toolward.Allow,
	} {
		if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
			t.Errorf("%s: %s %v", command, verdict(a), codes(a))
		}
	}
}

// A here-document stays in the script that a shell is given.
func TestScriptKeepsHereDocument(t *testing.T) {
	w := newWorld(t, map[string]string{"/bin/bash": "x", "/usr/bin/cat": "x"})
	a := w.evaluate(t, onMiss(Developer), "bash -c 'cat <<E | cat\n$HOME\nEOF\nE'")
	want := "'/usr/bin/cat' <<'EOF_' | '/usr/bin/cat'\n" + w.home + "\nEOF\nEOF_"
	if got := a.Segments[0].Script; got != want {
		t.Errorf("%q, want %q (%v)", got, want, codes(a))
	}
}
