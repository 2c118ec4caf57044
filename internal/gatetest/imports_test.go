package gatetest

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/toolward/toolward"

// layers is the house table of the README: what every package may import of this module. Tests may import more.
var layers = map[string][]string{
	"":          {},
	"shell":     {},
	"job":       {},
	"envname":   {},
	"schema":    {},
	"place":     parts(),
	"redact":    {},
	"display":   {},
	"untrusted": {},
	"netguard":  {},
	"companion": {},
	"sandbox":   leaves,

	"modes":     parts(leaves),
	"policy":    parts(leaves, []string{"modes"}),
	"command":   parts(leaves, []string{"modes"}),
	"approval":  parts(leaves),
	"audit":     parts(leaves),
	"plugin":    parts(leaves),
	"session":   parts(leaves),
	"identity":  parts(leaves),
	"memory":    leaves,
	"telemetry": parts(),

	"builtin": parts(leaves, gateParts),
	"mcp":     parts(leaves, []string{"approval", "session", "identity"}),
	"bridge":  parts(leaves, []string{"approval", "session"}),
	"egress":  parts(leaves),
	"client":  parts([]string{"schema", "approval", "identity", "display"}),
	"node":    parts(leaves, gateParts),
	"agent":   parts(leaves, []string{"plugin", "session"}),
	"channel": parts(leaves, []string{"approval", "session", "identity"}),
	"desk":    parts([]string{"sandbox", "command", "approval", "audit", "session", "identity"}),

	"store":  parts(leaves, gateParts, faces),
	"server": parts(leaves, gateParts, faces, []string{"desk"}),
	"tui":    parts(leaves, gateParts),

	"config":   parts(leaves, gateParts, faces, []string{"store", "server", "tui"}),
	"doctor":   parts(leaves, gateParts, []string{"store", "config"}),
	"importer": parts(leaves, []string{"policy", "command", "bridge", "config"}),

	"gateway": parts(leaves, gateParts, faces, []string{"desk", "store", "server", "tui", "config"}),
}

var (
	leaves    = []string{"shell", "job", "envname", "schema", "place", "redact", "display", "untrusted", "netguard", "companion", "sandbox"}
	gateParts = []string{"modes", "policy", "command", "approval", "audit", "plugin", "session", "identity", "memory", "telemetry"}
	faces     = []string{"builtin", "mcp", "bridge", "egress", "node", "agent", "channel"}
)

// parts is the root package and the given groups.
func parts(groups ...[]string) []string { return append([]string{""}, slices.Concat(groups...)...) }

// TestImportTable walks the real import graph. It stops a package from growing a dependency that the house does
// not know of, above all a leaf that starts to decide.
func TestImportTable(t *testing.T) {
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for decoder.More() {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); err != nil {
			t.Fatal(err)
		}
		seen++
		checkImports(t, pkg.ImportPath, pkg.Imports)
	}
	if seen < 10 {
		t.Fatalf("go list named only %d packages", seen)
	}
}

func checkImports(t *testing.T, path string, imports []string) {
	from := house(path)
	if from == "cmd" || from == "internal" || from == "docs" || from == "examples" {
		return
	}
	allowed, known := layers[from]
	if !known {
		t.Errorf("package %s is not in the house table", path)
		return
	}
	for _, imported := range imports {
		if !strings.HasPrefix(imported, module) {
			if from == "" && strings.Contains(imported, ".") {
				t.Errorf("the root package imports %s: only the standard library is allowed there", imported)
			}
			continue
		}
		if to := house(imported); to != from && !slices.Contains(allowed, to) {
			t.Errorf("%s imports %s, which the house table does not allow", path, imported)
		}
	}
}

// house is the top folder of a package, "" for the root.
func house(path string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
	top, _, _ := strings.Cut(rest, "/")
	return top
}
