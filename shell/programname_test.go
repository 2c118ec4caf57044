package shell

import "testing"

// TestProgramName: whatever the word is, there is a name.
func TestProgramName(t *testing.T) {
	for word, want := range map[string]string{
		"git": "git", "/usr/bin/Git": "git", `C:\tools\GIT.EXE`: "git", "git.exe.exe": "git.exe", ".exe": ".exe", "./.EXE": ".exe", "x/": "x", "/": "/", "": ".", `\`: "/",
	} {
		if got := ProgramName(word); got != want {
			t.Errorf("ProgramName(%q) = %q, want %q", word, got, want)
		}
	}
}
