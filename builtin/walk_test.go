package builtin

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/toolward/toolward"
)

func tree(w *world) {
	w.put("ws/.gitignore", "node_modules/\n*.log\n!keep.log\n/build\n")
	w.put("ws/main.go", "package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n")
	w.put("ws/README.md", "hello world\n")
	w.put("ws/src/a.go", "package src // hello\r\n")
	w.put("ws/src/.gitignore", "generated.go\n")
	w.put("ws/src/generated.go", "// hello\n")
	w.put("ws/src/build/x.go", "// hello from a deeper build\n")
	w.put("ws/build/out.go", "// hello\n")
	w.put("ws/node_modules/m/index.js", "hello\n")
	w.put("ws/debug.log", "hello\n")
	w.put("ws/keep.log", "hello\n")
	w.put("ws/.env", "SECRET=hello\n")
	w.put("ws/keys/server.pem", "hello\n")
	w.put("ws/.git/config", "hello\n")
	w.put("ws/.github/workflows/ci.yml", "run: hello\n")
	w.put("ws/data.bin", "hello\x00")
	w.put("ws/wide.txt", utf16Hello)
	w.put("outside/o.txt", "hello\n")
}

const utf16Hello = "\xff\xfeh\x00e\x00l\x00l\x00o\x00\n\x00"

