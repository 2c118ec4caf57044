package installation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/hostdaemon"
)

const (
	hookProgram = "toolward-hook"
	programMode = 0o755
	// recordDirectory remembers what was there before. It is not the home of a daemon, whose user could lead root elsewhere.
	recordDirectory = "/var/lib/toolward-install"
	recordName      = "programs.json"
	largestProgram  = 512 << 20
)

// smallPrograms are what guarded agents and the gateway start.
var smallPrograms = []string{hookProgram, "toolward-run", "toolward-inside"}

// programs are what comes or goes for everybody on this machine.
type programs struct {
	client  string
	coming  []program
	record  record
	leaving bool
}

// program is a small program as it was read, and where it is to be.
type program struct {
	name, path, from string
	args             []string // before its own
	content          []byte
	sum              string
	mode             os.FileMode
	roots            bool // it belongs to root
}

// record is what uninstalling goes by.
type record struct {
	For         []string            `json:"for"`         // the clients whose settings name the programs
	Programs    map[string][]string `json:"programs"`    // by path: SHA-256 of what was put there
	Directories []string            `json:"directories"` // made for it, outer ones first
}

// findPrograms reads the programs that came with this one; hook names another one for the hook.
func findPrograms(ctx context.Context, client, hook string) (*programs, error) {
	kept, err := readRecord()
	if err != nil {
		return nil, err
	}
	p := &programs{client: client, record: kept}
	for _, name := range smallPrograms {
		found := companion.Program{Path: hook}
		if name != hookProgram || hook == "" {
			if found, err = companion.Own(ctx, name); err != nil {
				return nil, err
			}
		}
		one, err := readProgram(found.Path)
		if err != nil {
			return nil, err
		}
		one.name, one.path, one.args = name, filepath.Join(companion.Libexec, name), found.Args
		if len(found.Args) > 0 { // the big program stands in, for more than one
			one.path = filepath.Join(companion.Libexec, "toolward")
		}
		if err := p.mayReplace(&one); err != nil {
			return nil, err
		}
		p.coming = append(p.coming, one)
	}
	return p, nil
}

// readProgram reads a file as it is now. A link in its place, which whoever owns the directory can make, could have root publish
// what only root may read.
func readProgram(path string) (p program, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return p, fmt.Errorf("read the program: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return p, err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || info.Size() > largestProgram {
		return p, fmt.Errorf("%s is no program", path)
	}
	content, err := io.ReadAll(file)
	sum := sha256.Sum256(content)
	stat, ok := info.Sys().(*syscall.Stat_t)
	return program{
		from: path, content: content, sum: hex.EncodeToString(sum[:]), roots: ok && stat.Uid == 0 && stat.Gid == 0,
		mode: info.Mode() & (os.ModePerm | os.ModeSetuid | os.ModeSetgid | os.ModeSticky),
	}, err
}

