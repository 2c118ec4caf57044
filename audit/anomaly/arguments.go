package anomaly

import (
	"math"
	"slices"
)

// Limits of the memory of argument lengths.
const (
	maxSeries     = 32  // parameters of one session
	maxSamples    = 200 // lengths of one parameter
	leastSamples  = 20
	leastOdd      = 4096 // bytes; nothing shorter is odd
	oddTimes      = 10   // times the 95th percentile
	maxParamsSeen = 64   // parameters of one call
)

// lengths remembers how long the values of parameters have been.
type lengths struct {
	series map[uint64]*series
	turn   uint64
}

type series struct {
	bytes []uint32 // ring
	next  int
	used  uint64
}

// odd notes the length of a value and reports whether it is far longer than the values before it.
func (l *lengths) odd(param uint64, size int) bool {
	l.turn++
	s := l.series[param]
	if s == nil {
		s = l.start(param)
	}
	s.used = l.turn
	odd := size >= leastOdd && len(s.bytes) >= leastSamples && size > oddTimes*s.percentile95()
	length := uint32(min(size, math.MaxUint32))
	if len(s.bytes) < maxSamples {
		s.bytes = append(s.bytes, length)
	} else {
		s.bytes[s.next] = length
		s.next = (s.next + 1) % maxSamples
	}
	return odd
}

// start begins a series, in the place of the one unused for longest if there are too many.
func (l *lengths) start(param uint64) *series {
	if l.series == nil {
		l.series = map[uint64]*series{}
	}
	if len(l.series) == maxSeries {
		oldest, used := uint64(0), uint64(math.MaxUint64)
		for p, s := range l.series {
			if s.used < used {
				oldest, used = p, s.used
			}
		}
		delete(l.series, oldest)
	}
	s := &series{}
	l.series[param] = s
	return s
}

func (s *series) percentile95() int {
	sorted := slices.Clone(s.bytes)
	slices.Sort(sorted)
	return int(sorted[(len(sorted)*95+99)/100-1])
}

// isBulk reports whether a parameter is meant to hold whole texts, of any length.
func isBulk(tool, param string) bool {
	switch param {
	case "content", "newText":
		return true
	case "patch", "input":
		return tool == "apply_patch"
	}
	return false
}

// A run of this many characters is looked at; entropy is in bits for each character.
const (
	encodedRun    = 200
	base64Entropy = 4.5
	hexEntropy    = 3.5
	wrappedLine   = 40 // a line break after so many characters of a run does not end it: encoders wrap lines
)

// hasEncoded reports whether a text holds a run of base64 or hex that is too even to be words. Every stretch of a
// run is looked at, so that nobody hides data by padding the run with one letter.
func hasEncoded(text string) bool {
	return len(text) >= encodedRun && (hasRun(text, isBase64, base64Entropy) || hasRun(text, isHex, hexEntropy))
}

func hasRun(text string, in func(byte) bool, least float64) bool {
	var stretch entropy
	line := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case in(c):
			line++
			if stretch.add(c); stretch.n == encodedRun && stretch.bits() >= least {
				return true
			}
		case c == '\r':
		case c == '\n' && line >= wrappedLine:
			line = 0
		default:
			line = 0
			if stretch.n > 0 {
				stretch = entropy{}
			}
			// Most texts are words: do not look at what is too short for a run.
			if len(text)-i <= encodedRun {
				return false
			}
		}
	}
	return false
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_' || c == '='
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// entropy measures the latest [encodedRun] characters of a run.
type entropy struct {
	counts [128]uint8
	latest [encodedRun]byte
	at, n  int
	sum    float64 // of c·log2 c over all counts c
}

func (e *entropy) add(c byte) {
	if e.n == encodedRun {
		e.change(e.latest[e.at], -1)
	} else {
		e.n++
	}
	e.latest[e.at] = c
	e.at = (e.at + 1) % encodedRun
	e.change(c, 1)
}

func (e *entropy) change(c byte, by int) {
	before := int(e.counts[c])
	after := before + by
	e.counts[c] = uint8(after)
	e.sum += weighted(after) - weighted(before)
}

func weighted(n int) float64 {
	if n < 2 {
		return 0
	}
	return float64(n) * math.Log2(float64(n))
}

func (e *entropy) bits() float64 {
	return math.Log2(float64(e.n)) - e.sum/float64(e.n)
}
