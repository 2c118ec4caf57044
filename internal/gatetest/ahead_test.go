package gatetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestCodeArrivesWithItsCaller holds what no program of the module can reach against ahead.txt, in both directions. Code that
// nothing calls is tested by nothing that runs, and rots; what waits for a feature says for which.
func TestCodeArrivesWithItsCaller(t *testing.T) {
	ahead := readAhead(t)
	used := map[string]bool{}
	for _, name := range unreachable(t) {
		key, known := covered(ahead, name)
		if !known {
			t.Errorf("no program calls %s: call it, remove it, or name in ahead.txt the feature that will call it", name)
		}
		used[key] = true
	}
	for key := range ahead {
		if !used[key] {
			t.Errorf("ahead.txt names %s, which is gone or has a caller", key)
		}
	}
}

// covered finds the entry for a function: its own, or that of its file's package followed by ".*".
func covered(ahead map[string]string, name string) (key string, ok bool) {
	pkg := name[:strings.LastIndex(name, "/")+1]
	rest := strings.TrimPrefix(name, pkg)
	room, member, _ := strings.Cut(rest, ".")
	typ, _, _ := strings.Cut(member, ".")
	for _, key := range []string{name, pkg + room + "." + typ + ".*", pkg + room + ".*"} {
		if ahead[key] != "" {
			return key, true
		}
	}
	return "", false
}

// readAhead reads ahead.txt: "package.Function  the feature that will call it"; "package.*" is for a whole package.
func readAhead(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open("../../ahead.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ahead := map[string]string{}
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		if line := strings.TrimSpace(lines.Text()); line == "" || line[0] == '#' {
			continue
		}
		name, feature, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if !ok || ahead[name] != "" {
			t.Fatalf("ahead.txt:%d: want: package.Function  the feature that will call it", n)
		}
		ahead[name] = strings.TrimSpace(feature)
	}
	return ahead
}

// unreachable lists the functions of the product that none of its programs reaches.
func unreachable(t *testing.T) []string {
	t.Helper()
	deadcode := exec.Command("go", "tool", "-modfile=tools/go.mod", "deadcode", "-json", "./...")
	deadcode.Dir = "../.."
	var stderr bytes.Buffer
	deadcode.Stderr = &stderr
	out, err := deadcode.Output()
	if err != nil {
		t.Fatalf("deadcode: %v\n%s", err, stderr.Bytes())
	}
	var packages []struct {
		Path  string
		Funcs []struct {
			Name      string
			Generated bool
		}
	}
	if err := json.Unmarshal(out, &packages); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pkg := range packages {
		if top(short(pkg.Path)) == "internal" {
			continue // for tests
		}
		for _, f := range pkg.Funcs {
			names = append(names, short(pkg.Path)+"."+f.Name)
		}
	}
	slices.Sort(names)
	return names
}
