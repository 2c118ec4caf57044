package anomaly

import "slices"

// counter holds the value of one detector in one session: how many events its window has. It keeps the newest
// events only, as many as the highest threshold needs; more of them could not change what fires.
type counter struct {
	times []int64 // ring, nanoseconds
	first int     // index of the oldest
	n     int
	count int // for [Burst], which has no window
	above [2]bool
}

func (c *counter) push(now int64, most int) {
	for c.n >= most { // also after a reload with a lower threshold
		c.first = (c.first + 1) % len(c.times)
		c.n--
	}
	if c.n == len(c.times) {
		c.grow(most)
	}
	c.times[(c.first+c.n)%len(c.times)] = now
	c.n++
}

func (c *counter) grow(most int) {
	bigger := make([]int64, min(most, max(8, 2*len(c.times))))
	for i := range c.n {
		bigger[i] = c.times[(c.first+i)%len(c.times)]
	}
	c.times, c.first = bigger, 0
}

// expire drops what is as old as the window or older.
func (c *counter) expire(now, window int64) {
	for c.n > 0 && now-c.times[c.first] >= window {
		c.first = (c.first + 1) % len(c.times)
		c.n--
	}
}

// crossed notes the value and returns the index of the step that was reached from below, -1 if none was. Should two
// be reached at once, it is the second.
func (c *counter) crossed(value int, steps []Step) int {
	reached := -1
	for i, step := range steps {
		now := value >= step.Threshold
		if now && !c.above[i] {
			reached = i
		}
		c.above[i] = now
	}
	return reached
}

// contacts are different recipients, the one contacted last at the end.
type contacts struct {
	list []contact
}

type contact struct {
	who uint64
	at  int64
}

// touch notes a contact; most bounds how many are kept.
func (c *contacts) touch(who uint64, now int64, most int) {
	for i := range c.list {
		if c.list[i].who == who {
			c.list = append(c.list[:i], c.list[i+1:]...)
			break
		}
	}
	if len(c.list) >= most {
		c.list = append(c.list[:0], c.list[len(c.list)-most+1:]...)
	}
	c.list = append(c.list, contact{who: who, at: now})
}

func (c *contacts) expire(now, window int64) {
	old := 0
	for old < len(c.list) && now-c.list[old].at >= window {
		old++
	}
	if old > 0 {
		c.list = append(c.list[:0], c.list[old:]...)
	}
}

// recent remembers the newest [maxRuns] things.
type recent struct{ list []uint64 }

const maxRuns = 32

func (r *recent) contains(v uint64) bool { return slices.Contains(r.list, v) }

// add reports whether the thing is new.
func (r *recent) add(v uint64) bool {
	if r.contains(v) {
		return false
	}
	if len(r.list) >= maxRuns {
		r.list = append(r.list[:0], r.list[1:]...)
	}
	r.list = append(r.list, v)
	return true
}

// set remembers the newest [maxEvents] things.
type set struct {
	has  map[uint64]struct{}
	ring []uint64
	next int
}

func (s *set) contains(v uint64) bool { _, ok := s.has[v]; return ok }

func (s *set) add(v uint64) {
	if s.contains(v) {
		return
	}
	if s.has == nil {
		s.has = map[uint64]struct{}{}
	}
	if len(s.ring) < maxEvents {
		s.ring = append(s.ring, v)
	} else {
		delete(s.has, s.ring[s.next])
		s.ring[s.next] = v
		s.next = (s.next + 1) % maxEvents
	}
	s.has[v] = struct{}{}
}
