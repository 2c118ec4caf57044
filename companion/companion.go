// Package companion finds the small programs that belong to this one: toolward-hook, toolward-run, toolward-inside. What an
// administrator has installed comes first. Otherwise they are in this order: embedded in the running program (release builds),
// beside it, built once into the cache where there is a Go toolchain and the source, else a subcommand of the big program.
package companion

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// prefix is what the names of all small programs begin with; the rest is the subcommand of the big one.
const prefix = "toolward-"

// ErrTemporary says that only the running program could stand in, and it will be gone: "go run" and "go test" put it
// into a temporary directory.
var ErrTemporary = errors.New("this program is in a temporary directory and will be gone")

// Program is how a small program is started.
type Program struct {
	Path string   // absolute
	Args []string // before its own: the subcommand, where the big program stands in
}

// Find finds a small program by its name, which begins with "toolward-".
func Find(ctx context.Context, name string) (Program, error) {
	if program, ok, err := Installed(name); err != nil || ok {
		return program, err
	}
	return Own(ctx, name)
}

// Own finds the small program that came with this one, whatever an administrator has installed.
func Own(ctx context.Context, name string) (Program, error) {
	self, err := os.Executable()
	if err != nil {
		return Program{}, fmt.Errorf("find %s: %w", name, err)
	}
	if content, err := embedded.ReadFile("programs/" + name); err == nil {
		return unpack(name, content)
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return Program{Path: beside}, nil
	}
	built, err := build(ctx, name)
	if err == nil {
		return Program{Path: built}, nil
	}
	// A test is no big program that could stand in.
	if Temporary(self) || strings.HasSuffix(self, ".test") {
		return Program{}, fmt.Errorf("find %s: %w (building it: %w)", name, ErrTemporary, err)
	}
	return Program{Path: self, Args: []string{strings.TrimPrefix(name, prefix)}}, nil
}

// Temporary reports whether a program is in a directory that is not kept.
func Temporary(path string) bool {
	relative, err := filepath.Rel(os.TempDir(), path)
	below := err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator))
	return below || strings.Contains(path, string(filepath.Separator)+"go-build")
}

// build builds a small program from the source that this one was built from, if it is still there. What is up to date
// is not built again.
func build(ctx context.Context, name string) (string, error) {
	_, source, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(source) {
		return "", errors.New("the source is not known")
	}
	directory := filepath.Join(filepath.Dir(source), "..", "cmd", name)
	if _, err := os.Stat(directory); err != nil {
		return "", err
	}
	target, unlock, err := lockTarget(name, []byte(directory))
	if err != nil {
		return "", err
	}
	defer unlock()
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", target, ".")
	command.Dir = directory
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	// The compilers that it has started end with it: they would go on in directories that are nobody's any more.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return target, nil
}

// unpack writes an embedded program into the cache, where it can be started and mounted.
func unpack(name string, content []byte) (Program, error) {
	target, unlock, err := lockTarget(name, []byte("release"))
	if err != nil {
		return Program{}, err
	}
	defer unlock()
	if there, err := os.ReadFile(target); err == nil && bytes.Equal(there, content) {
		return Program{Path: target}, nil
	}
	temporary, err := os.CreateTemp(filepath.Dir(target), name+".*")
	if err != nil {
		return Program{}, fmt.Errorf("unpack %s: %w", name, err)
	}
	defer os.Remove(temporary.Name()) // renamed, or an error that is told
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(0o755), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), target)
	}
	if err != nil {
		return Program{}, fmt.Errorf("unpack %s: %w", name, err)
	}
	return Program{Path: target}, nil
}

// Directory is where small programs are put that are not beside the big one. Whoever can write there can take their
// place.
func Directory() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "toolward", "bin"), nil
}

// lockTarget is where a program stands in the cache: apart from those of other sources, so that two clones do not start
// each other's. Two processes that make it at the same time take turns.
func lockTarget(name string, source []byte) (target string, unlock func(), err error) {
	cache, err := Directory()
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(source)
	directory := filepath.Join(cache, hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(directory, "."+name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	for {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = lock.Close() // nothing was written
		return "", nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return filepath.Join(directory, name), func() { _ = lock.Close() }, nil // nothing was written
}
