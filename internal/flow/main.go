// Command flow prints how the uses between the files of a room run. A use is a pair of files of which the first names something that the
// second declares. The files are put in the order in which the fewest uses run backwards; what still does is printed with the
// names that tie it, so that it can be cut.
//
//	go run ./internal/flow [-v] server command sandbox policy cmd/toolward
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	verbose := flag.Bool("v", false, "print each use that runs backwards, and the names that tie it")
	flag.Parse()
	if err := run(flag.Args(), *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "flow:", err)
		os.Exit(1)
	}
}

func run(rooms []string, verbose bool) error {
	fmt.Printf("%-16s %9s %6s %6s %10s %6s\n", "room", "packages", "files", "uses", "backwards", "share")
	for _, room := range rooms {
		uses, packages, err := usesOf(room)
		if err != nil {
			return err
		}
		order := Order(uses)
		back := uses.against(order)
		fmt.Printf("%-16s %9d %6d %6d %10d %5.1f%%\n", room, packages, len(order), uses.count(), len(back), 100*share(len(back), uses.count()))
		if verbose {
			for _, tie := range back {
				fmt.Printf("  %s -> %s: %s\n", tie.from, tie.to, strings.Join(slices.Sorted(maps.Keys(uses[tie.from][tie.to])), ", "))
			}
		}
	}
	return nil
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// usesOf loads the packages in and below a folder and finds the uses between their files.
func usesOf(room string) (Uses, int, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps,
	}, "./"+room+"/...")
	if err != nil {
		return nil, 0, fmt.Errorf("load %s: %w", room, err)
	}
	root, err := filepath.Abs(room)
	if err != nil {
		return nil, 0, err
	}
	uses := Uses{}
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 {
			return nil, 0, fmt.Errorf("load %s: %v", pkg.PkgPath, pkg.Errors[0])
		}
		for _, file := range pkg.Syntax {
			from, inside := inRoom(root, pkg.Fset.Position(file.Package).Filename)
			if !inside {
				continue
			}
			uses.file(from)
			ast.Inspect(file, func(n ast.Node) bool {
				name, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				used := pkg.TypesInfo.Uses[name]
				if !declared(used) {
					return true
				}
				if to, inside := inRoom(root, pkg.Fset.Position(used.Pos()).Filename); inside && to != from {
					uses.add(from, to, used.Name())
				}
				return true
			})
		}
	}
	return uses, len(loaded), nil
}

// declared reports whether a name belongs to a package or a type: a constant, a variable, a function, a type, a method, a field.
func declared(used types.Object) bool {
	if used == nil || used.Pkg() == nil {
		return false
	}
	switch o := used.(type) {
	case *types.Var:
		return o.IsField() || o.Parent() == o.Pkg().Scope()
	case *types.Func:
		return true
	case *types.Const, *types.TypeName:
		return used.Parent() == used.Pkg().Scope()
	}
	return false
}

func inRoom(root, file string) (string, bool) {
	rel, err := filepath.Rel(root, file)
	return filepath.ToSlash(rel), err == nil && !strings.HasPrefix(rel, "..")
}

// Uses holds, for each file, the files that it uses and the names that it takes from them.
type Uses map[string]map[string]map[string]bool

func (u Uses) file(name string) {
	if u[name] == nil {
		u[name] = map[string]map[string]bool{}
	}
}

func (u Uses) add(from, to, name string) {
	u.file(from)
	u.file(to)
	if u[from][to] == nil {
		u[from][to] = map[string]bool{}
	}
	u[from][to][name] = true
}

func (u Uses) count() (n int) {
	for _, to := range u {
		n += len(to)
	}
	return n
}

type tie struct{ from, to string }

// against lists the uses that run backwards in an order: from a file to one that stands above it.
func (u Uses) against(order []string) []tie {
	var back []tie
	for i, from := range order {
		for _, to := range order[:i] {
			if u[from][to] != nil {
				back = append(back, tie{from, to})
			}
		}
	}
	slices.SortFunc(back, func(a, b tie) int { return cmp.Or(strings.Compare(a.from, b.from), strings.Compare(a.to, b.to)) })
	return back
}
