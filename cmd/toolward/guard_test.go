package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/toolward/toolward"

// mayImport is what the command line is made of. The rest is behind the gateway, or at the other end of its socket.
var mayImport = []string{
	"/gateway", "/config", "/display", "/doctor", "/importer",
	"",                           // its words: a verdict, a level, a call of the demo
	"/client/local",              // how the running gateway is asked, and the forms of its answers by the names they have there
	"/client/terminal",           // the terminal console is started by a command; what it shows and answers is not known here
	"/gateway/installation",      // what install, uninstall and doctor do: here it is only confirmed and printed
	"/gateway/trial",             // what a gateway would decide by a file or a record, where none runs
	"/bridge/hookclient",         // the hook program in the big binary
	"/bridge/runclient",          // toolward-run, likewise
	"/cmd/toolward-inside/entry", // the program inside of sandboxes, likewise
}

// listed is a package as the go tool lists it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
}

// commandLinePackages are this package and all that it needs, compiled.
func commandLinePackages(t *testing.T) map[string]*listed {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports", ".")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*listed{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = &p
	}
}

// The command line decides nothing: it imports the gateway and what tells of it, and none of its types could be put where a
// part of the gate belongs.
func TestTheCommandLineIsNoPartOfTheGate(t *testing.T) {
	all := commandLinePackages(t)
	this := all[module+"/cmd/toolward"]
	for _, imported := range this.Imports {
		if path, ours := strings.CutPrefix(imported, module); ours && !slices.Contains(mayImport, path) {
			t.Errorf("cmd/toolward imports %s, which is the gateway's to know", imported)
		}
	}
	for _, path := range mayImport {
		if !slices.Contains(this.Imports, module+path) {
			t.Errorf("%s is not imported any more: take it out of the list", cmp.Or(path, "the root"))
		}
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if p := all[path]; p != nil {
			return os.Open(p.Export)
		}
		return nil, fmt.Errorf("%s is not listed", path)
	})
	var files []*ast.File
	for _, name := range this.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(this.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	commands, err := (&types.Config{Importer: imports}).Check(this.ImportPath, fset, files, nil)
	if err != nil {
		t.Fatal(err)
	}
	root, err := imports.Import(module)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range root.Scope().Names() {
		part, ok := root.Scope().Lookup(name).Type().Underlying().(*types.Interface)
		if _, isType := root.Scope().Lookup(name).(*types.TypeName); !ok || !isType || part.NumMethods() == 0 {
			continue
		}
		seen++
		for _, own := range commands.Scope().Names() {
			named, ok := commands.Scope().Lookup(own).(*types.TypeName)
			if ok && types.Implements(types.NewPointer(named.Type()), part) {
				t.Errorf("%s implements toolward.%s", own, name)
			}
		}
	}
	if seen < 5 {
		t.Errorf("the root package has only %d interfaces", seen)
	}
}
