package undo

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// objects are what is kept, each in a file with its hash for a name: the content of files, and directories.
type objects struct {
	dir   string
	bytes atomic.Int64 // of all of them
	mu    sync.Mutex   // held while one is put in its place: two calls may bring the same
}

func (o *objects) path(h Hash) string {
	name := h.String()
	return filepath.Join(o.dir, name[:2], name[2:])
}

// has reports whether an object of a size is kept. One that a loss of power cut short is not.
func (o *objects) has(h Hash, size int64) bool {
	info, err := os.Lstat(o.path(h))
	return err == nil && info.Size() == size
}

// temporary is a file that is to become an object.
func (o *objects) temporary() (*os.File, error) {
	return os.OpenFile(filepath.Join(o.dir, "new-"+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// add keeps what is in a temporary file of a size, and takes the file.
func (o *objects) add(temporary string, h Hash, size int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.has(h, size) {
		return os.Remove(temporary)
	}
	to := o.path(h)
	if info, err := os.Lstat(to); err == nil {
		size -= info.Size() // what is cut short goes
	}
	err := os.Rename(temporary, to)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.Mkdir(filepath.Dir(to), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Rename(temporary, to)
		}
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	o.bytes.Add(size)
	return nil
}

// addDirectory keeps a directory.
func (o *objects) addDirectory(encoded []byte) (Hash, error) {
	h := directoryHash(encoded)
	if o.has(h, int64(len(encoded))) {
		return h, nil
	}
	return h, o.write(h, encoded)
}

func (o *objects) write(h Hash, content []byte) error {
	f, err := o.temporary()
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return o.add(f.Name(), h, int64(len(content)))
}

// addFile keeps the content of an open file. size is what the file is expected to have; what it grows by meanwhile is not read
// for ever.
func (o *objects) addFile(f *os.File, size int64) (h Hash, copied int64, err error) {
	if size <= smallFile {
		return o.addSmall(f, size)
	}
	to, err := o.temporary()
	if err != nil {
		return h, 0, err
	}
	digest := sha256.New()
	if clone(to, f) == nil {
		// Nobody can change the clone, so its hash is that of what is kept.
		copied, err = io.Copy(digest, to)
	} else {
		copied, err = io.Copy(io.MultiWriter(to, digest), io.LimitReader(f, size+1))
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return h, copied, errors.Join(err, os.Remove(to.Name()))
	}
	digest.Sum(h[:0])
	return h, copied, o.add(to.Name(), h, copied)
}

// smallFile is up to which size, in bytes, a file is read into memory: one that is kept already then costs no writing.
const smallFile = 1 << 20

func (o *objects) addSmall(f *os.File, size int64) (h Hash, copied int64, err error) {
	content := make([]byte, size+1) // one more shows a file that has grown
	n, err := io.ReadFull(f, content)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return h, 0, err
	}
	h = sha256.Sum256(content[:n])
	if o.has(h, int64(n)) {
		return h, int64(n), nil
	}
	return h, int64(n), o.write(h, content[:n])
}

// directory reads a directory that is kept.
func (o *objects) directory(h Hash) ([]named, error) {
	content, err := os.ReadFile(o.path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("directory %s: %w", h, ErrGone)
	}
	if err != nil {
		return nil, err
	}
	if directoryHash(content) != h {
		return nil, fmt.Errorf("directory %s: %w", h, ErrDamaged)
	}
	return decodeDirectory(content)
}

// restore writes the content of a file that is kept into an open, empty file. What it has written is what was kept, or an error.
func (o *objects) restore(h Hash, to *os.File) error {
	from, err := os.Open(o.path(h))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("file %s: %w", h, ErrGone)
	}
	if err != nil {
		return err
	}
	defer from.Close()
	digest := sha256.New()
	if clone(to, from) == nil {
		_, err = io.Copy(digest, to)
	} else {
		_, err = io.Copy(io.MultiWriter(to, digest), from)
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(digest.Sum(nil), h[:]) {
		return fmt.Errorf("file %s: %w", h, ErrDamaged)
	}
	return nil
}

// measure counts what is kept, and removes what a process that was killed left half written.
func (o *objects) measure() error {
	folders, err := os.ReadDir(o.dir)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, folder := range folders {
		if !folder.IsDir() {
			if err := os.Remove(filepath.Join(o.dir, folder.Name())); err != nil {
				return err
			}
			continue
		}
		size, err := sizeOf(filepath.Join(o.dir, folder.Name()))
		if err != nil {
			return err
		}
		total += size
	}
	o.bytes.Store(total)
	return nil
}

func sizeOf(folder string) (total int64, err error) {
	files, err := os.ReadDir(folder)
	for _, f := range files {
		if info, err := f.Info(); err == nil { // one that went meanwhile counts nothing
			total += info.Size()
		}
	}
	return total, err
}
