package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
)

// canServe says why this program cannot be a gateway with a user of its own.
func canServe() error {
	if err := needRoot(); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("a gateway with a user of its own needs Linux, not %s", runtime.GOOS)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "CGO_ENABLED" && setting.Value == "1" {
				return errors.New("this program was built with C libraries, so that the gateway's rights could not be kept from what it starts: build it with CGO_ENABLED=0")
			}
		}
	}
	return nil
}

// systemPath is where root looks for programs of the system. The search path that sudo was called with may be the person's, and so an agent's.
const systemPath = "/usr/sbin:/usr/bin:/sbin:/bin"

// runs runs a program of the system.
func runs(ctx context.Context, name string, args ...string) error {
	path := ""
	for dir := range strings.SplitSeq(systemPath, ":") {
		if at := filepath.Join(dir, name); path == "" && exists(at) {
			path = at
		}
	}
	if path == "" {
		return fmt.Errorf("there is no %s in %s", name, systemPath)
	}
	command := exec.CommandContext(ctx, path, args...)
	command.Env = []string{"PATH=" + systemPath, "LC_ALL=C.UTF-8"}
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// ownerOf is the user whom a file belongs to; -1 if that is unknown.
func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// notRoots says what lets others than root change a file or directory; "" if nothing does.
func notRoots(info fs.FileInfo) string {
	switch {
	case ownerOf(info) != 0:
		return "does not belong to root"
	case info.Mode().Perm()&0o022 != 0:
		return "can be written by others than root"
	}
	return ""
}

// rootsWay makes a directory with those above it, and makes sure that only root can change any of them: whoever else could would
// exchange what lies in it.
func rootsWay(dir string) error {
	if dir != "/" {
		if err := rootsWay(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err == nil {
		return os.Chmod(dir, 0o755)
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	what := notRoots(info)
	if !info.IsDir() {
		what = "is no directory, or a link"
	}
	if what != "" {
		return fmt.Errorf("%s %s: mend that first", dir, what)
	}
	return nil
}

// replaceRoots writes a file of root's, whole or not at all.
func replaceRoots(path string, data []byte, mode fs.FileMode) error {
	if err := rootsWay(filepath.Dir(path)); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
