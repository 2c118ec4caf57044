package command

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

// indexOf is an index of git's, of version 2, with these paths.
func indexOf(paths ...string) string {
	data := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(paths)))
	for _, path := range paths {
		data = append(append(data, make([]byte, 62)...), path...)
		data = append(data, make([]byte, 8-(62+len(path))%8)...)
	}
	return "t:" + string(data)
}

// TestListedNames: xargs gives its program names that nobody wrote. Where one of them may be an option, it asks.
func TestListedNames(t *testing.T) {
	const index = "/ws/.git/index"
	for name, c := range map[string]struct {
		files map[string]string
		allow string // commands, one in a line
		ask   string
	}{
		"plain": {
			map[string]string{index: indexOf("README.md", "src/a.go")},
			"git ls-files | xargs jq .\ngit ls-files | xargs sort\ngit ls-files '*.go' src | sort -u | head -n 9 | xargs wc -l\ngit ls-files -z | xargs -0 sort\n" +
				"find . -name '*.go' | xargs sort\nls | xargs wc -l\nls -1 src | xargs sort\ngrep -rl x src | xargs wc\nrg -l x src | grep -v go | xargs sort\nls | xargs -n1 basename",
			"find . -ls | xargs sort\nls -l | xargs sort\nfind . | grep -o x | xargs sort\ntouch x && find . | xargs sort\ngit ls-files -s | xargs sort\ngit ls-files -o | xargs sort\n" +
				"git diff --name-only | xargs sort\ngit -C src ls-files | xargs sort\nls | xargs -a README.md sort\necho -ox | xargs sort\nls | xargs sort -o\nls | xargs sed -i s/a/b/\nls | sed s/a/-ox/ | xargs sort",
		},
		"nothing tracked":           {nil, "git ls-files | xargs sort", ""},
		"tracked option":            {map[string]string{index: indexOf("-o.git/config", "a")}, "find . | xargs sort\ngit ls-files | xargs cat --", "git ls-files | xargs sort\ngit ls-files -z | xargs -0 sort\ngit ls-files '*.go' | xargs jq ."},
		"tracked blank":             {map[string]string{index: indexOf("a", "b -o.git/config")}, "git ls-files -z | xargs -0 sort", "git ls-files | xargs sort"},
		"tracked quotes":            {map[string]string{index: indexOf(`a"`, `b" -ox`)}, "", "git ls-files | xargs sort"},
		"tracked directory":         {map[string]string{index: indexOf("a", "sparse/")}, "", "git ls-files | xargs sort"},
		"damaged":                   {map[string]string{index: strings.TrimRight(indexOf("a", "b"), "b\x00")}, "", "git ls-files | xargs sort"},
		"in another file":           {map[string]string{index: indexOf("a") + "link"}, "", "git ls-files | xargs sort"},
		"not readable":              {map[string]string{index: "f"}, "", "git ls-files | xargs sort"},
		"part of a repository":      {map[string]string{"/ws/.git": "t:gitdir: /elsewhere"}, "", "git ls-files | xargs sort"},
		"an option on the disk":     {map[string]string{"/ws/-ox": "f"}, "find . | xargs sort", "ls | xargs sort\nrg --files | xargs sort"},
		"an option further down":    {map[string]string{"/ws/src/-ox": "f"}, "find . | xargs sort", "ls src | xargs sort\nls -R | xargs sort"},
		"a blank on the disk":       {map[string]string{"/ws/src/a -ox.go": "f"}, "find . -name '*.go' -print0 | xargs -0 sort\nfind . -name '*.md' | xargs sort", "find . -name '*.go' | xargs sort\ngrep -rl x src | xargs sort"},
		"a blank in a directory":    {map[string]string{"/ws/a -ox": "d", "/ws/a -ox/b.go": "f"}, "", "find . -name '*.go' | xargs sort"},
		"a line's end on the disk":  {map[string]string{"/ws/src/a\n-ox": "f"}, "", "find . | xargs sort"},
		"a quote on the disk":       {map[string]string{"/ws/src/a'-ox": "f"}, "", "find . | xargs sort"},
		"another space on the disk": {map[string]string{"/ws/src/a\u2003-ox": "f"}, "", "find . | xargs sort"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"/ws/.git": "d", "/ws/.git/HEAD": "f", "/ws/src": "d", "/ws/src/a.go": "f", "/usr/bin/basename": "x"}
			for p, what := range c.files {
				files[p] = what
			}
			if strings.HasPrefix(files["/ws/.git"], "t:") {
				delete(files, "/ws/.git/HEAD")
			}
			w := newWorld(t, files)
			check := func(commands string, want toolward.Verdict) {
				for command := range strings.Lines(commands) {
					command = strings.TrimSuffix(command, "\n")
					if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want {
						t.Errorf("%s: %s, want %s: %v %s", command, verdict(a), want, codes(a), a.Reason)
					}
				}
			}
			check(c.allow, toolward.Allow)
			check(c.ask, toolward.Ask)
		})
	}
}
