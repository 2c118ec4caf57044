package builtin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/toolward/toolward/place"
)

// patchChange is what a whole patch makes of the files that it names.
type patchChange struct {
	disk      disk
	files     []*patchedFile // in the order in which the patch names them first
	byPath    map[string]*patchedFile
	fileLimit int64 // bytes of one file
	room      int64 // bytes of old and new content that may still be held
}

// patchedFile is one file before and after the patch.
type patchedFile struct {
	at      place.Resolved
	existed bool
	before  string
	stamp   place.Stamp
	mode    fs.FileMode
	exists  bool
	now     string
	newMode fs.FileMode // of a file that did not exist; 0 for the default
}

var (
	errExists    = errors.New("the file exists already; use Update File")
	errNotThere  = errors.New("the file does not exist")
	errNotPlain  = errors.New("is not a regular file")
	errTooMuch   = errors.New("the files of the patch are too large together")
	errOtherText = errors.New("is not a UTF-8 text")
)

// add applies one section to the state that the sections before it have left.
func (c *patchChange) add(step patchStep) error {
	file, err := c.load(step.at)
	if err != nil {
		return err
	}
	if step.op == patchAdd {
		if file.exists {
			return errExists
		}
		return c.set(file, newFileText(step.lines))
	}
	if !file.exists {
		return errNotThere
	}
	if step.op == patchDelete {
		file.exists, file.now = false, ""
		return nil
	}
	text := file.now
	if len(step.hunks) > 0 {
		if detectEncoding([]byte(head(text))) != encodingUTF8 {
			return errOtherText
		}
		if text, err = applyHunks(text, step.hunks); err != nil {
			return err
		}
	}
	if step.move == "" || step.to.Real == step.at.Real {
		return c.set(file, text)
	}
	target, err := c.load(step.to)
	if err != nil {
		return err
	}
	if target.exists {
		return fmt.Errorf("%s: %w", step.move, errExists)
	}
	target.newMode = file.mode
	file.exists, file.now = false, ""
	return c.set(target, text)
}

func newFileText(lines []string) string {
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	b := make([]byte, 0, size)
	for _, line := range lines {
		b = append(append(b, line...), '\n')
	}
	return string(b)
}

func (c *patchChange) set(file *patchedFile, text string) error {
	if c.room -= int64(len(text)); c.room < 0 || int64(len(text)) > c.fileLimit {
		return errTooMuch
	}
	file.exists, file.now = true, text
	return nil
}

// load reads a file, once for every real path.
func (c *patchChange) load(at place.Resolved) (*patchedFile, error) {
	if file, ok := c.byPath[at.Real]; ok {
		return file, nil
	}
	file := &patchedFile{at: at}
	switch at.Kind {
	case place.KindMissing:
	case place.KindRegular:
		if err := file.read(c.disk, min(c.fileLimit, c.room)); err != nil {
			return nil, err
		}
		c.room -= int64(len(file.before))
	default:
		// A link that is removed or moved could not be put back if a later step fails.
		return nil, errNotPlain
	}
	c.byPath[at.Real] = file
	c.files = append(c.files, file)
	return file, nil
}

func (f *patchedFile) read(on disk, limit int64) error {
	content, err := on.readFile(f.at, limit)
	if err != nil {
		return err
	}
	f.existed, f.exists = true, true
	f.before = string(content.Data)
	f.now, f.stamp, f.mode = f.before, content.Stamp, content.Mode
	return nil
}

// commit writes every change, or none: when one fails, those before it are taken back. Writes come before removals,
// so that a moved file is never gone.
func (c *patchChange) commit() error {
	reserve, err := c.reserve()
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	directories := c.missingDirectories()
	done := 0
	order := c.order()
	for _, file := range order {
		if err = file.commit(c.disk); err != nil {
			break
		}
		done++
	}
	c.release(reserve)
	if err == nil {
		return nil
	}
	failure := fmt.Errorf("%s: %w", order[done].at.Asked, err)
	var lost []string
	for _, file := range slices.Backward(order[:done]) {
		if err := file.restore(c.disk); err != nil {
			lost = append(lost, fmt.Sprintf("%s (%v)", file.at.Asked, err))
		}
	}
	for _, dir := range slices.Backward(directories) {
		_ = c.disk.remove(place.Resolved{Real: dir, Kind: place.KindDirectory}, nil) // it may be in use by now
	}
	if len(lost) > 0 {
		return fmt.Errorf("the patch failed at %w; these files could not be put back as they were: %q", failure, lost)
	}
	return fmt.Errorf("nothing was changed: the patch failed at %w", failure)
}

// order is the files that differ: first those to write, then those to remove.
func (c *patchChange) order() []*patchedFile {
	var writes, removals []*patchedFile
	for _, file := range c.files {
		switch {
		case file.exists && (!file.existed || file.now != file.before):
			writes = append(writes, file)
		case !file.exists && file.existed:
			removals = append(removals, file)
		}
	}
	return append(writes, removals...)
}

func (f *patchedFile) commit(on disk) error {
	if f.exists {
		options := place.WriteOptions{Parents: true, Mode: f.newMode}
		if f.existed {
			options = place.WriteOptions{Unchanged: &f.stamp}
		}
		return on.writeFile(f.at, []byte(f.now), options)
	}
	return on.remove(f.at, &f.stamp)
}

// restore takes back what commit did.
func (f *patchedFile) restore(on disk) error {
	now := f.at
	switch {
	case !f.existed:
		now.Kind = place.KindRegular
		return on.remove(now, nil)
	case f.exists:
		return on.writeFile(now, []byte(f.before), place.WriteOptions{})
	}
	now.Kind = place.KindMissing
	return on.writeFile(now, []byte(f.before), place.WriteOptions{Parents: true, Mode: f.mode})
}

// reserve takes as much space beside the files as putting them back could need, so that a disk that fills up half
// way can still be tidied. A single file needs none: it is replaced all or nothing.
func (c *patchChange) reserve() ([]place.Resolved, error) {
	order := c.order()
	if len(order) < 2 {
		return nil, nil
	}
	sizes := map[string]int{}
	var directories []string
	for _, file := range order {
		if !file.existed {
			continue
		}
		dir := path.Dir(file.at.Real)
		if _, seen := sizes[dir]; !seen {
			directories = append(directories, dir)
		}
		sizes[dir] += len(file.before)
	}
	var held []place.Resolved
	for _, dir := range directories {
		file := place.Resolved{Real: dir + "/.toolward-reserve-" + rand.Text(), Kind: place.KindMissing}
		if err := c.disk.writeFile(file, make([]byte, sizes[dir]), place.WriteOptions{Mode: 0o600}); err != nil {
			c.release(held)
			if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
				return nil, errors.New("there is not enough space on the disk to change the files safely")
			}
			return nil, err
		}
		held = append(held, file)
	}
	return held, nil
}

func (c *patchChange) release(held []place.Resolved) {
	for _, file := range held {
		file.Kind = place.KindRegular
		_ = c.disk.remove(file, nil) // its random name keeps it from being mistaken for anything
	}
}

// missingDirectories lists the directories that the patch will create, parents first.
func (c *patchChange) missingDirectories() []string {
	var missing []string
	for _, file := range c.order() {
		if file.existed {
			continue
		}
		var chain []string
		for dir := path.Dir(file.at.Real); dir != "/"; dir = path.Dir(dir) {
			if c.disk.exists(dir) || slices.Contains(missing, dir) {
				break
			}
			chain = append(chain, dir)
		}
		slices.Reverse(chain)
		missing = append(missing, chain...)
	}
	return missing
}