func TestSearch(t *testing.T) {
	w := newWorld(t)
	tree(w)
	link(t, w.outside, w.workspace+"/out")
	link(t, w.outside+"/o.txt", w.workspace+"/o.txt")
	if err := unix.Mkfifo(w.workspace+"/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	const guarded = "\n[not looked into, because of what they may hold: .env, keys/server.pem; 1 binary file left out]\n"
	for _, c := range []struct {
		name string
		args args
		want string
	}{
		{"lines", args{"pattern": `hel+o`}, ".github/workflows/ci.yml\n1: run: hello\n\nREADME.md\n1: hello world\n\nkeep.log\n1: hello\n\nmain.go\n4: \tprintln(\"hello\")\n\nsrc/a.go\n1: package src // hello\n\nsrc/build/x.go\n1: // hello from a deeper build\n\nwide.txt\n1: hello\n" + guarded},
		{"glob", args{"pattern": `hello`, "glob": "*.go", "output": "files"}, "main.go\nsrc/a.go\nsrc/build/x.go\n"},
		{"globs", args{"pattern": `hello`, "glob": []string{"**/*.{go,md}", "!src/**"}, "output": "files"}, "README.md\nmain.go\n"},
		{"count", args{"pattern": `^.`, "glob": "main.go", "output": "count"}, "main.go: 4\n"},
		{"context", args{"pattern": `println`, "glob": "main.go", "context": 1}, "main.go\n3- func main() {\n4: \tprintln(\"hello\")\n5- }\n"},
		{"ignored files too", args{"pattern": `hello`, "glob": "*.{log,js}", "ignored": true, "output": "files"}, "debug.log\nkeep.log\nnode_modules/m/index.js\n"},
		{"end of a CRLF line", args{"pattern": `hello$`, "glob": "*.go"}, "src/a.go\n1: package src // hello\n"},
		{"literal", args{"pattern": `println("`, "literal": true, "output": "files"}, "main.go\n" + guarded},
		{"case", args{"pattern": `HELLO W`, "ignoreCase": true, "glob": "*.md"}, "README.md\n1: hello world\n"},
		{"below", args{"pattern": `hello`, "path": "src", "output": "files"}, "a.go\nbuild/x.go\n"},
		{"one file", args{"pattern": `hello`, "path": "README.md"}, "README.md\n1: hello world\n"},
		{"one ignored file", args{"pattern": `hello`, "path": "debug.log"}, "debug.log\n1: hello\n"},
		{"nothing", args{"pattern": `absent`, "glob": "*.md"}, "No matches.\n"},
		{"limit", args{"pattern": `hello`, "limit": 1}, ".github/workflows/ci.yml\n1: run: hello\n\n[not looked into, because of what they may hold: .env; there may be more matches: narrow the pattern, the path or the glob]\n"},
		{"beginning of the text is that of a line", args{"pattern": `\Apackage|\A\}`, "glob": "main.go"}, "main.go\n1: package main\n5: }\n"},
		{"no match over a line end", args{"pattern": `main\s+func`, "glob": "main.go"}, "No matches.\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.TB = t
			if got := w.ok("search", c.args); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
	w.TB = t
	w.fails("search", args{"pattern": "("}, "The pattern is not valid")
	w.fails("search", args{"pattern": "x", "path": "gone"}, "gone does not exist")
	if _, err := w.request("search", args{"pattern": "x", "glob": "[a"}); err == nil {
		t.Error("a malformed glob was taken")
	}
}

// TestSearchAndTheLevel: a search must not print what read would ask for.
func TestSearchAndTheLevel(t *testing.T) {
	w := newWorld(t)
	w.put("ws/.github/workflows/ci.yml", "hello\n")
	w.put("ws/id_rsa", "hello\n")
	w.put("ws/a", "hello\n")
	if got := w.ok("search", args{"pattern": "hello", "output": "files"}); !strings.HasPrefix(got, ".github/workflows/ci.yml\na\n\n[not looked into") {
		t.Errorf("normal: %q", got)
	}
	w.level = toolward.Elevated
	if got := w.ok("search", args{"pattern": "hello", "output": "files"}); !strings.HasPrefix(got, "a\n\n[not looked into, because of what they may hold: .github/workflows/, id_rsa]") {
		t.Errorf("elevated: %q", got)
	}
	// What a person was asked about is searched.
	if got := w.ok("search", args{"pattern": "hello", "path": "id_rsa"}); got != "id_rsa\n1: hello\n" {
		t.Errorf("named: %q", got)
	}
	w.put("home/.toolward/state", "hello\n")
	if got := w.ok("search", args{"pattern": "hello", "path": "../home"}); strings.Contains(got, "1: hello") {
		t.Errorf("Toolward's own files were searched: %q", got)
	}
}

func TestSearchIsBounded(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.SearchFiles = 100; c.SearchChars = 1000; c.FileBytes = 10_000 })
	for i := range 150 {
		w.put(fmt.Sprintf("ws/many/%03d", i), "hello\n")
	}
	w.put("ws/large", strings.Repeat("hello\n", 5000))
	w.put("ws/lines/f", strings.Repeat(strings.Repeat("x", 100)+"hello\n", 90))
	w.put("ws/line/f", strings.Repeat("y", 5000)+"hello"+strings.Repeat("z", 3000))
	if got := w.ok("search", args{"pattern": "hello", "path": "many", "output": "files"}); !strings.Contains(got, "the tree is too large") {
		t.Errorf("got %q", got)
	}
	if got := w.ok("search", args{"pattern": "hello", "path": "lines"}); len(got) > 1200 || !strings.Contains(got, "there may be more") {
		t.Errorf("%d bytes", len(got))
	}
	if got := w.ok("search", args{"pattern": "hello", "path": "line"}); len(got) > 700 || !strings.Contains(got, "yhelloz") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if got := w.ok("search", args{"pattern": "hello", "path": "large"}); !strings.Contains(got, "1 file larger than 10000 bytes left out") {
		t.Errorf("got %q", got)
	}
}

func TestSearchIsCanceled(t *testing.T) {
	w := newWorld(t)
	tree(w)
	r := w.facts("search", args{"pattern": "hello"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Tool.Run(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestMatcherAgreesWithPlainLines compares the search over the whole text with the obvious one.
func TestMatcherAgreesWithPlainLines(t *testing.T) {
	exprs := []string{`a`, `^a`, `b$`, `a\s+b`, `\s`, `^$`, `a*`, `\bab\b`, `(?s)a.b`, `[^a]`, `\Aa`, `b\z`, `a|^b`}
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.StringOfN(rapid.SampledFrom([]rune("ab \n\r")), 0, 40, -1).Draw(t, "text")
		expr := rapid.SampledFrom(exprs).Draw(t, "expr")
		m, err := newMatcher(expr)
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for i, line := range slices.Collect(strings.Lines(content)) {
			if m.expr.MatchString(trimEOL(line)) {
				want = append(want, i+1)
			}
		}
		var got []int
		for _, found := range m.lines([]byte(content), false) {
			got = append(got, found.number)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q in %q: lines %v, want %v", expr, content, got, want)
		}
	})
}

func TestList(t *testing.T) {
	w := newWorld(t)
	tree(w)
	link(t, w.outside, w.workspace+"/out")
	w.put("ws/odd\nname", "")
	got := w.ok("list", args{})
	want := `.env
.github/
  workflows/ …
.gitignore
README.md
data.bin
keep.log
keys/
  server.pem
main.go
"odd\nname"
out@
src/
  .gitignore
  a.go
  build/ …
wide.txt
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := w.ok("list", args{"path": "src", "depth": 3}); got != ".gitignore\na.go\nbuild/\n  x.go\n" {
		t.Errorf("got %q", got)
	}
	if got := w.ok("list", args{"depth": 1, "limit": 3}); got != ".env\n.github/ …\n.gitignore\n\n[9 entries left out; name a directory below or raise limit]\n" {
		t.Errorf("got %q", got)
	}
	if got := w.ok("list", args{"ignored": true, "depth": 1}); !strings.Contains(got, "node_modules/ …\n") || strings.Contains(got, ".git/") {
		t.Errorf("got %q", got)
	}
	w.fails("list", args{"path": "main.go"}, "main.go is a regular file, not a directory")
	w.fails("list", args{"path": "gone"}, "gone does not exist")
}

func TestListSharesItsRoom(t *testing.T) {
	w := newWorld(t)
	for i := range 100 {
		w.put(fmt.Sprintf("ws/a/%03d", i), "")
	}
	w.put("ws/b/only", "")
	if got := w.ok("list", args{"limit": 20}); !strings.Contains(got, "b/\n  only\n") {
		t.Errorf("a large directory hid its neighbour: %q", got)
	}
}

// TestIgnoreAgreesWithGit compares our reading of .gitignore files with git's own.
func TestIgnoreAgreesWithGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	files := []string{"a", "b.log", "keep.log", "dir/a", "dir/b.log", "dir/sub/c", "dir/sub/{x}", "build/out", "src/build/out", "src/x.tmp", "doc/a.txt", "doc/deep/a.txt", " space "}
	for _, c := range []struct{ name, root, nested string }{
		{"names", "*.log\na\n", ""},
		{"negation", "*.log\n!keep.log\n", ""},
		{"anchored", "/build\n/a\n", ""},
		{"directories only", "sub/\nout/\n", ""},
		{"double star", "doc/**/a.txt\n**/sub\n", ""},
		{"everything below", "dir/**\n", ""},
		{"middle slash", "doc/*.txt\n", ""},
		{"nested overrides", "*.log\n", "!b.log\n"},
		{"nested anchored", "", "/a\n/sub/c\n"},
		{"comments and spaces", "# a\n\\#x\n\nb.log   \n\\ space\\ \n", ""},
		{"question and classes", "?.log\n[a-c]\n", ""},
		{"braces are plain", "{x}\n{a,b}\n", ""},
		{"all but", "*\n!*/\n!*.txt\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			for _, f := range files {
				w.put("ws/"+f, "x\n")
			}
			w.put("ws/.gitignore", "# not empty\n"+c.root)
			w.put("ws/dir/.gitignore", "# not empty\n"+c.nested)
			var want []string
			for _, args := range [][]string{{"init", "-q"}, {"-c", "core.quotePath=false", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard"}} {
				cmd := exec.Command(git, args...)
				cmd.Dir = w.workspace
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				want = strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			}
			var got []string
			for line := range strings.Lines(w.ok("search", args{"pattern": "x|.", "output": "files"})) {
				if line = strings.TrimSuffix(line, "\n"); line != "" && line != "No matches." {
					got = append(got, line)
				}
			}
			if sorted(got) != sorted(want) {
				t.Errorf("ours %q\ngit  %q", sorted(got), sorted(want))
			}
		})
	}
}

// manyFiles fills the workspace with n files of four kilobytes, one in ten with a needle.
func manyFiles(w *world, n int) {
	w.Helper()
	body := strings.Repeat("some ordinary line of a program\n", 128)
	for i := range n {
		content := body
		if i%10 == 0 {
			content += fmt.Sprintf("needle%d\n", i)
		}
		w.put(fmt.Sprintf("ws/d%d/e%d/f%d.txt", i%10, i/10%10, i), content)
	}
}
