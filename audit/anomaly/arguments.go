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

// hasRun looks at each run as a whole and at every stretch of it. Most texts are words and have no run at all.
func hasRun(text string, in func(byte) bool, least float64) bool {
	start, chars, line := 0, 0, 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case in(c):
			if chars == 0 {
				start = i
			}
			chars++
			line++
		case c == '\r' && chars > 0:
		case c == '\n' && line >= wrappedLine:
			line = 0
		default:
			if chars >= encodedRun && isEven(text[start:i], in, least) {
				return true
			}
			chars, line = 0, 0
		}
	}
	return chars >= encodedRun && isEven(text[start:], in, least)
}

// isEven reports whether a run, or any [encodedRun] characters of it, have at least so many bits for each character.
func isEven(run string, in func(byte) bool, least float64) bool {
	var all, stretch [128]int
	var sum float64 // of c·log2 c over the counts of the stretch
	var weighted [encodedRun + 1]float64
	for n := 2; n <= encodedRun; n++ {
		weighted[n] = float64(n) * math.Log2(float64(n))
	}
	var latest [encodedRun]byte
	n := 0
	for i := range len(run) {
		c := run[i]
		if !in(c) {
			continue // a line break
		}
		all[c]++
		if n >= encodedRun {
			gone := latest[n%encodedRun]
			sum -= weighted[stretch[gone]] - weighted[stretch[gone]-1]
			stretch[gone]--
		}
		latest[n%encodedRun] = c
		stretch[c]++
		sum += weighted[stretch[c]] - weighted[stretch[c]-1]
		if n++; n >= encodedRun && math.Log2(encodedRun)-sum/encodedRun >= least {
			return true
		}
	}
	bits := math.Log2(float64(n))
	for _, c := range all {
		if c > 1 {
			bits -= float64(c) * math.Log2(float64(c)) / float64(n)
		}
	}
	return bits >= least
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_' || c == '='
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
