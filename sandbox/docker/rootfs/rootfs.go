// Package rootfs makes root file systems for images, as tar archives, from what the machine has: no registry is asked.
package rootfs

import (
	"archive/tar"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// epoch is the time of files that have none of their own, so that one machine makes the same image twice.
var epoch = time.Unix(0, 0)

// The user that images name. Sandboxes run as numbers; a name is for programs that ask for one.
const (
	passwd = "root:x:0:0:root:/root:/bin/sh\nsandbox:x:10001:10001:sandbox:/workspace:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
	group  = "root:x:0:\nsandbox:x:10001:\nnogroup:x:65534:\n"
)

// archive writes a tar archive and remembers the first error.
type archive struct {
	w   *tar.Writer
	err error
}

func (a *archive) put(h *tar.Header, content io.Reader) {
	if a.err != nil {
		return
	}
	if h.ModTime.IsZero() {
		h.ModTime = epoch
	}
	if a.err = a.w.WriteHeader(h); a.err == nil && content != nil {
		_, a.err = io.Copy(a.w, content)
	}
}

func (a *archive) directory(name string, mode int64) {
	a.put(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode}, nil)
}

func (a *archive) file(name, text string) {
	a.put(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}, strings.NewReader(text))
}

func (a *archive) link(name, target string) {
	a.put(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

func (a *archive) close() error {
	if a.err != nil {
		return a.err
	}
	return a.w.Close()
}

// Busybox writes a root file system of one program with many names. Its image is less than 3 MiB: for tests, and for
// agents that need a shell and no more.
func Busybox(ctx context.Context, w io.Writer) error {
	program, err := staticBusybox()
	if err != nil {
		return err
	}
	names, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its names: %w", program, err)
	}
	a := &archive{w: tar.NewWriter(w)}
	for _, name := range []string{"bin", "dev", "etc", "proc", "run", "sys", "usr", "usr/local", "usr/local/bin", "var", "workspace"} {
		a.directory(name, 0o755)
	}
	a.directory("root", 0o700)
	a.directory("tmp", 0o1777)
	a.directory("var/tmp", 0o1777)
	for _, name := range []string{"sbin", "usr/bin", "usr/sbin"} {
		a.link(name, "/bin")
	}
	a.file("etc/passwd", passwd)
	a.file("etc/group", group)
	file, err := os.Open(program)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	a.put(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755, Size: info.Size()}, file)
	for name := range strings.FieldsSeq(string(names)) {
		if name != "busybox" && name == path.Base(name) {
			a.link("bin/"+name, "busybox")
		}
	}
	return a.close()
}

// staticBusybox finds a busybox that needs no library.
func staticBusybox() (string, error) {
	found := ""
	for _, program := range []string{"busybox", "busybox.static", "/bin/busybox", "/usr/bin/busybox", "/bin/busybox.static"} {
		full, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		found = full
		if static(full) {
			return full, nil
		}
	}
	if found != "" {
		return "", fmt.Errorf("%s needs libraries: install the package busybox-static", found)
	}
	return "", errors.New("busybox is not installed: install the package busybox-static")
}

func static(program string) bool {
	file, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer file.Close()
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}

// Packages are what the image for sandboxes holds beside the base of the system.
var Packages = []string{"bash", "ca-certificates", "curl", "git", "jq", "python3", "ripgrep"}

// Debootstrap installs a small Debian into an empty directory. It must run as root. mirror is "" for the default one.
func Debootstrap(ctx context.Context, directory, suite, mirror string, said io.Writer) error {
	if suite == "" || strings.HasPrefix(suite, "-") || strings.HasPrefix(mirror, "-") {
		return fmt.Errorf("%q is no suite of Debian, or %q no mirror", suite, mirror)
	}
	if os.Geteuid() != 0 {
		return errors.New("debootstrap must run as root: run this command with sudo")
	}
	program, err := exec.LookPath("debootstrap")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/debootstrap"); err != nil {
			return errors.New("debootstrap is not installed: install the package debootstrap")
		}
	}
	args := []string{"--variant=minbase", "--include=" + strings.Join(Packages, ","), suite, directory}
	if mirror != "" {
		args = append(args, mirror)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it unmounts what it has mounted
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("debootstrap: %w", err)
	}
	// What installing needed and running does not.
	for _, pattern := range []string{"var/cache/apt/archives/*.deb", "var/cache/apt/*.bin", "var/lib/apt/lists/*_*", "var/log/*.log"} {
		names, err := filepath.Glob(filepath.Join(directory, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return addUser(directory)
}

// addUser names the user that sandboxes run as, if nobody has that name.
func addUser(directory string) error {
	for name, line := range map[string]string{
		"etc/passwd": "sandbox:x:10001:10001:sandbox:/workspace:/bin/bash\n", "etc/group": "sandbox:x:10001:\n",
	} {
		data, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return err
		}
		if strings.Contains(string(data), "\nsandbox:") {
			continue
		}
		if err := os.WriteFile(filepath.Join(directory, name), append(data, line...), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Directory writes a directory as a root file system: files, directories and links, with their owners. Devices and
// sockets are left out, and no file runs as its owner: nothing in a sandbox may gain rights.
func Directory(w io.Writer, directory string) error {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return err
	}
	defer root.Close()
	a := &archive{w: tar.NewWriter(w)}
	first := map[[2]uint64]string{} // names of files with several
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		a.add(root, name, info, first)
		return a.err
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", directory, err)
	}
	return a.close()
}

func (a *archive) add(root *os.Root, name string, info fs.FileInfo, first map[[2]uint64]string) {
	mode := info.Mode()
	h := &tar.Header{Name: name, Mode: int64(mode.Perm()), ModTime: info.ModTime().Truncate(time.Second)}
	if mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	owner, _ := info.Sys().(*syscall.Stat_t)
	if owner != nil {
		h.Uid, h.Gid = int(owner.Uid), int(owner.Gid)
	}
	switch {
	case mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		a.put(h, nil)
	case mode&fs.ModeSymlink != 0:
		if h.Linkname, a.err = root.Readlink(name); a.err == nil {
			h.Typeflag = tar.TypeSymlink
			a.put(h, nil)
		}
	case mode.IsRegular():
		if owner != nil && owner.Nlink > 1 {
			key := [2]uint64{uint64(owner.Dev), owner.Ino}
			if other, seen := first[key]; seen {
				h.Typeflag, h.Linkname = tar.TypeLink, other
				a.put(h, nil)
				return
			}
			first[key] = name
		}
		a.content(root, name, h)
	}
}

func (a *archive) content(root *os.Root, name string, h *tar.Header) {
	file, err := root.Open(name)
	if err != nil {
		a.err = err
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		a.err = err
		return
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	a.put(h, io.LimitReader(file, h.Size))
}
