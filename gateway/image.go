package gateway

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/docker/rootfs"
	"github.com/toolward/toolward/sandbox/settings"
)

// DefaultImage is the one that sandboxes use unless the configuration names another.
const DefaultImage = settings.DefaultImage

// BusyboxImage is a shell and no more: nobody who runs agents with the default image should get this one by mistake.
const BusyboxImage = sandbox.Brand + "-sandbox:busybox"

// Image says what an image of the container engine is made from: a directory, a shell and no more, or Debian's packages.
type Image struct {
	Name          string
	FromDir       string
	Busybox       bool
	Suite, Mirror string // of Debian
	Progress      io.Writer
}

// BuildImage writes the root file system straight into the container engine.
func BuildImage(ctx context.Context, i Image) (id string, err error) {
	directory := i.FromDir
	if directory == "" && !i.Busybox {
		parent, err := os.MkdirTemp("", "toolward-image")
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(parent)) }()
		directory = filepath.Join(parent, "root")
		if err := rootfs.Debootstrap(ctx, directory, i.Suite, i.Mirror, i.Progress); err != nil {
			return "", err
		}
	}
	e := docker.New(docker.Options{})
	defer func() { err = errors.Join(err, e.Close()) }()
	reader, writer := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		if i.Busybox {
			_ = writer.CloseWithError(rootfs.Busybox(ctx, writer)) // it always succeeds
			return
		}
		_ = writer.CloseWithError(rootfs.Directory(writer, directory)) // as above
	}()
	id, err = e.ImportImage(ctx, i.Name, reader)
	_ = reader.CloseWithError(errors.New("the container engine takes no more")) // as above
	<-written
	return id, err
}
