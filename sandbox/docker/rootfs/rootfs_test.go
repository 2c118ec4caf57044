package rootfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) {
		t.Helper()
		name = filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, []byte("text"), 0o600)
		}
		if err == nil {
			err = os.Chmod(name, mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file("bin/plain", 0o755)
	file("bin/gains", 0o755|os.ModeSetuid|os.ModeSetgid)
	err := errors.Join(
		os.Symlink("/etc/shadow", filepath.Join(dir, "link")), os.Link(filepath.Join(dir, "bin/plain"), filepath.Join(dir, "bin/second")),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600), os.Mkdir(filepath.Join(dir, "tmp"), 0o755), os.Chmod(filepath.Join(dir, "tmp"), 0o777|os.ModeSticky),
	)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Directory(&out, dir); err != nil {
		t.Fatal(err)
	}
	found := map[string]*tar.Header{}
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = h
		if data, err := io.ReadAll(r); h.Typeflag == tar.TypeReg && string(data) != "text" || err != nil {
			t.Errorf("%s holds %q, %v", h.Name, data, err)
		}
	}
	if h := found["bin/gains"]; h == nil || h.Mode != 0o755 {
		t.Errorf("a program that runs as its owner is %+v", h)
	}
	if h := found["tmp/"]; h == nil || h.Mode != 0o1777 {
		t.Errorf("tmp is %+v", h)
	}
	if h := found["link"]; h == nil || h.Typeflag != tar.TypeSymlink || h.Linkname != "/etc/shadow" {
		t.Errorf("the link is %+v", h)
	}
	if h := found["bin/second"]; h == nil || h.Typeflag != tar.TypeLink || h.Linkname != "bin/plain" {
		t.Errorf("the second name is %+v", h)
	}
	if found["fifo"] != nil || len(found) != 6 {
		t.Errorf("it holds %v", found)
	}
}

func TestDebootstrapTakesNoOptionForASuite(t *testing.T) {
	if err := Debootstrap(t.Context(), t.TempDir(), "--help", "", io.Discard); err == nil {
		t.Error("an option was taken for a suite")
	}
	if err := Debootstrap(t.Context(), t.TempDir(), "bookworm", "--help", io.Discard); err == nil {
		t.Error("an option was taken for a mirror")
	}
}
