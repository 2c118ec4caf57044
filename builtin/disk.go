package builtin

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/toolward/toolward/place"
)

// disk does what was decided about files: on this machine, or in a sandbox. It judges nothing; it refuses what is no
// longer what was judged.
type disk interface {
	// open opens a regular file for reading.
	open(at place.Resolved) (fs.File, error)
	openDir(at place.Resolved) (directory, error)
	// readFile reads a whole regular file; place.ErrTooLarge beyond limit.
	readFile(at place.Resolved, limit int64) (place.Content, error)
	writeFile(at place.Resolved, data []byte, options place.WriteOptions) error
	// remove removes an entry; with a stamp only while the file still is in that state.
	remove(at place.Resolved, unchanged *place.Stamp) error
	// exists reports whether something is at a real path.
	exists(real string) bool
}

// directory is an open directory. Every step below it starts from there, so that nobody leads it elsewhere.
type directory interface {
	io.Closer
	ReadDir(n int) ([]fs.DirEntry, error)
	child(name string) (fs.File, error)
	childDir(name string) (directory, error)
}

// machine is this machine's disk.
type machine struct{}

func (machine) open(at place.Resolved) (fs.File, error) { return opened(place.Open(at)) }

func (machine) openDir(at place.Resolved) (directory, error) { return openedDir(place.OpenDir(at)) }

func (machine) readFile(at place.Resolved, limit int64) (place.Content, error) {
	return place.ReadFile(at, limit)
}

func (machine) writeFile(at place.Resolved, data []byte, options place.WriteOptions) error {
	return place.WriteFile(at, data, options)
}

func (machine) remove(at place.Resolved, unchanged *place.Stamp) error {
	if unchanged != nil {
		file, err := place.Open(at)
		if err != nil {
			return err
		}
		defer file.Close() // only looked at
		// Removing what somebody else has written since it was read would lose it.
		if stamp, err := place.StampOf(file); err != nil || stamp != *unchanged {
			return errors.Join(err, place.ErrChanged)
		}
	}
	return place.Remove(at)
}

func (machine) exists(real string) bool {
	_, err := os.Lstat(real)
	return err == nil
}

// machineDir is an open directory of this machine.
type machineDir struct{ *os.File }

func (d machineDir) child(name string) (fs.File, error) { return opened(place.OpenChild(d.File, name)) }

func (d machineDir) childDir(name string) (directory, error) {
	return openedDir(place.OpenChildDir(d.File, name))
}

// opened keeps a failed opening from becoming an interface with a nil file in it.
func opened(file *os.File, err error) (fs.File, error) {
	if err != nil {
		return nil, err
	}
	return file, nil
}

func openedDir(file *os.File, err error) (directory, error) {
	if err != nil {
		return nil, err
	}
	return machineDir{file}, nil
}
