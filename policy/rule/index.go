package rule

import (
	"path"
	"slices"
	"strings"
)

// Index finds among many conditions those that can hold for a call. A condition that demands one of a few values of
// something — a parameter that equals, a path under a directory, a host of a list — is looked up by that value, so that
// a thousand such conditions cost no more than ten. It is immutable and safe for concurrent use.
type Index struct {
	conditions []*Condition
	always     []int // positions of conditions that demand nothing which can be looked up
	demands    []demands
}

// demands are the conditions that demand something of one attribute.
type demands struct {
	attribute attribute
	all       []int
	byKey     map[string][]int
	lengths   []int // of the keys, for texts that begin with one
}

// NewIndex prepares conditions. Positions count from 0 in their order.
func NewIndex(conditions []*Condition) *Index {
	x := &Index{conditions: conditions}
	for i, c := range conditions {
		if c.demand == nil {
			x.always = append(x.always, i)
			continue
		}
		at := slices.IndexFunc(x.demands, func(d demands) bool { return d.attribute == c.demand.of })
		if at < 0 {
			at = len(x.demands)
			x.demands = append(x.demands, demands{attribute: c.demand.of, byKey: map[string][]int{}})
		}
		d := &x.demands[at]
		d.all = append(d.all, i)
		for _, key := range c.demand.keys {
			if list := d.byKey[key]; len(list) == 0 || list[len(list)-1] != i {
				d.byKey[key] = append(list, i)
			}
			if d.attribute.test == testPrefix && !slices.Contains(d.lengths, len(key)) {
				d.lengths = append(d.lengths, len(key))
			}
		}
	}
	return x
}

// First returns the position of the first condition that holds, or -1. With failing, one that cannot be evaluated counts
// too, and comes with the reason.
func (x *Index) First(c *Call, failing bool) (int, error) {
	s := search{index: x, call: c, failing: failing, found: -1}
	s.try(x.always)
	for i := range x.demands {
		s.look(&x.demands[i])
	}
	return s.found, s.reason
}

// search is one run of First.
type search struct {
	index   *Index
	call    *Call
	failing bool
	found   int
	reason  error
}

// try evaluates conditions before the one that was found already.
func (s *search) try(list []int) {
	for _, i := range list {
		if s.found >= 0 && i >= s.found {
			return
		}
		holds, err := s.index.conditions[i].Holds(s.call)
		if err == nil && holds || err != nil && s.failing {
			s.found, s.reason = i, err
			return
		}
	}
}

// look tries the conditions whose demand the call meets. Where that cannot be told, all are tried: their own evaluation
// says then what is wrong.
func (s *search) look(d *demands) {
	if !d.attribute.each {
		if text, known := d.attribute.text(s.call); !known || !s.lookText(d, text) {
			s.try(d.all)
		}
		return
	}
	for _, text := range d.attribute.list(s.call) {
		if !s.lookText(d, text) {
			s.try(d.all)
			return
		}
	}
}

// lookText reports whether the text is one that the test can read.
func (s *search) lookText(d *demands, text string) bool {
	switch d.attribute.test {
	case testPath:
		return s.lookPath(d, text)
	case testHost:
		return s.lookHost(d, text)
	case testPrefix:
		for _, n := range d.lengths {
			if n <= len(text) {
				s.try(d.byKey[text[:n]])
			}
		}
		return true
	}
	s.try(d.byKey[text])
	return true
}

// lookPath tries the conditions on each directory that a path is under.
func (s *search) lookPath(d *demands, text string) bool {
	if checkPath(text) != nil {
		return false
	}
	for dir := path.Clean(text); ; {
		s.try(d.byKey[dir])
		if dir == "/" {
			return true
		}
		dir = dir[:max(strings.LastIndexByte(dir, '/'), 1)]
	}
}

// lookHost tries the conditions on a host, and on each domain that it is below.
func (s *search) lookHost(d *demands, text string) bool {
	a, err := s.call.address(text)
	if err != nil {
		return false
	}
	s.try(d.byKey[a.host])
	for i := range len(a.host) {
		if a.host[i] == '.' {
			s.try(d.byKey[a.host[i:]])
		}
	}
	return true
}
