package undo

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// What was read of a workspace is kept over restarts, in read/ of the store: else the first call after one reads every file again.
//
// It says of each file by which stamp it had which content. A wrong one would be an attack: a file that has been changed would count as
// what it was, so that nothing keeps what it is, or as another one, which taking back then writes. Who can write to the store decides
// what an undo writes already, and nobody else can, so that nothing is signed. But it is believed only if it is whole, in this
// version, about this very workspace, by this user, from this run of the system and made under the same limits, and lies there as
// this process leaves it; and of what it names only what is really kept. In every other case the workspace is read.

// recallVersion begins every file. It changes with the form of what follows, and with what a stamp means.
const recallVersion = "toolward: what was read of a workspace, 1\n"

const (
	mostRecalled    = 20       // workspaces
	largestRecalled = 64 << 20 // bytes of one
	deepestRecalled = 2000     // directories in each other
)

func (s *Store) recallDir() string { return filepath.Join(s.dir, "read") }

func (s *Store) recallPath(workspace string) string {
	name := sha256.Sum256([]byte(workspace))
	return filepath.Join(s.recallDir(), hex.EncodeToString(name[:])+".tree")
}

// recallHead is what must be the same for a file to be believed. Numbers of devices, and thereby stamps, count for one run of the
// system only. "" if nothing can be remembered here.
func (s *Store) recallHead(workspace string) string {
	boot := bootID()
	if boot == "" {
		return ""
	}
	b := []byte(recallVersion)
	b = appendText(b, boot)
	b = appendText(b, workspace)
	b = binary.AppendUvarint(b, uint64(os.Geteuid()))
	b = binary.AppendUvarint(b, uint64(s.limits.File))
	return string(b)
}

// Remember writes down what was read of workspaces. Without it they are read again after a restart.
func (s *Store) Remember() error {
	s.using.RLock()
	defer s.using.RUnlock()
	s.mu.Lock()
	trees := make(map[string]*tree, len(s.trees))
	for workspace, t := range s.trees {
		trees[workspace] = t
	}
	s.mu.Unlock()
	var failed error
	for workspace, t := range trees {
		if t.mu.TryLock() {
			failed = errors.Join(failed, s.remember(workspace, t))
			t.mu.Unlock()
		}
	}
	return failed
}

// remember writes down what was read of a workspace, if that is not what is written already. The caller holds the tree's lock.
func (s *Store) remember(workspace string, t *tree) error {
	head := s.recallHead(workspace)
	if t.top == nil || t.top == t.written || head == "" {
		return nil
	}
	b := appendFolder([]byte(head), t.top)
	sum := sha256.Sum256(b)
	if b = append(b, sum[:]...); len(b) > largestRecalled {
		return nil
	}
	f, err := os.CreateTemp(s.recallDir(), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.recallPath(workspace))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	t.written = t.top
	return s.tidyRecalled()
}

// dropUnfinished removes what a process that was killed never completed.
func (s *Store) dropUnfinished() error {
	entries, err := os.ReadDir(s.recallDir())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "new-") {
			err = errors.Join(err, os.Remove(filepath.Join(s.recallDir(), e.Name())))
		}
	}
	return err
}

