package main

import (
	"errors"
	"fmt"

	"github.com/toolward/toolward/gateway"
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
		name = gateway.BusyboxImage
	default:
		name = gateway.DefaultImage
	}
	id, err := gateway.BuildImage(inv, gateway.Image{
		Name: name, FromDir: c.FromDir, Busybox: c.Busybox, Suite: c.Suite, Mirror: c.Mirror, Progress: inv.stderr,
	})
	if err != nil {
		return &exitErr{code: exitError, err: err}
	}
	if inv.json {
		return inv.printJSON(map[string]string{"image": name, "id": id})
	}
	fmt.Fprintf(inv.stdout, "%s is %s\n", name, id)
	if name != gateway.DefaultImage {
		fmt.Fprintf(inv.stdout, "use it with sandbox.docker.image %q\n", name)
	}
	return nil
}
