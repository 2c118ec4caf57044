package builtin

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// walker goes through a directory tree for list and search. It starts every step from a directory that is open, so
// that nobody can lead it elsewhere by swapping one; it follows no symbolic link; and it goes into no place that
// read would not be let into by the same call.
type walker struct {
	places   located
	disk     disk
	level    toolward.Level
	root     place.Resolved
	ignored  bool // also what .gitignore files exclude
	budget   int  // entries that may still be looked at
	deadline time.Time

	guarded   []string // entries that were passed over because of what they are
	unread    int      // directories and files that could not be opened
	exhausted bool     // budget or time ran out
}

// walkTime is how long one walk may take.
const walkTime = time.Minute

// walkedDir is a directory on the way.
type walkedDir struct {
	file   directory
	rel    string // path from the root of the walk, "" for the root
	real   string
	ignore *ignoreRules
}

// walkedEntry is one entry of a directory.
type walkedEntry struct {
	name string
	rel  string
	kind fs.FileMode // type bits
}

func (w *walker) start() (*walkedDir, error) {
	w.deadline = time.Now().Add(walkTime)
	file, err := w.disk.openDir(w.root)
	if err != nil {
		return nil, err
	}
	dir := &walkedDir{file: file, real: w.root.Real}
	if !w.ignored {
		dir.ignore = w.ignoreAbove()
		w.readIgnore(dir)
	}
	return dir, nil
}

// ignoreAbove reads the .gitignore files of the directories above the root, up to the repository or the workspace.
func (w *walker) ignoreAbove() *ignoreRules {
	workspace := w.places.Layout().Workspace
	if w.root.Real == workspace || !place.Within(w.root.Real, workspace) {
		return nil
	}
	var chain []string
	for dir := w.root.Real; dir != workspace; {
		if w.disk.exists(dir + "/.git") {
			break
		}
		dir = path.Dir(dir)
		chain = append(chain, dir)
	}
	var rules *ignoreRules
	for _, dir := range slices.Backward(chain) {
		file, err := w.places.Resolve(dir, ".gitignore")
		if err != nil || file.Kind != place.KindRegular || !w.enters(file.Real) {
			continue
		}
		if content, err := w.disk.readFile(file, maxIgnoreFile); err == nil {
			rules = parseIgnore("/"+strings.TrimPrefix(w.root.Real, dir+"/"), string(content.Data), rules)
		}
	}
	return rules
}

func (w *walker) readIgnore(dir *walkedDir) {
	file, err := dir.file.child(".gitignore")
	if err != nil {
		return
	}
	defer file.Close()
	if data, err := io.ReadAll(io.LimitReader(file, maxIgnoreFile)); err == nil {
		dir.ignore = parseIgnore(dir.rel, string(data), dir.ignore)
	}
}

// enters reports whether the call may look into a place: into what its target is, and into what read needs no
// question for at this level. Without this a search of the workspace would print the keys that lie in it.
func (w *walker) enters(real string) bool {
	switch p := w.places.Classify(real); p {
	case place.Workspace, place.Instructions, place.Outside:
		return true
	case place.Protected:
		return w.level == toolward.Normal || w.root.Zone <= p
	case place.Secret:
		return w.root.Zone == place.Secret
	}
	return false
}

// entries lists a directory in order of names, without what is ignored.
func (w *walker) entries(ctx context.Context, dir *walkedDir) ([]walkedEntry, error) {
	var list []walkedEntry
	for {
		batch, err := dir.file.ReadDir(512)
		for _, entry := range batch {
			if w.budget--; w.budget < 0 {
				w.exhausted = true
				break
			}
			name := entry.Name()
			found := walkedEntry{name: name, rel: path.Join(dir.rel, name), kind: entry.Type()}
			if w.skips(dir, found) {
				continue
			}
			list = append(list, found)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if time.Now().After(w.deadline) {
			w.exhausted = true
		}
		if err != nil || w.exhausted {
			if err != nil && !errors.Is(err, io.EOF) {
				w.unread++
			}
			break
		}
	}
	slices.SortFunc(list, func(a, b walkedEntry) int { return strings.Compare(a.name, b.name) })
	return list, nil
}

func (w *walker) skips(dir *walkedDir, entry walkedEntry) bool {
	isDir := entry.kind.IsDir()
	switch {
	case isDir && (entry.name == ".git" || entry.name == ".hg" || entry.name == ".svn"):
		return true
	case !w.ignored && dir.ignore.ignored(entry.rel, isDir):
		return true
	}
	return false
}

// open opens a directory below another one. Nil without an error: it is guarded or cannot be read.
func (w *walker) open(dir *walkedDir, entry walkedEntry) *walkedDir {
	real := dir.real + "/" + entry.name
	if dir.real == "/" {
		real = "/" + entry.name
	}
	if !w.enters(real) {
		w.guarded = append(w.guarded, entry.rel+"/")
		return nil
	}
	file, err := dir.file.childDir(entry.name)
	if err != nil {
		w.unread++
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			w.exhausted = true
		}
		return nil
	}
	child := &walkedDir{file: file, rel: entry.rel, real: real, ignore: dir.ignore}
	if !w.ignored {
		w.readIgnore(child)
	}
	return child
}

// notes tells what the walk left out.
func (w *walker) notes() []string {
	var notes []string
	if n := len(w.guarded); n > 0 {
		shown := w.guarded[:min(n, 5)]
		text := "not looked into, because of what they may hold: " + strings.Join(shown, ", ")
		if n > len(shown) {
			text += ", …"
		}
		notes = append(notes, text)
	}
	if w.unread > 0 {
		notes = append(notes, "some files or directories could not be read")
	}
	if w.exhausted {
		notes = append(notes, "the tree is too large: the rest was not looked at; name a directory below")
	}
	return notes
}

func noteText(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return "\n[" + strings.Join(notes, "; ") + "]\n"
}
