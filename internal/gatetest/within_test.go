package gatetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOnePredicateSaysWhatIsBelow: there were seven functions that said whether a path lies below a directory, and they disagreed
// about the directory "". [place.Within] is the only one.
func TestOnePredicateSaysWhatIsBelow(t *testing.T) {
	own := regexp.MustCompile(`(?m)^func (\([^)]*\) )?[wW]ithin\(|\b[wW]ithin :?= func\(`)
	root, files := "../..", 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (rel == "place" || rel == ".git"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		files++
		source, err := os.ReadFile(path)
		if found := own.Find(source); found != nil {
			t.Errorf("%s has %q of its own: use place.Within", rel, found)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files were read: %v", files, err)
	}
}
