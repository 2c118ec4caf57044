package kept

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// "git reset --hard" leaves alone what git does not know, such as what a build has made, and "git clean" what it knows. So git's index
// is read; git itself is not asked, because it runs what the repository tells it to. Where it cannot be read, git takes everything.

// gitTakes reports whether a command of git's may take a file of the workspace; which is of toolward.Take.
func gitTakes(workspace, within, which string) bool {
	if slices.Contains(strings.Split(within, "/"), ".git") {
		return false // the repository is kept as such, and its sockets are nobody's work
	}
	for dir := filepath.Dir(within); ; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(workspace, dir, ".git")); err == nil {
			name, err := filepath.Rel(dir, within)
			known, readable := inIndex(filepath.Join(workspace, dir, ".git", "index"), name)
			return !info.IsDir() || err != nil || !readable || known == (which == "tracked")
		}
		if dir == "." {
			return true
		}
	}
}

// largestIndex is the largest index that is read: that of half a million files.
const largestIndex = 64 << 20

// inIndex reports whether git has a path, or something below it, in an index.
func inIndex(index, name string) (known, readable bool) {
	f, err := os.OpenFile(index, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > largestIndex {
		return false, false
	}
	data := make([]byte, info.Size())
	if n, err := f.Read(data); err != nil || n != len(data) {
		return false, false
	}
	return searchIndex(data, name)
}

// searchIndex goes through the entries of an index of version 2, 3 or 4 with hashes of SHA-1.
func searchIndex(data []byte, name string) (known, readable bool) {
	const head, fixed, flags = 12, 62, 60
	if len(data) < head || string(data[:4]) != "DIRC" {
		return false, false
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return false, false
	}
	rest, before := data[head:], []byte(nil)
	for range count {
		if len(rest) < fixed+1 {
			return false, false
		}
		at := fixed
		if binary.BigEndian.Uint16(rest[flags:])&0x4000 != 0 {
			at += 2
		}
		stripped := uint64(len(before))
		if version == 4 {
			n, size := indexNumber(rest[min(at, len(rest)):])
			if size == 0 || n > stripped {
				return false, false
			}
			stripped, at = n, at+size
		}
		if at > len(rest) {
			return false, false
		}
		end := bytes.IndexByte(rest[at:], 0)
		if end < 0 {
			return false, false
		}
		path := slices.Concat(before[:uint64(len(before))-stripped], rest[at:at+end])
		if text := string(path); text == name || strings.HasPrefix(text, name+"/") {
			return true, true
		}
		size := at + end + 1
		if version < 4 {
			size = (at + end + 8) &^ 7 // filled up with zeros, one at least
		}
		if size > len(rest) {
			return false, false
		}
		rest, before = rest[size:], path
	}
	// A "link" says that a part of the entries is in another file.
	return false, len(rest) < 4 || string(rest[:4]) != "link"
}

// indexNumber reads a number as git writes the length of a shared beginning; size is 0 if there is none.
func indexNumber(data []byte) (n uint64, size int) {
	for i, b := range data[:min(len(data), 8)] {
		n = n<<7 | uint64(b&0x7f)
		if b&0x80 == 0 {
			return n, i + 1
		}
		n++
	}
	return 0, 0
}