// mayReplace refuses to lose a file that no installation has made.
func (p *programs) mayReplace(one *program) error {
	if exists, err := hostdaemon.RootsAlone(filepath.Dir(one.path)); err != nil || !exists {
		return err
	}
	there, err := readProgram(one.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || there.sum != one.sum && !slices.Contains(p.record.Programs[one.path], there.sum) {
		return fmt.Errorf("%s is there, and no installation of Toolward has put it there as it is: move it away first", one.path)
	}
	return nil
}

func (p *programs) program(name string) *program {
	return &p.coming[slices.IndexFunc(p.coming, func(one program) bool { return one.name == name })]
}

// notes tell what is copied, so that it can be compared with what was meant.
func (p *programs) notes() (notes []string) {
	for _, one := range p.coming {
		note := fmt.Sprintf("%s is copied to %s, SHA-256 %s.", one.from, one.path, one.sum)
		if safe, err := hostdaemon.RootsAlone(one.from); err != nil || !safe {
			note += " Others than root can write there: make sure that it is what you built or downloaded."
		}
		notes = append(notes, note)
	}
	return notes
}

// changed reports whether a program or the record is to be written.
func (p *programs) changed() bool {
	if p.leaving {
		return slices.Contains(p.record.For, p.client)
	}
	return !slices.Contains(p.record.For, p.client) || slices.ContainsFunc(p.coming, func(one program) bool { return !one.stands() })
}

// stands reports whether a program is already where it is to be.
func (one *program) stands() bool {
	there, err := readProgram(one.path)
	return err == nil && there.sum == one.sum && there.mode == programMode && there.roots
}

// put copies the programs and makes the directory of the settings. What is to be undone is written down before it is done.
func (p *programs) put(settings string) error {
	for _, dir := range []string{recordDirectory, companion.Libexec, settings} {
		made, err := missing(dir)
		if err != nil {
			return err
		}
		p.record.Directories = append(p.record.Directories, made...)
	}
	if !slices.Contains(p.record.For, p.client) {
		p.record.For = append(p.record.For, p.client)
	}
	for _, one := range p.coming {
		if one.stands() {
			continue // it may be somebody else's
		}
		if p.record.Programs == nil {
			p.record.Programs = map[string][]string{}
		}
		p.record.Programs[one.path] = append(p.record.Programs[one.path], one.sum)
	}
	for _, dir := range []string{recordDirectory, companion.Libexec, settings} {
		if err := makeDirectory(dir); err != nil {
			return err
		}
	}
	slices.Sort(p.record.Directories)
	p.record.Directories = slices.Compact(p.record.Directories)
	if err := p.record.write(); err != nil {
		return err
	}
	for _, one := range p.coming {
		if one.stands() {
			continue
		}
		if err := putFile(one.path, one.content, programMode); err != nil {
			return err
		}
	}
	return nil
}

// remove takes away what put has made, unless another client's settings need it or somebody has changed it since.
func (p *programs) remove() error {
	p.record.For = slices.DeleteFunc(p.record.For, func(name string) bool { return name == p.client })
	if len(p.record.For) > 0 {
		return p.record.write()
	}
	for path, sums := range p.record.Programs {
		if exists, err := hostdaemon.RootsAlone(filepath.Dir(path)); err != nil {
			return err
		} else if !exists {
			continue
		}
		if there, err := readProgram(path); err == nil && slices.Contains(sums, there.sum) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(filepath.Join(recordDirectory, recordName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, dir := range slices.Backward(p.record.Directories) {
		// What somebody else has put into it stays, and so does it.
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) {
			return err
		}
	}
	return nil
}

func readRecord() (r record, err error) {
	path := filepath.Join(recordDirectory, recordName)
	if exists, err := hostdaemon.RootsAlone(path); err != nil || !exists {
		return record{}, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return record{}, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, fmt.Errorf("%s is not understood (%w): mend it, or remove it and what it names by hand", path, err)
	}
	return r, nil
}

func (r *record) write() error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return err
	}
	return putFile(filepath.Join(recordDirectory, recordName), data.Bytes(), 0o644)
}

// ancestors are the directories that lead to one, and it, outer ones first.
func ancestors(dir string) (all []string) {
	for ; ; dir = filepath.Dir(dir) {
		all = append(all, dir)
		if dir == filepath.Dir(dir) {
			slices.Reverse(all)
			return all
		}
	}
}

// missing lists the directories that have to be made for one.
func missing(dir string) (all []string, err error) {
	for _, one := range ancestors(dir) {
		exists, err := hostdaemon.RootsAlone(one)
		if err != nil {
			return nil, err
		}
		if !exists {
			all = append(all, one)
		}
	}
	return all, nil
}

// makeDirectory makes a directory and those above it, root's alone.
func makeDirectory(dir string) error {
	due, err := missing(dir)
	for _, one := range due {
		if err := errors.Join(os.Mkdir(one, 0o755), os.Chmod(one, 0o755)); err != nil {
			return err
		}
	}
	return err
}

// putFile puts a file where only root can exchange it, in one step: after a crash the old one is there or the new one, never a part.
func putFile(path string, content []byte, mode os.FileMode) (err error) {
	dir := filepath.Dir(path)
	if _, err := hostdaemon.RootsAlone(dir); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // never renamed
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chown(0, 0), file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	parent, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}