// tidyRecalled removes all but the newest.
func (s *Store) tidyRecalled() error {
	entries, err := os.ReadDir(s.recallDir())
	if err != nil {
		return err
	}
	var infos []os.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".tree") {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b os.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	var failed error
	for _, info := range infos[min(mostRecalled, len(infos)):] {
		if err := os.Remove(filepath.Join(s.recallDir(), info.Name())); !errors.Is(err, os.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// recall is what was read of a workspace before; nil if that is not known, or not to be believed.
func (s *Store) recall(workspace string) *folder {
	head := s.recallHead(workspace)
	if head == "" {
		return nil
	}
	data := readOwn(s.recallPath(workspace))
	if len(data) < sha256.Size {
		return nil
	}
	body, sum := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(want[:], sum) || !bytes.HasPrefix(body, []byte(head)) {
		return nil
	}
	r := recaller{reader: reader{data: body[len(head):]}, objects: s.objects, room: uint64(s.limits.Entries)}
	top := r.folder(0)
	if r.bad || len(r.data) > 0 {
		return nil
	}
	return top
}

// readOwn reads a file that only this user may read and write; nil if it is anything else.
func readOwn(path string) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || !stampOf(&st).is(unix.S_IFREG) || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 || st.Size > largestRecalled {
		return nil
	}
	data := make([]byte, st.Size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil
	}
	return data
}

func appendStamp(b []byte, s stamp) []byte {
	for _, n := range []uint64{s.device, s.inode, uint64(s.mode), uint64(s.size), uint64(s.modified), uint64(s.changed)} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func appendFlag(b []byte, set bool) []byte {
	if set {
		return append(b, 1)
	}
	return append(b, 0)
}

// appendFolder writes a directory with its entries, and what is below them. Hashes of directories follow from that.
func appendFolder(b []byte, f *folder) []byte {
	b = appendFlag(appendStamp(b, f.stamp), f.settled)
	b = binary.AppendUvarint(b, uint64(len(f.items)))
	for n := range f.items {
		i := &f.items[n]
		b = appendText(b, i.name)
		b = append(b, byte(i.Kind))
		b = appendFlag(appendStamp(b, i.stamp), i.settled)
		switch i.Kind {
		case File:
			b = binary.AppendUvarint(b, uint64(i.Mode))
			b = binary.AppendUvarint(b, uint64(i.Size))
			b = append(b, i.Hash[:]...)
		case Directory:
			b = binary.AppendUvarint(b, uint64(i.Mode))
			b = appendFolder(b, i.folder)
		case Link:
			b = appendText(b, i.Target)
		case Apart:
			b = appendText(b, i.Why)
		}
	}
	return b
}

// recaller reads what appendFolder wrote.
type recaller struct {
	reader
	objects *objects
	room    uint64 // for entries
}

func (r *recaller) stamp() stamp {
	return stamp{
		device: r.number(), inode: r.number(), mode: uint32(r.number()), size: int64(r.number()), modified: int64(r.number()), changed: int64(r.number()),
	}
}

func (r *recaller) folder(depth int) *folder {
	f := &folder{stamp: r.stamp(), settled: r.byte() == 1}
	count := r.number()
	if r.bad = r.bad || depth > deepestRecalled || count > r.room; r.bad {
		return f
	}
	r.room -= count
	f.items = make([]item, count)
	for n := range f.items {
		r.item(&f.items[n], depth)
		if r.bad || n > 0 && f.items[n].name <= f.items[n-1].name {
			r.bad = true
			return f
		}
	}
	encoded := encodeDirectory(f.entries())
	f.hash = directoryHash(encoded)
	f.lost = !r.objects.has(f.hash, int64(len(encoded)))
	return f
}

func (r *recaller) item(i *item, depth int) {
	i.name, i.Kind = r.text(), Kind(r.byte())
	i.stamp, i.settled = r.stamp(), r.byte() == 1
	switch i.Kind {
	case File:
		i.Mode, i.Size, i.Hash = uint32(r.number()), int64(r.number()), r.hash()
		i.settled = i.settled && r.objects.has(i.Hash, i.Size)
	case Directory:
		i.Mode, i.folder = uint32(r.number()), r.folder(depth+1)
		i.Hash = i.folder.hash
	case Link:
		i.Target = r.text()
	case Apart:
		i.Why, i.settled = r.text(), false // whether it can be kept is seen anew
	default:
		r.bad = true
	}
	if i.name == "" || i.name == "." || i.name == ".." || strings.ContainsAny(i.name, "/\x00") {
		r.bad = true
	}
}

// without notes which objects are not kept any more, so that what needs them is read again.
func (f *folder) without(gone func(Hash) bool) {
	f.lost = f.lost || gone(f.hash)
	for n := range f.items {
		switch i := &f.items[n]; i.Kind {
		case File:
			i.settled = i.settled && !gone(i.Hash)
		case Directory:
			i.folder.without(gone)
		}
	}
}
