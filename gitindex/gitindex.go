// Package gitindex reads which paths git tracks. Git itself is not asked, because it runs what the repository tells it to.
package gitindex

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Largest is the largest index in bytes that is worth reading: that of half a million files.
const Largest int64 = 64 << 20

const head, fixed, flags = 12, 62, 60

// Walk calls each with the paths of an index of version 2, 3 or 4 with hashes of SHA-1, below the top of the working tree and in git's
// order, until each returns false. It reports whether these were all, or enough for each: not if the index is damaged, of another
// kind, or has a part of its entries in another file. See gitformat-index(5).
func Walk(data []byte, each func(path []byte) bool) bool {
	if len(data) < head || string(data[:4]) != "DIRC" {
		return false
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return false
	}
	rest, path := data[head:], []byte(nil)
	for range count {
		var size int
		if path, size = entry(version, rest, path); size == 0 {
			return false
		}
		if !each(path) {
			return true
		}
		rest = rest[size:]
	}
	// A "link" says that a part of the entries is in another file.
	return len(rest) < 4 || string(rest[:4]) != "link"
}

// entry reads the path of the first entry; before is that of the entry before it, of which version 4 says how much is shared. A size
// of 0 says that this is no entry.
func entry(version uint32, rest, before []byte) (path []byte, size int) {
	if len(rest) < fixed+1 {
		return nil, 0
	}
	at := fixed
	if binary.BigEndian.Uint16(rest[flags:])&0x4000 != 0 {
		at += 2
	}
	stripped := uint64(len(before))
	if version == 4 {
		n, size := number(rest[min(at, len(rest)):])
		if size == 0 || n > stripped {
			return nil, 0
		}
		stripped, at = n, at+size
	}
	if at > len(rest) {
		return nil, 0
	}
	end := bytes.IndexByte(rest[at:], 0)
	if end < 0 {
		return nil, 0
	}
	path = slices.Concat(before[:uint64(len(before))-stripped], rest[at:at+end])
	size = at + end + 1
	if version < 4 {
		size = (at + end + 8) &^ 7 // filled up with zeros, one at least
	}
	if size > len(rest) {
		return nil, 0
	}
	return path, size
}

// number reads a number as git writes the length of a shared beginning; size is 0 if there is none.
func number(data []byte) (n uint64, size int) {
	for i, b := range data[:min(len(data), 8)] {
		n = n<<7 | uint64(b&0x7f)
		if b&0x80 == 0 {
			return n, i + 1
		}
		n++
	}
	return 0, 0
}
