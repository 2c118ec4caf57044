package command

import "testing"

// What counts as reading is not kept before it runs, so nothing that could write may pass for it.
func TestWhatOnlyReads(t *testing.T) {
	w := newWorld(t, map[string]string{"/ws/ls": "x", "/ws/a": "f", "/usr/bin/mystery": "x"})
	for command, want := range map[string]bool{
		"ls -l": true, "cat a | grep x | wc -l": true, "git status": true, "cd src && rg x": true, "grep x a 2>/dev/null": true,
		"touch a": false, "rm a": false, "echo x > a": false, "sort -o a a": false, "sed -i s/x/y/ a": false, "find . -delete": false,
		"git checkout -- .": false, "git clean -fdx": false, "git reset --hard": false, "make": false, "mystery": false,
		"./ls": false, "PAGER=x ls": false, "env ls": false, "sh -c 'ls'": false, "ls $(rm a)": false, "ls; rm a": false, "ls &&": false, "xargs rm": false,
		"find . -exec rm {} +": false, "python3 -c 'x'": false, "awk 'BEGIN { system(\"rm a\") }'": false, "truncate -s 0 a": false,
	} {
		if got := w.evaluate(t, onMiss(Developer), command).Analysis().Reads; got != want {
			t.Errorf("%s: %t, want %t", command, got, want)
		}
	}
}
