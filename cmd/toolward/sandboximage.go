package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker"
	"github.com/toolward/toolward/sandbox/docker/rootfs"
)

type sandboxImageCommand struct {
	Build sandboxImageBuildCommand `cmd:"" help:"Make an image for the docker engine from what this machine has."`
}

type sandboxImageBuildCommand struct {
	FromDir     string `help:"From a root file system in a directory." placeholder:"DIR"`
	Debootstrap bool   `help:"From Debian's packages, with debootstrap, as root. This is the default."`
	Busybox     bool   `help:"A shell and no more, less than 3 MiB."`
	Name        string `help:"Of the image; the default is the one that sandboxes use, or toolward-sandbox:busybox with --busybox." placeholder:"NAME:TAG"`
	Suite       string `help:"Of Debian, with --debootstrap." default:"bookworm"`
	Mirror      string `help:"Of Debian, with --debootstrap; the default is debootstrap's own." placeholder:"URL"`
}

// busyboxImage is what --busybox makes: nobody who runs agents with the default image should get this one by mistake.
const busyboxImage = sandbox.Brand + "-sandbox:busybox"

// Run makes an image. It needs no gateway, only the container engine.
func (c *sandboxImageBuildCommand) Run(inv *invocation) error {
	chosen := 0
	for _, given := range []bool{c.FromDir != "", c.Debootstrap, c.Busybox} {
		if given {
			chosen++
		}
	}
	if chosen > 1 {
		return &exitErr{code: exitError, err: errors.New("name one of --from-dir, --debootstrap and --busybox")}
	}
	name := c.Name
	switch {
	case name != "":
	case c.Busybox:
		name = busyboxImage
	default:
		name = settings.DefaultImage
	}
	id, err := c.build(inv, name)
	if err != nil {
		return &exitErr{code: exitError, err: err}
	}
	if inv.json {
		return inv.printJSON(map[string]string{"image": name, "id": id})
	}
	fmt.Fprintf(inv.stdout, "%s is %s\n", name, id)
	if name != settings.DefaultImage {
		fmt.Fprintf(inv.stdout, "use it with sandbox.docker.image %q\n", name)
	}
	return nil
}

// build writes the root file system straight into the container engine.
func (c *sandboxImageBuildCommand) build(inv *invocation, name string) (id string, err error) {
	directory := c.FromDir
	if directory == "" && !c.Busybox {
		parent, err := os.MkdirTemp("", "toolward-image")
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(parent)) }()
		directory = filepath.Join(parent, "root")
		if err := rootfs.Debootstrap(inv, directory, c.Suite, c.Mirror, inv.stderr); err != nil {
			return "", err
		}
	}
	e := docker.New(docker.Options{})
	defer func() { err = errors.Join(err, e.Close()) }()
	reader, writer := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		if c.Busybox {
			_ = writer.CloseWithError(rootfs.Busybox(inv, writer)) // it always succeeds
			return
		}
		_ = writer.CloseWithError(rootfs.Directory(writer, directory)) // as above
	}()
	id, err = e.ImportImage(inv, name, reader)
	_ = reader.CloseWithError(errors.New("the container engine takes no more")) // as above
	<-written
	return id, err
}
