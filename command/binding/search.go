package binding

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/place"
)

// operand is a file among the arguments that the program loads or runs.
type operand struct {
	index int // in argv; -1 if no word is the file by itself
	path  string
	size  int64
}

// Bounds of what is looked for and held for one command.
const (
	mostLooks  = 3000 // names that are looked up
	mostHeld   = 200  // files
	mostBases  = 6    // directories that relative names may be meant in
	mostListed = 64   // files of a directory that is named
	mostRead   = 4096 // entries of a directory
	mostLeft   = 4    // sentences about what cannot be held
)

// search looks for the files that a command may load.
type search struct {
	bases  []string
	files  []operand
	left   []string // what cannot be held, for people
	looks  int
	listed map[string]bool
}

func newSearch(dir string) *search { return &search{bases: []string{dir}, listed: map[string]bool{}} }

// leave says that something cannot be held.
func (s *search) leave(what string) {
	if !slices.Contains(s.left, what) && len(s.left) < mostLeft {
		s.left = append(s.left, what)
	}
}

// base adds a directory that relative names may be meant in: make -C sub -f x.mk.
func (s *search) base(dir string) {
	if !slices.Contains(s.bases, dir) {
		if len(s.bases) == mostBases {
			s.leave("files below more directories than are looked at")
			return
		}
		s.bases = append(s.bases, dir)
	}
}

// isSeparator parts words into what may be names: a=b, a:b,c, @file, "source x.sql;", $(<x).
func isSeparator(r rune) bool { return r <= ' ' || strings.ContainsRune(`=:;,@|&()<>{}"'`+"`", r) }

func pieces(word string) []string { return strings.FieldsFunc(word, isSeparator) }

// name looks for files by a word: by the whole of it, behind its first "=" and "@", and behind an option of one letter.
func (s *search) name(index int, word string) {
	s.file(index, word)
	if _, value, ok := strings.Cut(word, "="); ok {
		s.file(index, value)
		s.file(index, strings.TrimPrefix(value, "@"))
	}
	s.file(index, strings.TrimPrefix(word, "@"))
	s.file(index, strings.TrimPrefix(word, "//")) // file://x
	if strings.HasPrefix(word, "-") && len(word) > 2 {
		s.file(index, word[2:])
	}
}

// file adds the files of a name, in whichever directory it may be meant. A directory's own files are part of it.
func (s *search) file(index int, name string) (found bool) {
	if name == "" || name == "-" || len(name) > mostRead {
		return false
	}
	bases := s.bases // what is found now is none for this name
	if filepath.IsAbs(name) {
		bases = bases[:1]
	}
	for _, dir := range bases {
		path, there := s.add(index, name, dir)
		if found = found || path != ""; there {
			s.base(path)
			s.list(path)
		}
	}
	return found
}

// add adds a name in one directory. path is where something was found, and isDir says that it is a directory.
func (s *search) add(index int, name, dir string) (path string, isDir bool) {
	if name == "" || strings.ContainsRune(name, 0) || dir == "" && !filepath.IsAbs(name) {
		return "", false
	}
	if s.looks++; s.looks > mostLooks {
		s.leave("names beyond those that are looked up")
		return "", false
	}
	path = below(dir, name)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", false
	case info.IsDir():
		return path, true
	case info.Mode().IsRegular():
		s.hold(operand{index, path, info.Size()})
	case path != os.DevNull:
		s.leave("what " + display.Words(path) + " gives")
	}
	return path, false
}

// hold keeps a file. Of what the system makes anew at each look nothing can be held.
func (s *search) hold(o operand) {
	for _, made := range []string{"/proc", "/sys", "/dev"} {
		if place.Within(o.path, made) {
			s.leave("what " + display.Words(o.path) + " says")
			return
		}
	}
	switch {
	case slices.ContainsFunc(s.files, func(f operand) bool { return f.path == o.path }):
	case len(s.files) == mostHeld:
		s.leave(fmt.Sprintf("files beyond the first %d", mostHeld))
	default:
		s.files = append(s.files, o)
	}
}

// grows are files beside code that change by themselves.
var grows = []string{".log", ".out", ".pid", ".lock", ".tmp", ".swp", ".db", ".db-wal", ".db-shm", ".sqlite", ".sqlite3"}

// list holds the files that lie in a directory that was named: kubectl apply -f deploy/. What lies deeper is left, and so is the
// whole of a directory that the command itself works in, which is the project.
func (s *search) list(dir string) {
	if s.listed[dir] {
		return
	}
	s.listed[dir] = true
	if place.Within(s.bases[0], dir) {
		s.leave("what lies in " + display.Words(dir))
		return
	}
	names, all := entries(dir)
	held := 0
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		switch {
		case err != nil || slices.Contains(grows, filepath.Ext(name)):
		case !info.Mode().IsRegular() || held == mostListed:
			all = false
		default:
			held++
			s.hold(operand{-1, path, info.Size()})
		}
	}
	if !all {
		s.leave("all that lies in " + display.Words(dir))
	}
}

// entries lists a directory in order; not all of a large one.
func entries(dir string) (names []string, all bool) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	defer d.Close()
	names, err = d.Readdirnames(mostRead)
	slices.Sort(names)
	return names, err == nil && len(names) < mostRead
}

// obeyedIn holds the files of a directory that tools obey unnamed: its Makefile, its package.json.
func (s *search) obeyedIn(dir string) {
	s.leave("the project's code, which it finds by itself")
	if s.looks++; s.looks > mostLooks || dir == "" {
		return
	}
	names, _ := entries(dir)
	for _, name := range names {
		if !place.Obeyed(name) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			s.hold(operand{-1, path, info.Size()})
		}
	}
}

// implied are what programs put behind a name that is no file: node deploy, ruby -r./x, lua -l x, java Main.
var implied = strings.Fields(".js .mjs .cjs .ts .mts .cts .tsx .jsx .json .node .py .rb .lua .pl .php .sh .class .mk .sql .R .yml .yaml .toml")

// guess looks for the names that programs make of words: with an ending, and "a.b" as a/b, which is a module.
func (s *search) guess(words []string) {
	for _, word := range words {
		if strings.HasPrefix(word, "-") {
			word = word[min(2, len(word)):]
		}
		if word == "" || len(word) > mostRead || word[0] == '-' || strings.ContainsAny(word, " \n") {
			continue
		}
		names := []string{word}
		if module := strings.ReplaceAll(word, ".", "/"); module != word && !strings.Contains(word, "/") {
			names = append(names, module)
			s.file(-1, module) // its directory
		}
		for _, name := range names {
			for _, ending := range implied {
				s.file(-1, name+ending)
			}
		}
	}
}

func below(dir, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return cmp.Or(name, dir)
	}
	return filepath.Join(dir, name)
}
