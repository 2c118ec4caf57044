package command

import "sync/atomic"

// listener is a FileSystem that hears of changes in directories, so that a decision need not look at each of them.
type listener interface {
	// hear takes note of everything that has changed until now.
	hear()
	// watch begins to listen to directories, of which each stands behind those that it lies in. It returns nil if it
	// cannot hear of every change in them.
	watch(dirs []seen) *watch
}

// watch are directories that are listened to. What was found in them after it began holds for as long as they are quiet.
type watch struct {
	dirs []*watched
	from []uint64 // changes of each when it began
}

// watched is one directory.
type watched struct{ changes atomic.Uint64 }

func (w *watch) add(dir *watched) {
	w.dirs = append(w.dirs, dir)
	w.from = append(w.from, dir.changes.Load())
}

// quiet reports whether no change was heard of.
func (w *watch) quiet() bool {
	for i, dir := range w.dirs {
		if dir.changes.Load() != w.from[i] {
			return false
		}
	}
	return true
}
