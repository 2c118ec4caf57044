package native

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox"
)

// withTemporary gives a sandbox without namespaces a directory for temporary files: the machine's /tmp stays closed, and
// most programs cannot do without one. It counts as a writable mount, so that file tools and the disk limit know it.
func (b *box) withTemporary(spec *sandbox.Spec) (*sandbox.Spec, error) {
	e := b.engine
	e.sweep.Do(e.sweepTemporary)
	top, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return nil, sandbox.Errorf(sandbox.CodeFailed, "find a place for temporary files: %v", err)
	}
	dir := filepath.Join(top, e.temporaryPrefix()+e.owner+"-"+strconv.FormatInt(e.serial.Add(1), 10))
	// Mkdir follows nothing: a link that somebody else has put there is an error.
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, sandbox.Errorf(sandbox.CodeFailed, "make a place for temporary files: %v", err)
	}
	b.temporary = dir
	with := *spec
	with.Mounts = append(slices.Clone(spec.Mounts), sandbox.Mount{Kind: sandbox.MountBind, Source: dir, Target: dir, Writable: true})
	return &with, nil
}

func (e *Engine) temporaryPrefix() string { return sandbox.Brand + "-" + e.options.Instance + "-" }

// removeTemporary removes the directory and what the sandbox has left in it, which may have taken its own rights away.
func (b *box) removeTemporary() {
	if os.RemoveAll(b.temporary) == nil {
		return
	}
	_ = filepath.WalkDir(b.temporary, func(path string, entry os.DirEntry, _ error) error { // what stays is told below
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // as above
		}
		return nil
	})
	if err := os.RemoveAll(b.temporary); err != nil {
		b.engine.log.Warn("temporary files of a sandbox are left", "path", b.temporary, "error", err)
	}
}

// sweepTemporary removes what gateways of this instance left that were killed.
func (e *Engine) sweepTemporary() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), e.temporaryPrefix()+"*"))
	for _, dir := range left {
		if !ownerRuns(strings.TrimPrefix(filepath.Base(dir), e.temporaryPrefix())) {
			_ = os.RemoveAll(dir) // the next start tries again
		}
	}
}
