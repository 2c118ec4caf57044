package command

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolward/toolward/gitindex"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// xargs gives a program names that nobody wrote, and "--files0-from=.env", "-o.git/config" and "a -o.git/config" are names, too. Options that
// are absent spoil nothing: so the names that would be listed are looked at.

// mayListOptions reports whether what a pipeline lists for xargs may be read as options.
func (v *evaluation) mayListOptions(xargs *Segment, pipeline []Segment) bool {
	if !listing(pipeline) || v.written || v.unpacked || hasEffect(xargs.effects, shell.Reads) ||
		slices.ContainsFunc(pipeline[1:], func(s Segment) bool { return !onlyFlags(filterFlags, &s) }) {
		return true
	}
	by := &pipeline[0]
	names := by.Program.names()
	if len(names) != 1 || by.matchesFiles() || !onlyFlags(listFlags, by) {
		return true
	}
	odd := func(name string) bool { return name[0] == '-' || !takesLists(xargs.Args) && splits(name) }
	switch names[0] {
	case "git":
		return v.oddlyTracked(by, odd)
	case "find": // each name begins with what it looks in
		odd = func(name string) bool { return !takesLists(xargs.Args) && splits(name) }
	}
	return v.oddBelow(by, odd)
}

// splits reports whether xargs may make several words, or another one, of a name.
func splits(name string) bool {
	return strings.ContainsAny(name, "'\"\\") || !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) })
}

// takesLists reports whether xargs takes names with a zero byte between them, whatever is in them.
func takesLists(args []string) bool {
	return len(args) > 0 && (args[0] == "-0" || args[0] == "--null")
}

// listFlags are the short options with which programs list names of files as they are, and nothing beside them: "ls -l" and "find -ls"
// print "-rw-r--r--", too. Of filters they are those with which whole lines pass: "grep -o" makes an option of the middle of a name.
var (
	listFlags = map[string]string{
		"ls": "1AadrStu", "fd": "HIaetd0", "fdfind": "HIaetd0", "grep": "EFHILPRZehilnrsvwx", "egrep": "HILRZehilnrsvwx", "fgrep": "HILRZehilnrsvwx", "rg": "0Fegilntwvx",
	}
	filterFlags = map[string]string{
		"grep": "EFGPeivwx", "egrep": "eivwx", "fgrep": "eivwx", "rg": "Feivwx", "sort": "dfhnruV", "uniq": "diu", "head": "n0123456789", "tail": "n0123456789",
	}
	listOptions = strings.Fields("--files --files-with-matches --files-without-match --hidden --no-ignore --null --recursive --include --exclude --exclude-dir --type --extension --glob --")
)

// onlyFlags reports whether a program has no other options than these. What find is told are tests and actions.
func onlyFlags(flags map[string]string, s *Segment) bool {
	name := s.Program.names()[0]
	known := flags[name]
	switch {
	case name == "find":
		return !slices.Contains(s.Args, "-ls")
	case name == "git":
		return true // see oddlyTracked
	case known == "":
		return false
	}
	return !slices.ContainsFunc(s.Args, func(a string) bool {
		option, _, _ := strings.Cut(a, "=")
		return strings.HasPrefix(a, "-") && strings.Trim(a[1:], known) != "" && !slices.Contains(listOptions, option)
	})
}

// oddBelow reports whether one of the names below what a program lists is odd.
func (v *evaluation) oddBelow(by *Segment, odd func(name string) bool) bool {
	pass, looked := filterOf(by), false
	for i := range by.effects {
		e := &by.effects[i]
		if e.Kind != shell.Reads {
			continue
		}
		if unknownOperand(e.Path) || e.Path == "" || odd(e.Path) || strings.HasPrefix(e.Path, "-") {
			return true
		}
		for _, dir := range append([]string{by.Dir}, by.OtherDir...) {
			r, err := v.locate(absolute(dir, e.Dir), e.Path)
			if err != nil || r.Kind == place.KindDirectory && v.oddNames(r.Real, pass, odd) {
				return true
			}
			looked = true
		}
	}
	return !looked
}

func (v *evaluation) oddNames(root string, pass filter, odd func(name string) bool) bool {
	for pending := []string{root}; len(pending) > 0; {
		at := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		entries, err := v.below(at)
		switch {
		case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return true
		}
		for _, e := range entries {
			switch {
			case e.Type()&fs.ModeSymlink == 0 && !pass(e.Name(), e.IsDir()):
			case odd(e.Name()):
				return true
			case e.IsDir():
				pending = append(pending, path.Join(at, e.Name()))
			}
		}
	}
	return false
}

// ofTracked are the options of "git ls-files" with which it prints no more than the paths that it tracks.
var ofTracked = strings.Fields("-z -c --cached -m --modified -d --deleted --exclude-standard --")

// oddlyTracked reports whether one of the paths that "git ls-files" may print is odd.
func (v *evaluation) oddlyTracked(by *Segment, odd func(name string) bool) bool {
	if by.Args[0] != "ls-files" || len(by.OtherDir) > 0 || slices.ContainsFunc(by.Args[1:], func(a string) bool {
		return strings.HasPrefix(a, "-") && !slices.Contains(ofTracked, a)
	}) {
		return true
	}
	r, err := v.locate("/", by.Dir)
	if err != nil || !v.inOwnRepository(by.Dir) {
		return true
	}
	top := v.where.Workspace
	index := path.Join(top, ".git", "index")
	if _, err := v.e.resolver.files.Look(index); errors.Is(err, fs.ErrNotExist) {
		node, err := v.look(path.Join(top, ".git"))
		return err != nil || !node.Mode.IsDir() // nothing is tracked yet
	}
	files, ok := v.e.resolver.files.(contents)
	if !ok {
		return true
	}
	data, err := files.ReadFile(index, gitindex.Largest)
	if err != nil {
		return true
	}
	within := strings.TrimPrefix(strings.TrimPrefix(r.Real, top), "/")
	found := false
	whole := gitindex.Walk(data, func(tracked []byte) bool {
		name := string(bytes.TrimPrefix(tracked, []byte(within+"/")))
		found = name == "" || strings.HasSuffix(name, "/") || odd(name)
		return !found
	})
	return found || !whole
}
