package gatetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsAreProven: each test that docs/threat-model.md names is there. A page that says what is proven must not outlive its proofs.
func TestThreatsAreProven(t *testing.T) {
	page, err := os.ReadFile("../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	declared, function := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range function.FindAllSubmatch(source, -1) {
			declared[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	if len(named) < 30 {
		t.Errorf("%d proofs are named", len(named))
	}
	for _, match := range named {
		if !declared[string(match[1])] {
			t.Errorf("%s is named as a proof, and is not there", match[1])
		}
	}
}
