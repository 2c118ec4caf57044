package builtin

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// textLines is a text cut into lines that keep their line ends, so that untouched lines are written back byte for
// byte.
type textLines struct {
	mark  string   // byte order mark, or ""
	lines []string // each with its line end; the last may have none
	eol   string   // the line end that most lines have
	work  int      // how many more lines may be compared; bounds hostile patches
}

// maxLineWork is how many line comparisons one patch to one file may cost, about a second.
const maxLineWork = 20_000_000

const byteOrderMark = "\ufeff"

// splitText cuts content into lines.
func splitText(content string) textLines {
	t := textLines{work: maxLineWork}
	if rest, ok := strings.CutPrefix(content, byteOrderMark); ok {
		t.mark, content = byteOrderMark, rest
	}
	t.eol = lineEnd(content)
	if content != "" {
		t.lines = strings.SplitAfter(content, "\n")
		if t.lines[len(t.lines)-1] == "" {
			t.lines = t.lines[:len(t.lines)-1]
		}
	}
	return t
}

// bareEnd reports whether the last line has no line end.
func (t *textLines) bareEnd() bool {
	return len(t.lines) > 0 && !hasEOL(t.lines[len(t.lines)-1])
}

func (t *textLines) join() string { return t.mark + strings.Join(t.lines, "") }

// lineEnd returns the line end that most lines of content have; "\n" if it has none.
func lineEnd(content string) string {
	crlf := strings.Count(content, "\r\n")
	if crlf > 0 && crlf*2 >= strings.Count(content, "\n") {
		return "\r\n"
	}
	return "\n"
}

func hasEOL(line string) bool { return strings.HasSuffix(line, "\n") }

func trimEOL(line string) string {
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
}

// nearestLine finds the line most like want, from index from on. It looks at no more than 5,000 lines and reports
// false when no line shares at least half of its pairs of letters.
func nearestLine(lines []string, want string, from int) (number int, line string, ok bool) {
	const lookAt = 5_000
	wanted := pairs(want)
	if len(wanted) == 0 {
		return 0, "", false
	}
	best := 0.5
	for i := max(from, 0); i < len(lines) && i-from < lookAt; i++ {
		have := trimEOL(lines[i])
		if len(have) > 3*len(want)+16 || len(want) > 3*len(have)+16 {
			continue // cannot share half of its pairs
		}
		if likeness := alike(wanted, pairs(have)); likeness > best {
			best, number, line, ok = likeness, i+1, have, true
		}
	}
	return number, line, ok
}

// pairs counts the pairs of neighboring bytes of a line without its outer white space, at most 400 bytes of it.
func pairs(line string) map[[2]byte]int {
	line = strings.TrimSpace(line)
	line = line[:min(len(line), 400)]
	if len(line) < 2 {
		return nil
	}
	counts := make(map[[2]byte]int, len(line))
	for i := range len(line) - 1 {
		counts[[2]byte{line[i], line[i+1]}]++
	}
	return counts
}

// alike is the share of pairs that two lines have in common (Dice's coefficient), from 0 to 1.
func alike(a, b map[[2]byte]int) float64 {
	common, total := 0, 0
	for pair, n := range a {
		total += n
		common += min(n, b[pair])
	}
	for _, n := range b {
		total += n
	}
	if total == 0 {
		return 0
	}
	return 2 * float64(common) / float64(total)
}

// encoding is how the bytes of a file are to be read.
type encoding string

const (
	encodingUTF8    encoding = "UTF-8"
	encodingUTF16LE encoding = "UTF-16, little endian"
	encodingUTF16BE encoding = "UTF-16, big endian"
	encodingBinary  encoding = "binary"
)

// detectEncoding looks at the beginning of a file. A NUL byte makes it binary unless a UTF-16 mark explains it.
func detectEncoding(head []byte) encoding {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe, 0, 0}):
		return encodingBinary // UTF-32, or not a text at all
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return encodingUTF16LE
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return encodingUTF16BE
	case bytes.IndexByte(head, 0) >= 0:
		return encodingBinary
	}
	return encodingUTF8
}

// decodeUTF16 turns UTF-16 with a byte order mark into UTF-8 without one.
func decodeUTF16(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, order.Uint16(data[i:]))
	}
	return string(utf16.Decode(units))
}

// validText returns data as valid UTF-8 and the number of bytes that were not and are now U+FFFD.
func validText(data string) (text string, bad int) {
	if utf8.ValidString(data) {
		return data, 0
	}
	var b strings.Builder
	b.Grow(len(data) + 16)
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRuneInString(data[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		b.WriteRune(r)
		i += n
	}
	return b.String(), bad
}

// diffCut ends a difference that is not shown whole.
const diffCut = "… the rest of the difference is left out …\n"

// head is as much of a content as is looked at to tell what it is.
func head(s string) string { return s[:min(len(s), 8192)] }
