package redact

import "sync"

// pattern is one fixed string to look for.
type pattern struct {
	text string
	fold bool // letters match in both cases; text is lower case then
	rule *rule
}

// finder looks for many fixed strings at once. It reads three bytes at every second offset: a string of three bytes or
// more shows its first or its second group of three there. No step depends on the one before, so text without any of
// the strings costs about half a nanosecond per byte.
type finder struct {
	index   [1 << hashBits]uint16 // by the hash of three bytes: 1 + index of their bucket; 0: none
	buckets [][]lead
}

// lead is a pattern that may stand so many bytes before the place that was looked at.
type lead struct {
	pattern *pattern
	offset  int
}

const hashBits = 14

// hash maps three bytes, without the case bit, to a bucket.
func hash(x uint32) uint32 { return (x & 0xdfdfdf) * 0x9e3779b1 >> (32 - hashBits) }

func three(a, b, c byte) uint32 { return uint32(a) | uint32(b)<<8 | uint32(c)<<16 }

func newFinder(patterns []*pattern) *finder {
	if len(patterns) == 0 {
		return nil
	}
	f := &finder{}
	for _, p := range patterns {
		t := p.text
		f.put(three(t[0], t[1], t[2]), lead{p, 0})
		if len(t) > 3 {
			f.put(three(t[1], t[2], t[3]), lead{p, 1})
			continue
		}
		for c := range 256 { // whatever follows a pattern of three bytes
			if c&0x20 == 0 {
				f.put(three(t[1], t[2], byte(c)), lead{p, 1})
			}
		}
	}
	return f
}

func (f *finder) put(x uint32, l lead) {
	h := hash(x)
	if f.index[h] == 0 {
		f.buckets = append(f.buckets, nil)
		f.index[h] = uint16(len(f.buckets))
	}
	bucket := &f.buckets[f.index[h]-1]
	if n := len(*bucket); n == 0 || (*bucket)[n-1] != l {
		*bucket = append(*bucket, l)
	}
}

// each calls found with every place where a pattern stands and at least a byte follows or the pattern is longer than
// four. found returns the offset before which no more is looked for.
func (f *finder) each(s string, found func(at int, p *pattern) int) {
	for i := 0; i+4 <= len(s); {
		x := uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
		bucket := f.index[hash(x)]
		if bucket == 0 {
			i += 2
			continue
		}
		next := i + 2
		for _, l := range f.buckets[bucket-1] {
			if at := i - l.offset; at >= 0 && matches(s[at:], l.pattern) {
				next = max(next, found(at, l.pattern))
			}
		}
		i = next
	}
}

func matches(s string, p *pattern) bool {
	if len(s) < len(p.text) {
		return false
	}
	if !p.fold {
		return s[:len(p.text)] == p.text
	}
	for i := 0; i < len(p.text); i++ {
		b := s[i]
		if b >= 'A' && b <= 'Z' {
			b |= 0x20
		}
		if b != p.text[i] {
			return false
		}
	}
	return true
}

// shapes is compiled once, at first use: a start of the program that redacts nothing does not pay for it.
var shapes = sync.OnceValue(func() *finder {
	var patterns []*pattern
	for i := range rules {
		r := &rules[i]
		for _, prefix := range r.prefixes {
			patterns = append(patterns, &pattern{text: prefix, fold: r.fold, rule: r})
		}
	}
	return newFinder(patterns)
})

// scan finds secrets by shape; guesses are those from words such as "password".
func scan(s string, guesses bool) (out []Match) {
	done := 0
	shapes().each(s, func(at int, p *pattern) int {
		if at < done || p.rule.guess && !guesses {
			return 0
		}
		start, end, ok := p.rule.verify(s, at, len(p.text))
		if !ok || start < done {
			return 0
		}
		out = append(out, Match{Kind: p.rule.kind, Start: start, End: end})
		done = end
		return end
	})
	return out
}
