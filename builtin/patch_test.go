package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolward/toolward/display"
)

func TestParsePatch(t *testing.T) {
	for _, c := range []struct {
		name, patch string
		want        []patchFile
		err         string
	}{
		{
			"all sections", "*** Begin Patch\n*** Add File: a.txt\n+one\n+\n*** Delete File: b.txt\n*** Update File: c.txt\n*** Move to: d.txt\n@@ func f()\n x\n-y\n+z\n*** End of File\n*** End Patch\n",
			[]patchFile{
				{op: patchAdd, path: "a.txt", line: 2, lines: []string{"one", ""}},
				{op: patchDelete, path: "b.txt", line: 5},
				{op: patchUpdate, path: "c.txt", move: "d.txt", line: 6, hunks: []patchHunk{
					{line: 8, anchors: []string{"func f()"}, lines: []patchLine{{' ', "x"}, {'-', "y"}, {'+', "z"}}, atEnd: true},
				}},
			},
			"",
		},
		{
			"first hunk without @@, CRLF, blank context line", "*** Begin Patch\r\n*** Update File: f\r\n-a\r\n\r\n+b\r\n@@\r\n-c\r\n*** End Patch",
			[]patchFile{{op: patchUpdate, path: "f", line: 2, hunks: []patchHunk{
				{line: 3, lines: []patchLine{{'-', "a"}, {' ', ""}, {'+', "b"}}},
				{line: 6, lines: []patchLine{{'-', "c"}}},
			}}},
			"",
		},
		{
			"nested anchors and line numbers", "*** Begin Patch\n*** Update File: f\n@@ class A\n@@ -3,4 +3,5 @@ def g\n+x\n*** End Patch",
			[]patchFile{{op: patchUpdate, path: "f", line: 2, hunks: []patchHunk{
				{line: 3, anchors: []string{"class A", "def g"}, lines: []patchLine{{'+', "x"}}},
			}}},
			"",
		},
		{"only a move", "*** Begin Patch\n*** Update File: f\n*** Move to: g\n*** End Patch", []patchFile{{op: patchUpdate, path: "f", move: "g", line: 2}}, ""},
		{"empty", "", nil, `patch line 1: expected "*** Begin Patch"`},
		{"no sections", "*** Begin Patch\n*** End Patch", nil, "no file sections"},
		{"no end", "*** Begin Patch\n*** Delete File: a", nil, `ends without "*** End Patch"`},
		{"text after the end", "*** Begin Patch\n*** Delete File: a\n*** End Patch\nrm -rf /", nil, `patch line 4: text after`},
		{"unknown header", "*** Begin Patch\n*** Remove File: a\n*** End Patch", nil, "patch line 2: expected"},
		{"no path", "*** Begin Patch\n*** Delete File:  \n*** End Patch", nil, "patch line 2: the path is missing"},
		{"no new path", "*** Begin Patch\n*** Update File: a\n*** Move to: \n*** End Patch", nil, "patch line 3: the new path is missing"},
		{"new file without plus", "*** Begin Patch\n*** Add File: a\nhello\n*** End Patch", nil, "patch line 3: every line of the new file"},
		{"stray line in hunk", "*** Begin Patch\n*** Update File: a\n@@\n-a\nhello\n*** End Patch", nil, "patch line 5: a line of a hunk starts with"},
		{"hunk without change", "*** Begin Patch\n*** Update File: a\n@@\n a\n*** End Patch", nil, "patch line 3: hunk 1 has no line"},
		{"update without change", "*** Begin Patch\n*** Update File: a\n*** End Patch", nil, "changes nothing"},
		{"lines after delete", "*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", nil, "patch line 3: expected"},
		{"not UTF-8", "*** Begin Patch\n\xff", nil, "not valid UTF-8"},
		{"too many files", "*** Begin Patch\n" + strings.Repeat("*** Delete File: a\n", 11) + "*** End Patch", nil, "more than 10 files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parsePatch(c.patch, 10)
			checkError(t, err, c.err)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(patchFile{}, patchHunk{}, patchLine{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApplyHunks(t *testing.T) {
	const tenLines = "l1\nl2\nl3\nl4\nl5\nl6\nl7\nl8\nl9\nl10\n"
	for _, c := range []struct {
		name, content, hunks string
		want, err            string
	}{
		{"replace", "a\nb\nc\n", "@@\n a\n-b\n+x\n c", "a\nx\nc\n", ""},
		{"two hunks", tenLines, "@@\n-l2\n+two\n@@\n-l9\n+nine", "l1\ntwo\nl3\nl4\nl5\nl6\nl7\nl8\nnine\nl10\n", ""},
		{"second of two by anchor", "f\nx\ng\nx\n", "@@ g\n-x\n+y", "f\nx\ng\ny\n", ""},
		{"nested anchors", "A\nf\nx\nB\nf\nx\n", "@@ B\n@@ f\n-x\n+y", "A\nf\nx\nB\nf\ny\n", ""},
		{"anchor repeated as context", "f\nx\n", "@@ f\n f\n-x\n+y", "f\ny\n", ""},
		{"first place after the hunk before", "x\nx\nx\n", "@@\n-x\n+1\n@@\n-x\n+2", "1\n2\nx\n", ""},
		{"end of file", "x\ny\nx\n", "@@\n-x\n+z\n*** End of File", "x\ny\nz\n", ""},
		{"end of file does not fit", "x\ny\n", "@@\n-x\n+z\n*** End of File", "", "hunk 1: its lines stand at line 1, not at the end"},
		{"add at the end", "a\n", "@@\n+b", "a\nb\n", ""},
		{"add after an anchor", "a\nb\n", "@@ a\n+x", "a\nx\nb\n", ""},
		{"add to an empty file", "", "@@\n+a\n+b", "a\nb\n", ""},
		{"last line without line end stays so", "a\nb", "@@\n-b\n+c", "a\nc", ""},
		{"added after a last line without line end", "a\nb", "@@\n b\n+c", "a\nb\nc", ""},
		{"appended after a last line without line end", "a", "@@\n+b", "a\nb", ""},
		{"CRLF kept", "a\r\nb\r\n", "@@\n a\n-b\n+x\n+y", "a\r\nx\r\ny\r\n", ""},
		{"byte order mark kept", "\ufeffa\nb\n", "@@\n-a\n+x", "\ufeffx\nb\n", ""},
		{"white space at the end ignored, kept lines untouched", "a  \nb\n", "@@\n a\n-b\n+x", "a  \nx\n", ""},
		{"indentation ignored where it fits once", "\tif a {\n\t\tb\n\t}\n", "@@\n if a {\n-b\n+c", "\tif a {\nc\n\t}\n", ""},
		{"indentation ignored, but two places fit", "\ta\n  a\n", "@@\n-a\n+b", "", "several places"},
		{"typographic quotes", "say \u201chi\u201d\n", "@@\n-say \"hi\"\n+bye", "bye\n", ""},
		{"no such line", "alpha\nbeta\n", "@@\n-betta\n+x", "", `patch line 3: hunk 1: its line "betta" is not in the file from line 1 on; the nearest is line 2: "beta"`},
		{"differs later", "a\nb\nc\n", "@@\n a\n b\n-x\n+y", "", `its first 2 lines fit at line 1, but line 3 of the file is "c" and the hunk has "x"`},
		{"file ends too early", "a\nb\n", "@@\n b\n-c\n+d", "", "but the file ends there"},
		{"wrong order", tenLines, "@@\n-l5\n+five\n@@\n-l2\n+two", "", "patch line 6: hunk 2: its lines stand at line 2, before"},
		{"no such anchor", "a\n", "@@ nope\n-a\n+b", "", `no line "nope"`},
		{"second hunk fails, nothing is returned", "a\nb\n", "@@\n-a\n+x\n@@\n-q\n+y", "", "hunk 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files, err := parsePatch("*** Begin Patch\n*** Update File: f\n"+c.hunks+"\n*** End Patch", 1)
			if err != nil {
				t.Fatal(err)
			}
			got, err := applyHunks(c.content, files[0].hunks)
			checkError(t, err, c.err)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestHostilePatchIsBounded(t *testing.T) {
	content := strings.Repeat("\n", 200_000)
	patch := "*** Begin Patch\n*** Update File: f\n@@\n" + strings.Repeat(" \n", 100_000) + "-x\n*** End Patch"
	files, err := parsePatch(patch, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := applyHunks(content, files[0].hunks); err == nil || !strings.Contains(err.Error(), "takes too long") {
		t.Errorf("got %v", err)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch", "")
	f.Add("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ f\n x\n-y\n+z\n*** End of File\n*** End Patch", "f\nx\ny")
	f.Add("*** Begin Patch\r\n*** Update File: a\r\n+z\r\n*** End Patch\r\n", "x\r\ny\r\n")
	f.Fuzz(func(t *testing.T, patch, content string) {
		files, err := parsePatch(patch, 100)
		if err != nil {
			return
		}
		for _, file := range files {
			if file.path == "" || file.line < 1 {
				t.Errorf("section without path or line: %+v", file)
			}
			if file.op != patchUpdate {
				continue
			}
			got, err := applyHunks(content, file.hunks)
			if err != nil && got != "" {
				t.Errorf("content %q with error %v", got, err)
			}
			if err == nil && len(file.hunks) == 0 && got != content {
				t.Errorf("no hunks changed %q to %q", content, got)
			}
		}
	})
}

// TestPatchTurnsOneTextIntoTheOther makes patches from pairs of texts whose lines are all different.
func TestPatchTurnsOneTextIntoTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before, after []string
		eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		for i := range rapid.IntRange(1, 40).Draw(t, "lines") {
			line := fmt.Sprintf("line %d%s", i, eol)
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				before = append(before, line)
			case 1:
				after = append(after, line)
			default:
				before, after = append(before, line), append(after, line)
			}
		}
		diff := display.NewDiff(1 << 20)
		diff.File("f", "f", strings.Join(before, ""), strings.Join(after, ""))
		lines := strings.SplitAfter(strings.TrimSuffix(diff.String(), "\n"), "\n")[2:] // without the names
		if len(lines) == 0 || len(before) == 0 {
			return
		}
		patch := "*** Begin Patch\n*** Update File: f\n"
		for _, line := range lines {
			if strings.HasPrefix(line, "@@") {
				line = "@@"
			}
			patch += trimEOL(line) + "\n"
		}
		files, err := parsePatch(patch+"*** End Patch\n", 1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := applyHunks(strings.Join(before, ""), files[0].hunks)
		if err != nil {
			t.Fatalf("%v\n%s", err, patch)
		}
		if want := strings.Join(after, ""); got != want {
			t.Fatalf("got %q, want %q\n%s", got, want, patch)
		}
	})
}
