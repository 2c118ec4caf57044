package command

import (
	"io/fs"
	"path"
	"slices"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// Programs such as "grep -R" follow every link below a directory: one that leads to ~/.ssh is enough. So all links
// below it are looked at, names and metadata only, up to a bound; beyond it the answer is no.

// maxWalked bounds how many names one decision walks through.
const maxWalked = 10000

// linksStay reports whether all links below a directory, and below the directories to which they lead, lead to what may
// be read or written.
func (v *evaluation) linksStay(dir string, may func(place.Resolved) bool) bool {
	pending, walked := []string{dir}, []string{dir}
	for len(pending) > 0 {
		at := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		entries, err := v.walked(at)
		if err != nil {
			return false
		}
		for _, e := range entries {
			p := path.Join(at, e.Name())
			switch {
			case e.IsDir():
				pending = append(pending, p)
				continue
			case e.Type()&fs.ModeSymlink == 0:
				continue
			}
			r, err := v.locate("/", p)
			if err != nil || !may(r) {
				return false
			}
			inside := slices.ContainsFunc(walked, func(dir string) bool { return place.Within(r.Real, dir) })
			if r.Kind == place.KindDirectory && !inside {
				pending, walked = append(pending, r.Real), append(walked, r.Real)
			}
		}
	}
	return true
}

// walked lists a directory of a walk.
func (v *evaluation) walked(dir string) ([]fs.DirEntry, error) {
	if v.bounds.walked++; v.bounds.walked > maxWalked {
		return nil, errTooManyNames
	}
	entries, err := v.e.resolver.files.ReadDir(dir)
	if v.bounds.walked += len(entries); v.bounds.walked > maxWalked {
		return nil, errTooManyNames
	}
	return entries, err
}

// followsLinks reports whether links are followed that may be anywhere below what the segment names.
func (s *Segment) followsLinks() bool {
	if slices.ContainsFunc(s.effects, func(e shell.Effect) bool { return e.Far }) {
		return true
	}
	for i := range s.Effects {
		if run := s.Effects[i].Runs; run != nil && run.followsLinks() {
			return true
		}
	}
	return slices.ContainsFunc(s.Inner, func(in Segment) bool { return in.followsLinks() })
}

// mayMakeLinks reports whether links may be there after the segment that were not there when the command was judged.
// Code of the project could, too, but it needs no links to read what it likes.
func mayMakeLinks(s *Segment) bool {
	if slices.ContainsFunc(s.Inner, func(in Segment) bool { return mayMakeLinks(&in) }) {
		return true
	}
	for i := range s.Effects {
		if run := s.Effects[i].Runs; run != nil && mayMakeLinks(run) {
			return true
		}
	}
	name := shell.ProgramName(s.Program.Word)
	makes := name == "ln" || name == "gln" || name == "git" || slices.Contains(unpackers, name)
	return makes && hasEffect(s.effects, shell.Writes)
}
