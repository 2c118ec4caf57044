package undo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// errElsewhere says that calls cannot be taken back together.
var errElsewhere = errors.New("the calls are not of one workspace")

// asked are the calls of a request, the oldest first.
func (s *Store) asked(r Request) ([]Call, error) {
	var list []Call
	for _, id := range append([]string{r.ID}, r.With...) {
		c, ok := s.Call(id)
		if !ok {
			return nil, fmt.Errorf("the call %s: %w", id, ErrGone)
		}
		list = append(list, c)
	}
	for i := range list {
		if string(list[i].Workspace) != string(list[0].Workspace) {
			return nil, errElsewhere
		}
	}
	slices.SortFunc(list, func(a, b Call) int { return cmp.Compare(a.Number, b.Number) })
	return slices.CompactFunc(list, func(a, b Call) bool { return a.Number == b.Number }), nil
}

// merged is what several calls did to one path.
type merged struct {
	Change
	touched bool // by somebody else, between two of the calls
}

// merge is what calls changed together, the oldest first.
func (s *Store) merge(calls []Call) ([]merged, error) {
	byPath := map[string]*merged{}
	for _, c := range calls {
		if !c.Ended() {
			return nil, ErrRunning
		}
		changes, err := s.Changes(c.Before, c.After)
		if err != nil {
			return nil, err
		}
		for _, change := range changes {
			have := byPath[change.Path]
			if have == nil {
				byPath[change.Path] = &merged{Change: change}
				continue
			}
			have.touched = have.touched || !alike(have.After, change.Before)
			have.After = change.After
		}
	}
	var list []merged
	for _, at := range slices.Sorted(maps.Keys(byPath)) { // a directory stands before what is in it
		if m := byPath[at]; m.touched || !alike(m.Before, m.After) {
			list = append(list, *m)
		}
	}
	return list, nil
}
