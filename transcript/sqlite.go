package transcript

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"time"

	_ "modernc.org/sqlite"
	"modernc.org/sqlite/vfs"
)

var errFormat = errors.New("a format that is not known")

// database opens the file as an SQLite database that nobody writes. SQLite itself would make files beside it and take locks,
// and without them would not see what its owner has written last; so the pages of the write-ahead file are laid over it here.
func (f *file) database() (*database, error) {
	pages, err := f.pages()
	if err != nil {
		return nil, err
	}
	name, files, err := vfs.New(pages)
	if err != nil {
		return nil, errors.Join(err, pages.close())
	}
	db, err := sql.Open("sqlite", "file:db?mode=ro&immutable=1&_pragma=temp_store(memory)&vfs="+name)
	if err != nil {
		return nil, errors.Join(err, files.Close(), pages.close())
	}
	db.SetMaxOpenConns(1)
	return &database{db, files, pages}, nil
}

// database is an open one with what it is read from.
type database struct {
	*sql.DB
	files *vfs.FS
	pages *pages
}

// Close closes all three.
func (d *database) Close() { _ = errors.Join(d.DB.Close(), d.files.Close(), d.pages.close()) } // nothing was written to them

// pages is a database file with the committed pages of its write-ahead file in their places.
type pages struct {
	main, log *file // log is nil if there is none
	pageSize  int64
	size      int64
	at        map[uint32]int64 // where a page stands in the log
}

const (
	walHeader   = 32
	frameHeader = 24
)

// pages finds the last committed state.
func (f *file) pages() (*pages, error) {
	p := &pages{main: f, size: f.size, at: map[uint32]int64{}}
	log, err := f.open(f.root, f.path+"-wal", f.name+"-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.log = log
	if err := p.readLog(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *pages) close() error {
	if p.log != nil {
		p.log.Close()
	}
	return nil
}

// readLog takes up the frames of the log as SQLite recovers them: as long as salts and checksums fit, up to the last one
// that ends a transaction. What follows is not committed, or is of an older round.
func (p *pages) readLog() error {
	header := make([]byte, walHeader)
	if _, err := io.ReadFull(p.log.data, header); err != nil {
		return ignoreEnd(err)
	}
	sum := checksum{order: binary.LittleEndian}
	switch binary.BigEndian.Uint32(header) {
	case 0x377f0682:
	case 0x377f0683:
		sum.order = binary.BigEndian
	default:
		return nil
	}
	p.pageSize = int64(binary.BigEndian.Uint32(header[8:]))
	if p.pageSize < 512 || p.pageSize > 65536 {
		return nil
	}
	sum.add(header[:24])
	if !sum.is(header[24:]) {
		return nil
	}
	frame, open := make([]byte, frameHeader+p.pageSize), map[uint32]int64{}
	for at := int64(walHeader); ; at += int64(len(frame)) {
		if err := p.main.ctx.Err(); err != nil {
			return err
		}
		if _, err := io.ReadFull(p.log.data, frame); err != nil {
			return ignoreEnd(err)
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeader:])
		if string(frame[8:16]) != string(header[16:24]) || !sum.is(frame[16:]) {
			return nil
		}
		open[binary.BigEndian.Uint32(frame)] = at + frameHeader
		if pagesAfter := binary.BigEndian.Uint32(frame[4:]); pagesAfter > 0 {
			for page, where := range open {
				p.at[page] = where
			}
			clear(open)
			p.size = int64(pagesAfter) * p.pageSize
		}
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// checksum is SQLite's of write-ahead files.
type checksum struct {
	order binary.ByteOrder
	a, b  uint32
}

func (c *checksum) add(data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		c.a += c.order.Uint32(data) + c.b
		c.b += c.order.Uint32(data[4:]) + c.a
	}
}

func (c *checksum) is(written []byte) bool {
	return binary.BigEndian.Uint32(written) == c.a && binary.BigEndian.Uint32(written[4:]) == c.b
}

// ReadAt reads the database as it was committed last.
func (p *pages) ReadAt(into []byte, at int64) (n int, err error) {
	for n < len(into) && at < p.size {
		part, from, where := into[n:], io.ReaderAt(p.main.data), at
		if p.pageSize > 0 {
			page, inside := at/p.pageSize, at%p.pageSize
			part = part[:min(int64(len(part)), p.pageSize-inside)]
			if start, newer := p.at[uint32(page+1)]; newer {
				from, where = p.log.data, start+inside
			}
		}
		part = part[:min(int64(len(part)), p.size-at)]
		read, err := from.ReadAt(part, where)
		p.withoutLog(into[n:n+read], at)
		n, at = n+read, at+int64(read)
		if err != nil && read < len(part) {
			return n, err
		}
	}
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}

// withoutLog changes what the header says of how the file is written: with a log, SQLite would want to share memory with
// its owner.
func (p *pages) withoutLog(part []byte, at int64) {
	for _, offset := range []int64{18, 19} {
		if i := offset - at; i >= 0 && i < int64(len(part)) {
			part[i] = 1
		}
	}
}

// Open gives the database under any name but those of files beside it.
func (p *pages) Open(name string) (fs.File, error) {
	if name != "db" {
		return nil, fs.ErrNotExist
	}
	return &pageFile{io.NewSectionReader(p, 0, p.size), p}, nil
}

// pageFile is the database as a file.
type pageFile struct {
	*io.SectionReader
	pages *pages
}

// Stat says how large the database is.
func (f *pageFile) Stat() (fs.FileInfo, error) { return pageInfo(f.pages.size), nil }

// Close leaves the files open: they are closed with the database.
func (f *pageFile) Close() error { return nil }

// pageInfo is the size of a database.
type pageInfo int64

// Name is what the database is opened as.
func (pageInfo) Name() string { return "db" }

// Size is that of all pages.
func (i pageInfo) Size() int64 { return int64(i) }

// Mode is that of a file nobody writes.
func (pageInfo) Mode() fs.FileMode { return 0o400 }

// ModTime is not known.
func (pageInfo) ModTime() time.Time { return time.Time{} }

// IsDir is false.
func (pageInfo) IsDir() bool { return false }

// Sys is nothing.
func (pageInfo) Sys() any { return nil }
