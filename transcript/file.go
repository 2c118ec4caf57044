package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

const (
	maxLine     = 8 << 20  // longer lines hold pictures and outputs, seldom calls
	maxDocument = 64 << 20 // of files that are one JSON value
	headSize    = 4 << 10  // enough to recognize a file
)

// file is one transcript that is being read.
type file struct {
	*reading
	client  string
	root    *os.Root
	path    string // below the root
	name    string // for people
	data    *os.File
	size    int64
	changed time.Time
	line    int // that is being read; 0 if the file has no lines
}

var errSpecial = errors.New("not a regular file")

// open opens a regular file. O_NONBLOCK: a pipe that stands there meanwhile would hold up the reading for ever.
func (r *reading) open(root *os.Root, path, name string) (*file, error) {
	data, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := data.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errSpecial
	}
	if err != nil {
		_ = data.Close() // nothing was written to it
		return nil, err
	}
	return &file{reading: r, root: root, path: path, name: name, data: data, size: info.Size(), changed: info.ModTime()}, nil
}

// Close closes the file.
func (f *file) Close() { _ = f.data.Close() } // nothing was written to it

// head is the beginning of the file.
func (f *file) head() []byte {
	head := make([]byte, headSize)
	n, err := f.data.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil
	}
	return head[:n]
}

// odd notes what could not be read where the reading stands.
func (f *file) odd(what string) {
	where := f.name
	if f.line > 0 {
		where = fmt.Sprintf("%s:%d", f.name, f.line)
	}
	f.note(what, where)
}

// lines gives each line to a function, which must not keep it. It holds one line at a time.
func (f *file) lines(each func(line []byte) error) error {
	in := bufio.NewReaderSize(f.data, 64<<10)
	var line []byte
	for f.line = 1; ; f.line++ {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		var long bool
		var err error
		if line, long, err = nextLine(in, line[:0]); err != nil && err != io.EOF {
			return err
		}
		text := bytes.TrimSpace(line)
		switch {
		case long:
			f.odd(oddLongLine)
		case len(text) > 0:
			if err := each(text); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// nextLine reads a line into a buffer, or past one that is too long.
func nextLine(in *bufio.Reader, line []byte) (_ []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if !long && len(line)+len(part) > maxLine {
			long, line = true, line[:0]
		}
		if !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// decode reads a line if it may hold what one of the words says; the others are only looked at from outside, because most of
// a transcript is what tools have answered.
func (f *file) decode(line []byte, into any, words ...string) bool {
	for _, word := range words {
		if bytes.Contains(line, []byte(word)) {
			if err := json.Unmarshal(line, into); err != nil {
				if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); !wrongType {
					f.odd(oddLine)
					return false
				}
			}
			return true
		}
	}
	if line[0] != '{' || line[len(line)-1] != '}' {
		f.odd(oddLine)
	}
	return false
}

// document reads a small file beside this one; nil if there is none that can be read.
func (f *file) document(path string) []byte {
	other, err := f.open(f.root, path, path)
	if err != nil {
		return nil
	}
	defer other.Close()
	text, err := io.ReadAll(io.LimitReader(other.data, 1<<20))
	if err != nil {
		return nil
	}
	return text
}

// moment reads a time as clients write it: RFC 3339, or milliseconds.
func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
