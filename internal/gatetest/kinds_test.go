package gatetest_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryKindOfPolicyVectorIsRun: a kind that no runner names would never fail. Runners add the cases of the directory
// that TOOLWARD_VECTORS names, so what holds for our cases is asked of those too.
func TestEveryKindOfPolicyVectorIsRun(t *testing.T) {
	run, cases := map[string]bool{}, []string{}
	runner := regexp.MustCompile(`gatetest\.Run\(t, (?:vectorFile|"policy\.json"), "(\w+)"`)
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, "/vectors/policy.json"):
			cases = append(cases, path)
			return nil
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range runner.FindAllSubmatch(source, -1) {
			run[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("TOOLWARD_VECTORS"); dir != "" {
		cases = append(cases, filepath.Join(dir, "policy.json"))
	}
	kinds := map[string]bool{}
	for _, path := range cases {
		for _, kind := range kindsOf(t, path) {
			if kinds[kind] = true; !run[kind] {
				t.Errorf("%s: nobody runs the kind %s", path, kind)
			}
		}
	}
	if len(kinds) < 33 {
		t.Errorf("%d kinds, want at least 33", len(kinds))
	}
}

func kindsOf(t *testing.T, path string) (kinds []string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []struct{ Kind string } }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		kinds = append(kinds, c.Kind)
	}
	return kinds
}
