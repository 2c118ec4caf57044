package place

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// FoldsCase reports whether names that differ only in case are the same file where dir is. It looks the
// directory up under a swapped spelling and writes nothing. When it cannot tell it says true, which makes more
// names guarded, not fewer.
func FoldsCase(dir string) bool {
	for p := path.Clean(dir); p != "/" && p != "."; p = path.Dir(p) {
		parent, base := path.Split(p)
		other := swapCase(base)
		if other == base {
			continue // no letter in the name: ask the parent, which is nearly always the same volume
		}
		here, err := os.Stat(p)
		if err != nil {
			return true
		}
		there, err := os.Stat(parent + other)
		if os.IsNotExist(err) {
			return false
		}
		return err != nil || os.SameFile(here, there)
	}
	return false // only "/" has no name of its own; Unix roots distinguish case
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// Canonical replaces every path of the layout by its real one, following symbolic links; what does not exist
// yet keeps its last elements. Comparing real paths with unresolved ones is how a workspace given through a
// link ends up "outside", or a state directory given through one unguarded.
func (l Layout) Canonical() (Layout, error) {
	var failure error
	real := func(p string) string {
		if p == "" || failure != nil {
			return p
		}
		r, err := realPath(p)
		if err != nil {
			failure = fmt.Errorf("place: %w", err)
		}
		return r
	}
	all := func(list []string) (out []string) {
		for _, p := range list {
			out = append(out, real(p))
		}
		return out
	}
	l.Workspace, l.Home, l.StateDir, l.ConfigFile = real(l.Workspace), real(l.Home), real(l.StateDir), real(l.ConfigFile)
	var links []string
	for _, p := range l.Own {
		// Where a link stands is guarded as well as where it leads: whoever could put a file in its place needs no more.
		if entry := path.Join(real(path.Dir(p)), path.Base(p)); entry != real(p) {
			links = append(links, entry)
		}
	}
	l.Own, l.ReadRoots, l.WriteRoots = append(all(l.Own), links...), all(l.ReadRoots), all(l.WriteRoots)
	return l, failure
}

// Narrowed is a canonical layout without a workspace that cannot be an agent's own, such as the home directory: an agent that was
// started there is told so by whoever started it, but then the programs that every shell finds, and every start-up file,
// would be files of its own.
func (l Layout) Narrowed() Layout {
	if l.Workspace != "" && l.suits(l.Workspace) != nil {
		l.Workspace = ""
	}
	return l
}

func realPath(p string) (string, error) {
	if !filepath.IsAbs(p) {
		return "", fmt.Errorf("%q is not an absolute path", p)
	}
	w := walk{c: &Classifier{}, asked: p, follow: true}
	r, err := w.run(path.Clean(p))
	return r.Real, err
}

// OwnPrograms lists Toolward's programs as far as they are known: the running executable and its two
// companions beside it. They belong into Layout.Own.
func OwnPrograms() []string {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	dir := filepath.Dir(exe)
	own := []string{exe}
	for _, name := range []string{"toolward", "toolward-hook", "toolward-inside"} {
		p := filepath.Join(dir, name)
		// Only files: a source directory called "toolward" is somebody's workspace.
		if info, err := os.Stat(p); p != exe && err == nil && info.Mode().IsRegular() {
			own = append(own, p)
		}
	}
	return own
}
