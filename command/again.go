package command

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// What a part of a command touches is judged before any part runs. A part that runs before it can make a symbolic link:
//
//	git apply links.patch && cp -p exec-approvals.json c/exec-approvals.json
//
// where the patch makes c a link to Toolward's own directory. So every path is resolved once more just before its part
// starts, and the part does not start if the path means something else by then.

// errMoved says that a path does not mean any more what was judged.
var errMoved = errors.New("it does not lead where it did when the command was judged: an earlier part of the command, or something " +
	"beside it, has changed that, and this part was not started; run it by itself, as it will be judged anew")

// judgedPath is a path as a part of a command was judged by it.
type judgedPath struct {
	dir, path string
	ifIn      bool           // it counts only if what the path lies in is a directory
	at        place.Resolved // zero: nobody knew where it leads, or it did not count
}

// again is what package job asks just before the segment starts. nil: it names no paths.
func (s *Segment) again(places Places) func() error {
	paths := s.judgedPaths(nil, places)
	if len(paths) == 0 {
		return nil
	}
	return func() error {
		for i := range paths {
			if err := paths[i].holds(places); err != nil {
				return err
			}
		}
		return nil
	}
}

// judgedPaths lists the paths of what the segment does, of the commands that it runs and of the script that it is given.
func (s *Segment) judgedPaths(list []judgedPath, places Places) []judgedPath {
	for i := range s.Effects {
		j := &s.Effects[i]
		if j.Runs != nil {
			list = j.Runs.judgedPaths(list, places)
		}
		if namesPath(&j.Effect) {
			list = append(list, judgedPath{absolute(s.Dir, j.Dir), j.Path, j.IfIn, j.at})
		}
	}
	if len(s.Effects) == 0 { // nothing came to judge them, or it covers them all: they are what was shown
		for i := range s.effects {
			e := &s.effects[i]
			if !namesPath(e) {
				continue
			}
			p := judgedPath{dir: absolute(s.Dir, e.Dir), path: e.Path, ifIn: e.IfIn}
			if p.counts(places) {
				p.at, _ = places.Resolve(p.dir, p.path) // what cannot be resolved now must not be there later
			}
			list = append(list, p)
		}
	}
	for i := range s.Inner {
		list = s.Inner[i].judgedPaths(list, places)
	}
	return list
}

// namesPath reports whether an effect is about a file that is known before it runs.
func namesPath(e *shell.Effect) bool { return e.Path != "" && !unknownOperand(e.Path) }

// namesPaths reports whether what the segment reads or writes is known by its paths, other than the directory it is in.
func (s *Segment) namesPaths() bool {
	return slices.ContainsFunc(s.effects, func(e shell.Effect) bool {
		return (e.Kind == shell.Reads || e.Kind == shell.Writes) && namesPath(&e) && e.Path != "." && e.Path != "/dev/null"
	})
}

// counts reports whether the effect happens: "cp a b" makes b/a only if b is a directory.
func (p *judgedPath) counts(places Places) bool {
	if !p.ifIn {
		return true
	}
	in, err := places.Resolve(p.dir, path.Dir(p.path))
	return err != nil || in.Kind == place.KindDirectory
}

func (p *judgedPath) holds(places Places) error {
	if !p.counts(places) {
		return nil
	}
	now, err := places.Resolve(p.dir, p.path)
	switch {
	case err != nil && p.at.Real == "":
		return nil // as it was
	case err != nil:
		return fmt.Errorf("%s: %w (%w)", p.path, errMoved, err)
	case now.Real != p.at.Real || now.Zone != p.at.Zone:
		return fmt.Errorf("%s: %w (it leads to %s)", p.path, errMoved, now.Real)
	}
	return nil
}
