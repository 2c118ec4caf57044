package docker

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox/docker/rootfs"
)

// An image from a root file system in a directory runs, and nothing in it gains rights.
func TestImageFromADirectory(t *testing.T) {
	e := testEngine(t)
	dir := t.TempDir()
	program, err := os.ReadFile(live.Need(t, live.Program("busybox")))
	for _, name := range []string{"bin", "tmp", "var/tmp", "run", "workspace"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "bin/sh"), program, 0o755), os.Link(filepath.Join(dir, "bin/sh"), filepath.Join(dir, "bin/stat")),
		os.Chmod(filepath.Join(dir, "bin/sh"), 0o755|os.ModeSetuid))
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if out, err := exec.Command("mknod", filepath.Join(dir, "disk"), "b", "7", "0").CombinedOutput(); err != nil {
			t.Logf("without a device: %v: %s", err, out)
		}
	}
	name := imageName() + "-directory"
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(rootfs.Directory(writer, dir)) }()
	id, err := e.ImportImage(t.Context(), name, reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	if made := docker(t, "image", "inspect", "--format", "{{.Id}} {{.Config.Cmd}} {{index .Config.Labels \"toolward.image\"}}", name); made != id+" [sleep infinity] 1" {
		t.Errorf("the image is %q", made)
	}
	spec := testSpec(t, newWorkspace(t))
	spec.Docker.Image = name
	h := ensure(t, e, spec)
	if out, _ := output(t, h, shell("stat -c %a:%h /bin/sh /bin/stat; test -e /disk && echo a device")); out != "755:2\n755:2\n" {
		t.Errorf("inside it is %q", out)
	}
}
