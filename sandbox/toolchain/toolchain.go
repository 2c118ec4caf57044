// Package toolchain finds the toolchains of a person's machine: which directories of the home and of /opt hold the programs that the
// person works with, and which files in them hold credentials.
//
// What it finds is shown to sandboxes, read-only. An agent that can write to the home must not decide what that is: a directory
// that is, or lies below, a symbolic link is refused, because with ~/.nvm leading to ~/.ssh the next sandbox would show the keys.
package toolchain

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/place"
)

// Dir is a directory of a toolchain.
type Dir struct {
	Tool string `json:"tool"` // of the table; "" where somebody has named the directory
	Path string `json:"path"` // real
}

// Refusal is a directory that is not shown, and why.
type Refusal struct {
	Dir
	Why string `json:"why"`
}

// Found is what a machine has.
type Found struct {
	Dirs    []Dir             `json:"dirs"`
	Path    []string          `json:"path"` // the person's search path, of directories that lead nowhere else
	Env     map[string]string `json:"env,omitempty"`
	Refused []Refusal         `json:"refused,omitempty"`
	// Caches are directories with what package managers have fetched and compilers have built.
	Caches []Dir `json:"caches,omitempty"`
	// Withheld are names of variables that are not told inside, because they log in somewhere.
	Withheld []string `json:"withheld,omitempty"`
}

// Machine is where to look.
type Machine struct {
	Home    string // real
	Path    string // the search path
	Getenv  func(string) string
	Environ []string // all of the environment, NAME=value
}

// Detect looks for every toolchain of the table.
func Detect(m Machine) Found {
	found := Found{Dirs: []Dir{}, Path: []string{}, Env: map[string]string{}}
	m.Getenv = withGoEnv(m.Home, m.Getenv)
	for i := range kinds {
		k := &kinds[i]
		dirs := k.dirs
		if k.name == optional {
			dirs = m.optional()
		}
		shown := false
		for _, written := range dirs {
			if dir := m.expand(written); dir != "" && found.take(Dir{k.name, dir}, m.Home) {
				shown = true
			}
		}
		for _, name := range k.vars {
			if value := m.Getenv(name); shown && value != "" && found.has(path.Clean(value)) {
				found.Env[name] = path.Clean(value)
			}
		}
	}
	for _, dir := range filepath.SplitList(m.Path) {
		real, err := filepath.EvalSymlinks(dir)
		if !path.IsAbs(dir) || err != nil { // a relative one is whatever directory a command is in
			continue
		}
		if dir = path.Clean(dir); !found.has(dir) && found.has(real) {
			dir = real // ~/.nix-profile/bin: what it leads to is shown, the link is not
		}
		if !slices.Contains(found.Path, dir) {
			found.Path = append(found.Path, dir)
		}
	}
	found.caches(&m)
	found.settings(&m, m.Environ)
	return found
}

// expand is the directory that a row names; "" where the variable says nothing.
func (m *Machine) expand(written string) string {
	head, rest, _ := strings.Cut(written, "/")
	switch {
	case head == "~":
		return path.Join(m.Home, rest)
	case strings.HasPrefix(head, "$"):
		value := m.Getenv(head[1:])
		if !path.IsAbs(value) {
			return ""
		}
		return path.Join(value, rest)
	}
	return written
}

// optional are the directories below /opt that have something on the search path.
func (m *Machine) optional() (dirs []string) {
	for _, dir := range filepath.SplitList(m.Path) {
		if rest, ok := strings.CutPrefix(path.Clean(dir), "/opt/"); ok {
			top, _, _ := strings.Cut(rest, "/")
			if dir := "/opt/" + top; !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// take adds a directory, if it is there and may be shown.
func (f *Found) take(d Dir, home string) bool {
	if f.has(d.Path) {
		return true
	}
	if place.Within(d.Path, "/usr") {
		return false // every sandbox has it, or its image's own
	}
	info, err := os.Lstat(d.Path)
	if err != nil {
		return false
	}
	why := Check(d.Path)
	switch {
	case why != "":
	case !info.IsDir():
		why = "it is no directory"
	case !slices.ContainsFunc([]string{"/opt", "/nix/store", "/home/linuxbrew/.linuxbrew"}, func(root string) bool { return place.Within(d.Path, root) }) &&
		(!place.Within(d.Path, home) || d.Path == home):
		why = "it lies neither in the home nor in /opt"
	}
	if why != "" {
		if !slices.ContainsFunc(f.Refused, func(r Refusal) bool { return r.Path == d.Path }) {
			f.Refused = append(f.Refused, Refusal{d, why})
		}
		return false
	}
	f.Dirs = append(f.Dirs, d)
	return true
}

// Check says why a directory must not be shown: "" is no reason. It is asked when toolchains are looked for, and what was found
// is opened without following links each time it is shown.
func Check(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	switch {
	case err != nil:
		return "where it leads cannot be told"
	case real != dir:
		return "it is a symbolic link, or lies below one, and leads to " + real
	}
	return ""
}

// has reports whether a directory is shown.
func (f *Found) has(dir string) bool {
	return slices.ContainsFunc(f.Dirs, func(d Dir) bool { return place.Within(dir, d.Path) })
}

// Hidden are the files and directories with credentials in a directory that is shown, as they are now. A symbolic link hides
// nothing: what it leads to is inside only where that is shown, by its own name.
func (d Dir) Hidden() (hidden []string) {
	patterns := slices.Clone(credentials)
	for i := range kinds {
		if kinds[i].name == d.Tool {
			patterns = append(patterns, kinds[i].hidden...)
		}
	}
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(filepath.Join(escaped(d.Path), pattern)) // the patterns are good
		for _, match := range matches {
			if info, err := os.Lstat(match); err == nil && (info.Mode().IsRegular() || info.IsDir()) && Check(match) == "" && !slices.Contains(hidden, match) {
				hidden = append(hidden, match)
			}
		}
	}
	slices.Sort(hidden)
	return hidden
}

// escaped is a path as a pattern that matches nothing else.
func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}
