package command

import "testing"

func TestScriptOf(t *testing.T) {
	for _, test := range []struct {
		args         []string
		script, file int
	}{
		{[]string{"-c", "ls"}, 1, -1},
		{[]string{"-eu", "-c", "ls"}, 2, -1},
		{[]string{"-c", "-x"}, -1, -1}, // an option, and no script
		{[]string{"-c", "+x"}, -1, -1},
		{[]string{"-c", ""}, -1, -1},
		{[]string{"-c", "ls", "arg"}, -1, -1},
		{[]string{"-c"}, -1, -1},
		{[]string{"-x", "run.sh", "-c", "ls"}, -1, 1},
	} {
		args := make([]argument, len(test.args))
		for i, text := range test.args {
			args[i].text = text
		}
		if script, file := scriptOf(args); script != test.script || file != test.file {
			t.Errorf("%q: script %d, file %d", test.args, script, file)
		}
	}
}
