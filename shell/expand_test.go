package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// surroundings is a directory with files, and an environment.
func surroundings(t *testing.T) Surroundings {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a.go", "b.go", "B.go", "sub/c.go", "sub/d.txt", ".hidden", "with space", "-rf", "[x]", "x"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"HOME": "/home/u", "PLAIN": "value", "SPACED": "two words", "STAR": "*.go", "EMPTY": ""}
	return Surroundings{
		Dir: dir, ReadDir: os.ReadDir,
		Getenv: func(name string) (string, bool) { value, set := env[name]; return value, set },
	}
}

func TestWordsBecomeWhatBashMakesOfThem(t *testing.T) {
	in := surroundings(t)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`p *.go`, `p sub/*`, `p */*.go`, `p .*`, `p *`, `p ?.go`, `p [ab].go`, `p [!a].go`, `p [a`, `p \*.go`, `p "*.go"`, `p nothing*`,
		`p {a,b}.go`, `p x{1..3}y`, `p {a}`, `p {}`, `p {a,b}{c,d}`, `p {3..1}`, `p {a..e..2}`, `p '{a,b}'`, `p {a,"b c"}`, `p {*.go,x}`,
		`p $PLAIN`, `p "$PLAIN"x`, `p ${PLAIN}y`, `p $EMPTY`, `p "$EMPTY"`, `p $UNSET`, `p "$SPACED"`, `p "$STAR"`, `p a$EMPTY`,
		`p ~`, `p ~/x`, `p a~`, `p "~/x"`, `p --opt=~/x`, `p '\'`, `p "\a\$\"\\"`, `p \a\ b`, `p [x]`, `p \[x]`,
		`p -- *`, `p $PWD`, `p a\\b`, `p {a\,b}`, `p *.{go,txt}`, `p ./*.go`,
		`p *.*`, `p ./*.*`, `p [!x]*`, `p ?*`, `p "."*`, `p \.*`, `p {.,}*`, `p sub/../*.*`, `p $EMPTY.*`, `p {,a}`, `p {,}`,
	} {
		command, err := Analyze(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := command.Segments[0].Expand(in)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		shell := exec.Command(bash, "-c", `p() { printf '%s\0' "$@"; }; `+text)
		shell.Dir = in.Dir
		shell.Env = []string{"HOME=/home/u", "PLAIN=value", "SPACED=two words", "STAR=*.go", "EMPTY=", "LC_ALL=C", "PATH=/usr/bin:/bin"}
		out, err := shell.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if len(got.Argv) > 1 && !slices.Equal(got.Argv[1:], want) {
			t.Errorf("%s: %q, bash makes %q", text, got.Argv[1:], want)
		}
		if len(got.Argv) == 1 && string(out) != "\x00" && string(out) != "" {
			t.Errorf("%s: nothing, bash makes %q", text, want)
		}
	}
}

func TestDoubtsOfExpansion(t *testing.T) {
	in := surroundings(t)
	for text, want := range map[string][]Finding{
		`p *`: {GlobOption}, `p -- *`: nil, `p *.go`: nil, `p -*`: {GlobOption}, `p $SPACED`: {WordSplitting}, `p $STAR`: {WordSplitting}, `p "$STAR"`: nil,
		`p {1..2000}`: {TooManyWords}, `p {1..99999999}`: {TooManyWords}, `p {1..99}{1..99}`: {TooManyWords}, `p $PLAIN`: nil,
		`p .*/*.go`: {OddPattern}, `p sub//*`: {OddPattern}, `p http://h/?a=b`: nil,
	} {
		command, err := Analyze(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := command.Segments[0].Expand(in)
		if err != nil || !slices.Equal(got.Findings, want) {
			t.Errorf("%s: %q %v, want %q", text, got.Findings, err, want)
		}
	}
}
