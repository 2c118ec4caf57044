// Package live finds the real programs that live tests run: MCP clients, agents, browsers, container engines.
//
// A live test names each part it needs with [Need]. Without the part it is skipped, and the test log says what is
// missing and how to get it. Under TOOLWARD_LIVE=all nothing may be skipped: what can be installed is installed, and
// what is still missing is a failure.
package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A Part is something outside this repository that a live test needs.
type Part interface {
	// find returns where the part is, or an error that says what is missing and how to get it.
	find() (string, error)
}

// Need returns where a part is: the path of a program, or the directory of a package. Without the part it ends the
// test, as skipped or, under TOOLWARD_LIVE=all, as failed.
func Need(t testing.TB, part Part) string {
	t.Helper()
	where, err := part.find()
	switch {
	case err == nil:
		return where
	case All():
		t.Fatalf("TOOLWARD_LIVE=all, but %v", err)
	default:
		t.Skipf("not run: %v", err)
	}
	return ""
}

// All reports whether live tests must all run.
func All() bool { return os.Getenv("TOOLWARD_LIVE") == "all" }

// Count is how often a test does something that could be done for ever: as often as a variable of the environment says,
// else some times, or all under TOOLWARD_LIVE=all.
func Count(t testing.TB, variable string, some, all int) int {
	t.Helper()
	text := os.Getenv(variable)
	switch {
	case text == "" && All():
		return all
	case text == "":
		return some
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number", variable, text)
	}
	return n
}

// Swaps is how often a test exchanges something between its check and its use. TOOLWARD_SWAPS sets it; 100,000 is the
// full count ("make races").
func Swaps(t testing.TB, some, all int) int {
	t.Helper()
	return Count(t, "TOOLWARD_SWAPS", some, all)
}

// Program is a program on the PATH, by any of its names.
func Program(names ...string) Part { return program(names) }

type program []string

func (p program) find() (string, error) {
	for _, name := range p {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no %s on the PATH", strings.Join(p, " or "))
}

// Package is an npm package of exactly this version, kept with its dependencies in a directory of its own under
// [CacheDir]. Its install scripts never run.
func Package(directory, name, version string) Part {
	return npmPackage{directory: directory, name: name, version: version}
}

// Project is like [Package], for a package that installs only with a manifest of its own: files are written into the
// directory before, by their paths in it, and npm is told these flags.
func Project(directory, name, version string, files map[string]string, flags ...string) Part {
	return npmPackage{directory, name, version, files, flags}
}

type npmPackage struct {
	directory, name, version string
	files                    map[string]string
	flags                    []string
}

func (p npmPackage) find() (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, p.directory)
	where := filepath.Join(root, "node_modules", filepath.FromSlash(p.name))
	have, err := p.isInstalled(root, where)
	switch {
	case err != nil:
		return "", err
	case have:
		return where, nil
	case !All():
		return "", fmt.Errorf("npm package %s@%s is not in %s (TOOLWARD_LIVE=all installs it)", p.name, p.version, root)
	}
	if err := p.install(root, where); err != nil {
		return "", err
	}
	return where, nil
}

// isInstalled reports whether the package is there whole, in its version and from these files.
func (p npmPackage) isInstalled(root, where string) (bool, error) {
	version, err := installedVersion(where)
	if err != nil || version != p.version || p.files == nil {
		return err == nil && version == p.version, err
	}
	from, err := os.ReadFile(filepath.Join(root, "installed"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return string(from) == p.recipe(), err
}

// recipe names everything that the package is installed from.
func (p npmPackage) recipe() string {
	raw, _ := json.Marshal([]any{p.files, p.flags}) // texts can always be written
	return string(raw)
}

// installedVersion reads the version of an installed package; "" if there is none.
func installedVersion(where string) (string, error) {
	data, err := os.ReadFile(filepath.Join(where, "package.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for an npm package: %w", err)
	}
	var manifest struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return "", fmt.Errorf("read %s/package.json: %w", where, err)
	}
	return manifest.Version, nil
}

// install puts the package into root. Test programs run side by side, so only one of them installs at a time.
func (p npmPackage) install(root, where string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("npm package %s@%s cannot be installed: there is no npm on the PATH", p.name, p.version)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("install %s: %w", p.name, err)
	}
	unlock, err := lock(root + ".lock")
	if err != nil {
		return fmt.Errorf("install %s: %w", p.name, err)
	}
	defer unlock()
	if have, err := p.isInstalled(root, where); err == nil && have {
		return nil // another test program was faster
	}
	arguments := []string{"install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", root}
	if p.files == nil {
		arguments = append(arguments, "--save-exact", p.name+"@"+p.version)
	}
	for name, text := range p.files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return fmt.Errorf("install %s: %w", p.name, err)
		}
	}
	command := exec.Command(npm, append(arguments, p.flags...)...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("npm package %s@%s cannot be installed: %w\n%s", p.name, p.version, err, out)
	}
	if p.files == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(root, "installed"), []byte(p.recipe()), 0o644)
}

// lock holds a file until the returned function is called; the system lets go of it if the program dies.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

// CacheDir is where installed parts are kept: $XDG_CACHE_HOME/toolward-live, or ~/.cache/toolward-live.
func CacheDir() (string, error) {
	base := os.Getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for live parts: %w", err)
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "toolward-live"), nil
}
