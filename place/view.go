package place

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// ErrNotMounted means that a path leads to where a sandbox has nothing of this machine's: to its own system.
var ErrNotMounted = errors.New("nothing of the workspace is there")

// Through is a classifier of the same layout for paths inside a sandbox. What it resolves is as real as what this machine
// shows of the sandbox at that moment; whoever opens it does so inside. Its paths are not for Open and the like.
func (c *Classifier) Through(v View) *Classifier {
	through := *c
	through.view = v
	return &through
}

func (c *Classifier) lstat(p string) (fs.FileInfo, error) {
	if c.view == nil {
		return os.Lstat(p)
	}
	host, above, ok := c.view.Find(p)
	switch {
	case above:
		return rootInfo{}, nil
	case ok:
		return os.Lstat(host)
	}
	return nil, ErrNotMounted
}

func (c *Classifier) readlink(p string) (string, error) {
	if c.view == nil {
		return os.Readlink(p)
	}
	if host, _, ok := c.view.Find(p); ok {
		return os.Readlink(host)
	}
	return "", ErrNotMounted
}

func (c *Classifier) exists(p string) bool {
	_, err := c.lstat(p)
	return err == nil
}

// rootInfo is a directory of a sandbox's own that leads to what is mounted.
type rootInfo struct{}

func (rootInfo) Name() string       { return "" }
func (rootInfo) Size() int64        { return 0 }
func (rootInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o755 }
func (rootInfo) ModTime() time.Time { return time.Time{} }
func (rootInfo) IsDir() bool        { return true }
func (rootInfo) Sys() any           { return nil }
