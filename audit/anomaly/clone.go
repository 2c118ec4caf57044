package anomaly

import (
	"maps"
	"slices"
)

// clone copies a session so that nothing done to the copy shows in the original.
func (s *state) clone() *state {
	c := *s
	for d := range c.counters {
		c.counters[d].times = slices.Clone(c.counters[d].times)
	}
	c.contacted.list = slices.Clone(c.contacted.list)
	c.calls.calls = slices.Clone(c.calls.calls)
	c.warned.told, c.warned.keys = maps.Clone(c.warned.told), slices.Clone(c.warned.keys)
	c.sizes.series = make(map[uint64]*series, len(s.sizes.series))
	for param, original := range s.sizes.series {
		one := *original
		one.bytes = slices.Clone(one.bytes)
		c.sizes.series[param] = &one
	}
	c.seen, c.words = s.seen.clone(), s.words.clone()
	c.runs.list, c.ended.list = slices.Clone(s.runs.list), slices.Clone(s.ended.list)
	c.refusals, c.reads = slices.Clone(c.refusals), slices.Clone(c.reads)
	return &c
}

func (s *set) clone() set {
	return set{has: maps.Clone(s.has), ring: slices.Clone(s.ring), next: s.next}
}
