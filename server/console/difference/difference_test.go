package difference

import "testing"

// TestLineNumbers counts as the hunks say, and shows no number that nobody announced.
func TestLineNumbers(t *testing.T) {
	view := Read("--- a\n+++ b\n@@ -9,3 +19,4 @@ f\n c\n-old\n+new\n+more\n d\n@@ -x +1 @@\n-late\n+first\n")
	want := []struct{ kind, number string }{
		{"file", ""}, {"file", ""}, {"hunk", ""}, {"", "19"}, {"del", "10"}, {"add", "20"}, {"add", "21"}, {"", "22"}, {"hunk", ""}, {"del", ""}, {"add", "1"},
	}
	for i, w := range want {
		if i >= len(view.Lines) || view.Lines[i].Kind != w.kind || view.Lines[i].Number != w.number {
			t.Fatalf("line %d: %+v, want %+v", i, view.Lines, w)
		}
	}
}
