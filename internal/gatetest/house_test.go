package gatetest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/toolward/toolward"

// largest is how many lines of code a package may have without a word about why.
const largest = 5000

var update = flag.Bool("update", false, "write the README's table of the house anew from house.txt")

// room is one row of house.txt: a package, the layer it stands on, what it may import, and why it is larger than others, if it is.
type room struct {
	path  string // from the module's root; "." is the root package
	layer int
	may   []string
	large string
}

// TestImportTable holds the real import graph against house.txt, package by package, in both directions. It stops a package
// from growing a dependency that the house does not know of, above all a leaf that starts to decide, and an allowance that
// outlives its use.
func TestImportTable(t *testing.T) {
	rooms, packages := house(t), goList(t)
	for path, pkg := range packages {
		if rooms[path] == nil && top(path) != "internal" {
			t.Errorf("%s is not in house.txt: add the line\n%s", path, pkg.line(path))
		}
	}
	for path, r := range rooms {
		pkg := packages[path]
		if pkg == nil {
			t.Errorf("house.txt has a line for %s, which does not exist", path)
			continue
		}
		imports := pkg.imports()
		for _, imported := range imports {
			switch to := rooms[imported]; {
			case !slices.Contains(r.may, imported):
				t.Errorf("%s imports %s, which house.txt does not allow", path, imported)
			case to != nil && to.layer > r.layer:
				t.Errorf("%s stands on layer %d and imports %s of layer %d: arrows point downwards", path, r.layer, imported, to.layer)
			}
		}
		for _, allowed := range r.may {
			if !slices.Contains(imports, allowed) {
				t.Errorf("%s may import %s and does not: house.txt allows too much", path, allowed)
			}
		}
		if path == "." {
			pkg.checkStandardOnly(t)
		}
	}
}

// TestPackagesAreSmall stops a room from becoming a loft again without anybody saying why.
func TestPackagesAreSmall(t *testing.T) {
	packages := goList(t)
	for path, r := range house(t) {
		if packages[path] == nil {
			continue
		}
		n := packages[path].lines(t)
		switch {
		case n > largest && r.large == "":
			t.Errorf("%s has %d lines of code, more than %d: build a wall, or say in house.txt why not", path, n, largest)
		case n <= largest && r.large != "":
			t.Errorf("%s has %d lines of code: house.txt need not say why it is large", path, n)
		}
	}
}

// TestReadmeShowsTheHouse keeps the README's table equal to house.txt and to what the packages say of themselves.
func TestReadmeShowsTheHouse(t *testing.T) {
	const begin, end = "<!-- house: go test ./internal/gatetest -run TestReadmeShowsTheHouse -update -->\n", "<!-- house ends -->"
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(readme), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("the README has no place for the table of the house")
	}
	want := before + begin + houseTable(house(t), goList(t)) + end + after
	switch {
	case want == string(readme):
	case *update:
		if err := os.WriteFile("../../README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("the README's table of the house is not that of house.txt: run this test with -update")
	}
}

// houseTable writes the rows by layer. Packages below internal serve tests, and stand on no layer.
func houseTable(rooms map[string]*room, packages map[string]*listed) string {
	var b strings.Builder
	b.WriteString("| layer | package | what it is | imports |\n|---|---|---|---|\n")
	sorted := make([]*room, 0, len(rooms))
	for _, r := range rooms {
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b *room) int { return cmp.Or(cmp.Compare(a.layer, b.layer), strings.Compare(a.path, b.path)) })
	for _, r := range sorted {
		pkg := packages[r.path]
		if pkg == nil {
			continue
		}
		name := r.path
		if name == "." {
			name = "toolward"
		}
		var imports []string
		for _, i := range pkg.imports() {
			if i == "." {
				i = "root"
			}
			imports = append(imports, strings.TrimPrefix(i, r.path+"/"))
		}
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", r.layer, name, pkg.says(), cmp.Or(strings.Join(imports, ", "), "–"))
	}
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		if top(path) == "internal" {
			fmt.Fprintf(&b, "| | `%s` | %s | |\n", path, packages[path].says())
		}
	}
	return b.String()
}

// house reads house.txt: "layer path: imports… # why it is large".
func house(t *testing.T) map[string]*room {
	t.Helper()
	file, err := os.Open("house.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rooms := map[string]*room{}
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line, why, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		head, imports, ok := strings.Cut(line, ":")
		layer, path, spaced := strings.Cut(head, " ")
		number, err := strconv.Atoi(layer)
		if !ok || !spaced || err != nil || rooms[path] != nil {
			t.Fatalf("house.txt:%d: want one line for each package: layer path: imports", n)
		}
		rooms[path] = &room{path: path, layer: number, may: strings.Fields(imports), large: strings.TrimSpace(why)}
	}
	if err := lines.Err(); err != nil || len(rooms) < 10 {
		t.Fatalf("house.txt has %d rooms: %v", len(rooms), err)
	}
	return rooms
}

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Name, Doc, Dir string
	Imports, GoFiles           []string
	IgnoredGoFiles             []string // for other systems
}

// goList lists the packages of the module.
func goList(t *testing.T) map[string]*listed {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Dir,Imports,GoFiles,IgnoredGoFiles", "./...")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string]*listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var pkg listed
		if err := decoder.Decode(&pkg); err != nil {
			t.Fatal(err)
		}
		if path := short(pkg.ImportPath); !strings.Contains(path, "testdata") {
			packages[path] = &pkg
		}
	}
	if len(packages) < 10 {
		t.Fatalf("go list named only %d packages", len(packages))
	}
	return packages
}

// imports are the packages of the module that a package imports.
func (p *listed) imports() []string {
	var own []string
	for _, path := range p.Imports {
		if path == module || strings.HasPrefix(path, module+"/") {
			own = append(own, short(path))
		}
	}
	return own
}

func (p *listed) checkStandardOnly(t *testing.T) {
	for _, path := range p.Imports {
		if strings.Contains(path, ".") {
			t.Errorf("the root package imports %s: only the standard library is allowed there", path)
		}
	}
}

// lines counts the lines of code and comments, those for other systems too.
func (p *listed) lines(t *testing.T) (n int) {
	for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(text, []byte("\n"))
	}
	return n
}

// says is the first sentence of the package's documentation without its first two words.
func (p *listed) says() string {
	for _, words := range []string{"Package " + p.Name + " ", "Command " + filepath.Base(p.Dir) + " "} {
		if rest, ok := strings.CutPrefix(p.Doc, words); ok {
			return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(strings.TrimSuffix(rest, "."))
		}
	}
	return p.Doc
}

// line is the row that house.txt lacks; which layer it stands on is for a person to say.
func (p *listed) line(path string) string {
	return "LAYER " + path + ": " + strings.Join(p.imports(), " ")
}

func short(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// top is the room that a package belongs to: its first folder.
func top(path string) string {
	room, _, _ := strings.Cut(path, "/")
	return room
}
