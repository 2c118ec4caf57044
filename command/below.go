package command

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
	"github.com/toolward/toolward/shell/profiles"
)

// "cat .env" asks, and "grep -r KEY .", "tar cf - . | base64" and "find /proc -name environ -exec cat {} +" read the same file
// without naming it. So of a directory whose files are read, the names below are looked at.

// maxBelow bounds how many names one decision looks at below directories that are read.
const maxBelow = 50000

// packages are directories of the workspace with code of others, or what a build made: no place for a person's keys, and most of
// the names of a project. An agent that moves a key there is asked about the key.
var packages = strings.Fields("node_modules .venv venv target __pycache__ .tox .nox .gradle")

// readsBelow reports whether the segment reads the files below a directory that it names, rather than their names. Tools that obey
// a directory (make, npm) read what is theirs; their code may read anything, and is judged as the project's.
func (s *Segment) readsBelow() bool {
	name := plainName(s.Program.Word)
	switch {
	case slices.Contains(listers, name), slices.Contains(showsAnything, name), slices.Contains([]string{"find", "fd", "fdfind", "cd"}, name):
		return false
	case name == "git":
		return gitReadsBelow(s.Args)
	case slices.Contains([]string{"tar", "gtar", "bsdtar", "cpio"}, name):
		return true
	case name == "rg" && slices.Contains(s.Args, "--files"):
		return false
	}
	if !s.profile || hasEffect(s.effects, shell.Project) {
		return false
	}
	p := profiles.Of(path.Base(s.Program.Path))
	return p == nil || !slices.Contains(ofTheirKind, p.File)
}

// ofTheirKind are the files of profiles whose programs read sources of one language, or the settings of one service, below a
// directory: "gofmt -l ." does not open .env.
var ofTheirKind = strings.Fields(`build.txt containers.txt go.txt javascript-tools.txt javascript.txt jvm.txt
	python.txt runtimes.txt rust.txt`)

// gitReadsBelow reports whether git looks at files that it does not track, and that nobody wanted in the repository.
func gitReadsBelow(args []string) bool {
	does := subcommand(args)
	for _, a := range args[slices.Index(args, does)+1:] {
		short := strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--")
		switch does {
		case "diff":
			if a == "--no-index" {
				return true
			}
		case "grep":
			if strings.HasPrefix(a, "--no-in") || strings.HasPrefix(a, "--unt") || strings.HasPrefix(a, "--no-ex") {
				return true
			}
		case "add", "stage":
			if short && strings.Contains(a, "f") || strings.HasPrefix(a, "--f") {
				return true
			}
		case "stash":
			if short && strings.Contains(a, "a") || strings.HasPrefix(a, "--al") {
				return true
			}
		}
	}
	return false
}

// secretBelow names a secret, or something of Toolward's own, below a directory, of which the segment would read the files that
// pass its filter; listed: another program lists them, and the reader follows links that it is given. What cannot be looked
// through is more than anybody answers for.
func (v *evaluation) secretBelow(root string, pass filter, listed bool) (name string, found bool) {
	type dir struct {
		path string
		pass filter
	}
	into := func(at, name string, pass filter) dir {
		if listed && pass(name, false) {
			pass = takesAll // the reader is given the directory itself
		}
		return dir{path.Join(at, name), pass}
	}
	for pending := []dir{into(path.Dir(root), path.Base(root), pass)}; len(pending) > 0; {
		at, pass := pending[len(pending)-1].path, pending[len(pending)-1].pass
		pending = pending[:len(pending)-1]
		entries, err := v.below(at)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			continue // nor can the command
		}
		if err != nil {
			return "more files than anybody looks through", true
		}
		for _, e := range entries {
			file := path.Join(at, e.Name())
			switch {
			case !pass(e.Name(), e.IsDir()), e.IsDir() && v.ofOthers(at, e.Name()):
				continue
			case e.Type()&fs.ModeSymlink != 0:
				if listed && v.leadsToSecret(file) {
					return file, true
				}
				continue
			}
			if zone, err := v.zone(file); err != nil || zone == place.Secret || zone == place.Self {
				return file, true
			}
			if e.IsDir() {
				pending = append(pending, into(at, e.Name(), pass))
			}
		}
	}
	return "", false
}

// leadsToSecret reports whether a link leads to a secret, or to a directory, of which nobody has looked at what lies below.
func (v *evaluation) leadsToSecret(link string) bool {
	r, err := v.locate("/", link)
	return err != nil || r.Zone == place.Secret || r.Zone == place.Self || r.Kind == place.KindDirectory && !place.Within(r.Real, v.where.Workspace)
}

// below lists a directory, once in a decision.
func (v *evaluation) below(dir string) ([]fs.DirEntry, error) {
	if entries, known := v.listings[dir]; known {
		return entries, nil
	}
	entries, err := v.e.resolver.files.ReadDir(dir)
	if v.bounds.below += 1 + len(entries); v.bounds.below > maxBelow {
		return nil, errTooManyNames
	}
	if err == nil {
		if v.listings == nil {
			v.listings = map[string][]fs.DirEntry{}
		}
		v.listings[dir] = entries
	}
	return entries, err
}

// ofOthers reports whether a directory of the workspace holds what the person has not written.
func (v *evaluation) ofOthers(in, name string) bool {
	return place.Within(in, v.where.Workspace) && (slices.Contains(packages, name) || name == "objects" && path.Base(in) == ".git")
}

// readsListed reports whether a command that a program runs reads a secret whose name nobody wrote: find, or what stands before
// xargs, lists it.
func (v *evaluation) readsListed(seg *Segment, j *Judged, c circumstances) bool {
	name := plainName(j.Runs.Program.Word)
	if !j.Open || slices.Contains(listers, name) || slices.Contains(showsAnything, name) {
		return false
	}
	by := seg
	if !slices.Contains(seg.Program.names(), "find") {
		if len(c.feeding) == 0 {
			return false // what is not known to be a list was judged as any file
		}
		by = &c.feeding[0]
	}
	secret, found := v.listedBelow(by)
	if found {
		j.Why = "it reads what is listed, " + secret + " among it"
	}
	return found
}

// listedBelow names a secret among the files that a program lists.
func (v *evaluation) listedBelow(by *Segment) (name string, found bool) {
	if plainName(by.Program.Word) == "git" && !slices.ContainsFunc(by.Args, func(a string) bool {
		return strings.HasPrefix(a, "--o") || strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.ContainsAny(a, "oi")
	}) {
		return "", false // what is tracked is what the project shows to everybody who has it
	}
	pass := filterOf(by)
	for i := range by.effects {
		e := &by.effects[i]
		if e.Kind != shell.Reads {
			continue
		}
		for _, dir := range append([]string{by.Dir}, by.OtherDir...) {
			r, err := v.locate(absolute(dir, e.Dir), e.Path)
			if err != nil {
				return e.Path, true
			}
			if r.Kind != place.KindDirectory {
				continue
			}
			if name, found = v.secretBelow(r.Real, pass, true); found {
				return name, true
			}
		}
	}
	return "", false
}
