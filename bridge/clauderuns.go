package bridge

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A skill and a sub-agent of Claude Code are text files with settings at their head, and some of these settings have the client start
// programs that no hook sees. The head is YAML, which has many ways to write one name: what is not written in the plain way counts as
// bringing programs.

// Bounds for the files that are looked at for one call.
const (
	maxDefinitions     = 2000
	maxDefinitionDepth = 8
	maxDefinition      = 1 << 20
)

// definitions are the files that may define what a call names.
type definitions struct {
	name  string   // as the call has it
	dirs  []string // below .claude
	runs  []string // settings that start programs
	looks int
}

// bring reports whether a definition of this name, wherever the client may find one, starts programs without asking anybody.
func (l *factsFinder) bring(workDir string, d definitions) bool {
	roots, whole := l.claudeDirs(workDir)
	found := false
	for _, root := range roots {
		for _, dir := range d.dirs {
			runs, here := d.inside(filepath.Join(root, dir), 0)
			if runs {
				return true
			}
			found = found || here
		}
	}
	return !found && !whole // it may lie where nobody looked
}

// claudeDirs are the directories from which the client takes definitions: its own, those of every directory above the one it works in,
// and, once it works there, those of every directory below. whole is false if there are more names below than are looked at.
func (l *factsFinder) claudeDirs(workDir string) (dirs []string, whole bool) {
	dirs = []string{l.config}
	for _, start := range []string{l.project, l.workspace, workDir} {
		for dir := filepath.Clean(start); ; dir = filepath.Dir(dir) {
			dirs = append(dirs, filepath.Join(dir, ".claude"))
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	looked := 0
	pending := []string{l.workspace}
	for ; len(pending) > 0 && looked < maxSearched; pending = pending[1:] {
		entries, err := os.ReadDir(pending[0])
		if err != nil {
			continue // what cannot be listed defines nothing for the same account
		}
		looked += len(entries) + 1
		for _, e := range entries {
			p := filepath.Join(pending[0], e.Name())
			switch {
			case strings.EqualFold(e.Name(), ".claude"):
				dirs = append(dirs, p)
			case e.IsDir() && e.Name() != ".git":
				pending = append(pending, p)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), len(pending) == 0
}

// inside looks at the definitions in a directory, through links as the client does.
func (d *definitions) inside(dir string, depth int) (runs, found bool) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return false, false
	}
	if err != nil || depth > maxDefinitionDepth {
		return true, true
	}
	for _, e := range entries {
		if d.looks++; d.looks > maxDefinitions {
			return true, true
		}
		p := filepath.Join(dir, e.Name())
		info, err := os.Stat(p)
		switch {
		case os.IsNotExist(err):
			continue
		case err != nil:
			return true, true
		case info.IsDir():
			runsBelow, foundBelow := d.inside(p, depth+1)
			runs, found = runs || runsBelow, found || foundBelow
		case strings.EqualFold(filepath.Ext(p), ".md"):
			runsHere, here := d.file(p, info)
			runs, found = runs || runsHere, found || here
		}
		if runs {
			return true, true
		}
	}
	return false, found
}

// file reports whether a file may be the one that is named, and whether it starts programs.
func (d *definitions) file(path string, info fs.FileInfo) (runs, named bool) {
	data, ok := readDefinition(path, info)
	if !ok {
		return true, true
	}
	h := headOf(data)
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	own := d.name[strings.LastIndexByte(d.name, ':')+1:]
	named = !h.plain || strings.EqualFold(base, own) || strings.EqualFold(filepath.Base(filepath.Dir(path)), own) ||
		strings.Contains(strings.ToLower(h.values["name"]), strings.ToLower(own))
	if !named {
		return false, false
	}
	for _, key := range d.runs {
		_, has := h.values[strings.ToLower(key)]
		if has || bytes.Contains(data, []byte(key+":")) {
			return true, true
		}
	}
	return !h.plain, true
}

func readDefinition(path string, info fs.FileInfo) ([]byte, bool) {
	if !info.Mode().IsRegular() || info.Size() > maxDefinition {
		return nil, false // a pipe would have the hook wait for ever
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxDefinition+1))
	return data, err == nil && len(data) <= maxDefinition
}

// head is what stands between the lines of dashes at the top of a definition.
type head struct {
	plain  bool // every setting is written as "name: value"
	values map[string]string
}

var (
	plainSetting = regexp.MustCompile(`^([A-Za-z0-9_-]+):(?:[ \t](.*))?$`)
	lineBreaks   = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n") // YAML's
)

func headOf(data []byte) head {
	h := head{plain: true, values: map[string]string{}}
	text := strings.TrimLeft(lineBreaks.Replace(string(data)), "\ufeff \t\n")
	rest, has := strings.CutPrefix(text, "---")
	if !has {
		return h
	}
	for line := range strings.SplitSeq(rest, "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "---" {
			return h
		}
		switch m := plainSetting.FindStringSubmatch(line); {
		case line == "", strings.HasPrefix(line, " "), strings.HasPrefix(line, "#"), strings.HasPrefix(line, "- "):
			// part of the setting above it
		case m != nil:
			h.values[strings.ToLower(m[1])] = m[2]
		default:
			h.plain = false
		}
	}
	return h
}
