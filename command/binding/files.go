package binding

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
	"github.com/toolward/toolward/shell/profiles"
)

// operand is a file among the arguments that the program loads or runs.
type operand struct {
	index int // in argv; -1 if no word is the file by itself
	path  string
}

// loadsCode are programs that run what a file among their arguments holds. Which of several words that is depends on
// options of many versions, so every word that is a file is bound. Extra bindings only refuse more.
var loadsCode = strings.Fields(`ash bash dash ksh sh zsh fish csh tcsh pwsh powershell busybox toybox python pypy node nodejs bun
	deno ruby irb perl php lua luajit awk gawk mawk nawk sed gsed osascript tsx ts-node jiti vite-node make gmake ninja just rake
	expect tclsh wish julia rscript r ghci swipl erl elixir iex gdb lldb java go cargo dotnet`)

// loadedFiles lists the files that a command loads or runs, as its arguments name them. A file that appears later adds a
// binding, which is a difference too.
func loadedFiles(argv []string, dir string) []operand {
	u := shell.Unwrap(argv)
	if u.Program >= len(argv) {
		return nil
	}
	name := shell.ProgramName(argv[u.Program])
	plain := strings.TrimRight(name, "-.0123456789")
	effects, known := profiles.Effects(name, argv[u.Program+1:])
	if !known || u.Blocked != "" || slices.Contains(loadsCode, name) || slices.Contains(loadsCode, plain) {
		return everyFile(argv, dir)
	}
	var files []operand
	for _, e := range effects {
		at := below(dir, e.Dir)
		switch e.Kind {
		case shell.Enters, shell.Evaluates, shell.Project:
			files = addFile(files, argv, e.Path, at)
		case shell.Runs:
			if len(e.Argv) > 0 && strings.Contains(e.Argv[0], "/") {
				files = addFile(files, argv, e.Argv[0], at)
			}
			for _, inner := range loadedFiles(e.Argv, at) {
				inner.index = -1
				files = append(files, inner)
			}
		}
	}
	return files
}

// everyFile lists all arguments that are files: whole words, values of "--option=value" and of "-Ovalue".
func everyFile(argv []string, dir string) (files []operand) {
	for i, word := range argv {
		if i == 0 {
			continue
		}
		candidates := []string{word}
		if _, value, ok := strings.Cut(word, "="); ok {
			candidates = append(candidates, value)
		}
		if strings.HasPrefix(word, "-") && len(word) > 2 {
			candidates = append(candidates, word[2:])
		}
		for _, candidate := range candidates {
			if path, ok := regularFile(candidate, dir); ok {
				files = append(files, operand{i, path})
			}
		}
	}
	return files
}

func addFile(files []operand, argv []string, name, dir string) []operand {
	if path, ok := regularFile(name, dir); ok {
		return append(files, operand{slices.Index(argv, name), path})
	}
	return files
}

// regularFile reports whether a name is, behind its links, a regular file.
func regularFile(name, dir string) (path string, ok bool) {
	if name == "" || strings.ContainsRune(name, 0) || dir == "" && !filepath.IsAbs(name) {
		return "", false
	}
	path = below(dir, name)
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular()
}

func below(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return cmp.Or(name, dir)
	}
	return filepath.Join(dir, name)
}
