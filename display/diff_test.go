package display

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	w := NewDiff(1 << 16)
	w.File("a/x", "b/x", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\nten")
	want := `--- a/x
+++ b/x
@@ -2,8 +2,9 @@
 2
 3
 4
-5
+five
 6
 7
 8
 9
+ten
\ No newline at end of file
`
	if got := w.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestDiffIsBounded(t *testing.T) {
	w := NewDiff(500)
	w.File("/dev/null", "b/x", "", strings.Repeat("line\n", 10_000))
	w.File("/dev/null", "b/y", "", "more\n")
	if got := w.String(); len(got) > 500 || !strings.HasSuffix(got, diffFull) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

// TestDiffApplies gives random differences to patch(1), which must turn one text into the other.
func TestDiffApplies(t *testing.T) {
	program, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("patch(1) is not installed")
	}
	dir := t.TempDir()
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "d\n"}), 1, 40)
	rapid.Check(t, func(t *rapid.T) {
		before, after := strings.Join(lines.Draw(t, "before"), ""), strings.Join(lines.Draw(t, "after"), "")
		if before == after {
			return
		}
		w := NewDiff(1 << 20)
		w.File("f", "f", before, after)
		file := filepath.Join(dir, "f")
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "--fuzz=0", "--no-backup-if-mismatch", file)
		cmd.Stdin = strings.NewReader(w.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, w.String())
		}
		if got, _ := os.ReadFile(file); string(got) != after {
			t.Fatalf("patch(1) made %q, want %q", got, after)
		}
	})
}

// TestDiffIsAnEditScript holds for every pair of texts, patch(1) or not.
func TestDiffIsAnEditScript(t *testing.T) {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n"}), 0, 60)
	rapid.Check(t, func(t *rapid.T) {
		a, b := lines.Draw(t, "a"), lines.Draw(t, "b")
		var before, after []string
		for _, e := range lineEdits(a, b) {
			if e.kind != '+' {
				before = append(before, a[e.a])
			}
			if e.kind != '-' {
				after = append(after, b[e.b])
			}
		}
		if strings.Join(before, "") != strings.Join(a, "") || strings.Join(after, "") != strings.Join(b, "") {
			t.Fatalf("script of %q and %q gives %q and %q", a, b, before, after)
		}
	})
}
