package builtin

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// transcript is what a command has printed: standard output and error in the order they were written. Memory is
// bounded however much a command prints: the beginning and the end are kept, the middle is counted. Characters are
// Unicode code points.
type transcript struct {
	mu      sync.Mutex
	clean   cleaner
	head    tailText // filled once, never shifted
	tail    tailText // the last maxChars characters
	unread  tailText // what poll has not shown yet
	total   int64    // characters printed so far
	headMax int
}

// newTranscript keeps the first headMax and the last maxChars characters, and up to unreadMax unread ones.
func newTranscript(headMax, maxChars, unreadMax int) *transcript {
	return &transcript{headMax: headMax, head: tailText{limit: headMax}, tail: tailText{limit: maxChars}, unread: tailText{limit: unreadMax}}
}

// Write takes bytes of a command's output. It never fails.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.clean.feed(p)
	n := utf8.RuneCountInString(text)
	t.total += int64(n)
	if room := t.headMax - t.head.runes; room > 0 {
		first := text
		if n > room {
			first = text[:runeOffset(text, room)]
		}
		t.head.add(first, min(n, room))
	}
	t.tail.add(text, n)
	t.unread.add(text, n)
	return len(p), nil
}

// aggregated returns the last characters kept, and whether earlier ones were dropped.
func (t *transcript) aggregated() (text string, truncated bool, total int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = t.tail.text()
	return text, t.total > int64(t.tail.limit), t.total
}

// drain returns the output since the last drain. If more was printed than is kept, it begins with a mark.
func (t *transcript) drain() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.unread.text()
	if t.unread.dropped > 0 {
		text = dropMark(t.unread.dropped) + text
	}
	t.unread.reset()
	return text
}

// last returns the last n characters.
func (t *transcript) last(n int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.tail.text()
	if extra := utf8.RuneCountInString(text) - n; extra > 0 {
		text = text[runeOffset(text, extra):]
	}
	return text
}

// size is how many bytes are kept.
func (t *transcript) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.head.buf) + len(t.tail.buf) + len(t.unread.buf)
}

// headAndTail returns the whole output if it has at most limit characters; else its beginning and its end with a
// mark between that says how much was left out.
func (t *transcript) headAndTail(limit int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	tail := t.tail.text()
	if t.total <= int64(min(limit, t.tail.limit)) {
		return tail
	}
	head := t.head.text()
	if half := limit / 2; t.head.runes > half {
		head = head[:runeOffset(head, half)]
	}
	headRunes := utf8.RuneCountInString(head)
	keep := min(limit-headRunes, t.tail.limit)
	if extra := utf8.RuneCountInString(tail) - keep; extra > 0 {
		tail = tail[runeOffset(tail, extra):]
	}
	dropped := t.total - int64(headRunes) - int64(utf8.RuneCountInString(tail))
	if dropped <= 0 {
		// Head and tail overlap: only possible when the two together hold everything.
		return head + tail[runeOffset(tail, int(-dropped)):]
	}
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return head + dropMark(dropped) + tail
}

func dropMark(n int64) string { return fmt.Sprintf("[… %d characters left out …]\n", n) }

// runeOffset returns the byte offset of the nth character.
func runeOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// tailText keeps the last limit characters of what is added. It holds at most twice as many at any time, so that
// adding costs a constant time per character.
type tailText struct {
	limit   int
	buf     []byte
	runes   int
	dropped int64
}

func (b *tailText) add(text string, n int) {
	if n > b.limit {
		b.dropped += int64(b.runes + n - b.limit)
		b.buf = append(b.buf[:0], text[runeOffset(text, n-b.limit):]...)
		b.runes = b.limit
		return
	}
	b.buf = append(b.buf, text...)
	if b.runes += n; b.runes > 2*b.limit {
		b.trim()
	}
}

func (b *tailText) trim() {
	extra := b.runes - b.limit
	if extra <= 0 {
		return
	}
	at := 0
	for range extra {
		_, n := utf8.DecodeRune(b.buf[at:])
		at += n
	}
	b.buf = append(b.buf[:0], b.buf[at:]...)
	b.runes = b.limit
	b.dropped += int64(extra)
}

func (b *tailText) text() string {
	b.trim()
	return string(b.buf)
}

func (b *tailText) reset() { *b = tailText{limit: b.limit} }

// cleaner turns the raw bytes of a program into text: invalid UTF-8 becomes U+FFFD, terminal escape sequences and
// control characters are left out. A character or sequence may be cut between two writes.
type cleaner struct {
	state   cleanState
	pending []byte // the beginning of a character that the next write continues
}

type cleanState uint8

const (
	cleanText   cleanState = iota
	cleanEscape            // after ESC
	cleanCSI               // after ESC [
	cleanString            // in an operating system command or another string, until BEL or ESC \
	cleanStringEscape
)

func (c *cleaner) feed(p []byte) string {
	if len(c.pending) > 0 {
		p = append(c.pending, p...)
		c.pending = nil
	}
	var b strings.Builder
	b.Grow(len(p))
	for len(p) > 0 {
		if c.state == cleanText {
			plain := plainRun(p)
			b.Write(p[:plain])
			if p = p[plain:]; len(p) == 0 {
				break
			}
		}
		r, n := rune(p[0]), 1
		if r >= utf8.RuneSelf {
			if !utf8.FullRune(p) {
				c.pending = append([]byte(nil), p...)
				break
			}
			r, n = utf8.DecodeRune(p)
		}
		p = p[n:]
		if c.shows(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plainRun is the length of the printable ASCII text that p begins with: nearly all output is that.
func plainRun(p []byte) int {
	for i, c := range p {
		if (c < 0x20 || c > 0x7e) && c != '\n' && c != '\t' && c != '\r' {
			return i
		}
	}
	return len(p)
}

// shows moves the state and reports whether the character is part of the text.
func (c *cleaner) shows(r rune) bool {
	switch c.state {
	case cleanEscape:
		switch {
		case r == '[':
			c.state = cleanCSI
		case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
			c.state = cleanString
		case r >= 0x20 && r <= 0x2f: // intermediate bytes, such as in ESC ( B
		default:
			c.state = cleanText
		}
		return false
	case cleanCSI:
		if r >= 0x40 && r <= 0x7e {
			c.state = cleanText
		} else if r < 0x20 || r > 0x7e {
			c.state = cleanText // a broken sequence must not swallow what follows
			return isShown(r)
		}
		return false
	case cleanString:
		switch r {
		case 0x07:
			c.state = cleanText
		case 0x1b:
			c.state = cleanStringEscape
		case '\n': // unterminated: show what follows
			c.state = cleanText
			return true
		}
		return false
	case cleanStringEscape:
		c.state = cleanText
		return false
	}
	if r == 0x1b {
		c.state = cleanEscape
		return false
	}
	return isShown(r)
}

func isShown(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || (r >= 0x20 && r != 0x7f && (r < 0x80 || r > 0x9f))
}
