package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Bounds of expansion.
const (
	maxBraceWords = 1000
	maxWords      = 4096 // of one command: nobody reads more
	maxMatches    = 10000
	maxPattern    = 4096    // bytes of a pattern: no path is longer
	maxLevels     = 64      // directories in one pattern
	maxBraces     = 24      // opening braces in one word
	maxBytes      = 1 << 20 // of all words together, and of those of one
)

// Surroundings are what words mean where a command would run.
type Surroundings struct {
	Dir     string                                  // working directory, absolute
	Getenv  func(name string) (string, bool)        // the environment that the command would get
	ReadDir func(dir string) ([]fs.DirEntry, error) // of absolute directories; never writes
}

// Finding is why people must look at an expansion.
type Finding string

// The findings of expansion.
const (
	WordSplitting Finding = "word-splitting" // an unquoted parameter that a shell would split or match against files
	GlobOption    Finding = "glob-option"    // a file whose name a program would take for an option
	TooManyWords  Finding = "too-many-words" // more words than anybody reads
	OddPattern    Finding = "odd-pattern"    // a pattern that shells match in different ways
)

// Expanded is a segment as it would run.
type Expanded struct {
	Argv     []string
	Origin   []int // for every word of Argv, the word of the segment that it comes from
	Findings []Finding
}

// Expand makes of the words of a segment what a shell would, once: what it returns is what is judged, shown, bound and
// run. A pattern that matches nothing stays as it is written.
func (s *Segment) Expand(in Surroundings) (Expanded, error) {
	var out Expanded
	options := true // words may still be taken for options
	size, many := 0, false
	for i := range s.Words {
		w := &s.Words[i]
		if many || len(out.Argv) > maxWords || size > maxBytes {
			// One word that stands for too many is enough to ask: the others do not take time as well.
			out.find(TooManyWords)
			out.Argv, out.Origin = append(out.Argv, w.Text), append(out.Origin, i)
			continue
		}
		words, finding, err := w.expand(in, i == 0)
		if err != nil {
			return Expanded{}, fmt.Errorf("expand %s: %w", w.Source, err)
		}
		if finding != "" {
			out.find(finding)
			many = many || finding == TooManyWords
		}
		matched := len(words) != 1 || words[0] != w.Text // "--include=*.ts" that fits no file is what is written
		if w.Glob && matched && options && slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") }) {
			// A stranger can leave a file named -exec, and "rm *" reads it as an option.
			out.find(GlobOption)
		}
		options = options && w.Text != "--"
		for _, word := range words {
			size += len(word)
			out.Argv = append(out.Argv, word)
			out.Origin = append(out.Origin, i)
		}
	}
	return out, nil
}

func (x *Expanded) find(f Finding) {
	if !slices.Contains(x.Findings, f) {
		x.Findings = append(x.Findings, f)
	}
}

// expand makes words of one word.
func (w *Word) expand(in Surroundings, program bool) ([]string, Finding, error) {
	if !w.Expands() {
		return []string{w.Text}, "", nil
	}
	var dots hidden
	var failed error // the library takes what cannot be read for what is there
	config := &expand.Config{
		Env: environment{in},
		ReadDir2: func(dir string) ([]fs.DirEntry, error) {
			entries, err := boundedDir(in, dir)
			if err != nil && !answers(err) {
				failed = err
			}
			if dots == noneHidden {
				entries = visible(entries)
			}
			return entries, err
		},
	}
	if program {
		config.ReadDir2 = nil // the program is never matched against files
	}
	var finding Finding
	if w.splits(in) {
		finding = WordSplitting
	}
	if w.Glob && (len(w.Source) > maxPattern || strings.Count(w.Source, "/") > maxLevels) || w.Brace && strings.Count(w.Source, "{") > maxBraces {
		return []string{w.Text}, TooManyWords, nil
	}
	var words []string
	braced, size := 0, 0
	for part, err := range w.braced(config) {
		if err != nil {
			return []string{w.Text}, TooManyWords, nil
		}
		if braced++; braced > maxBraceWords {
			return []string{w.Text}, TooManyWords, nil
		}
		if dots = hiddenIn(part, in); dots == someHidden || w.Glob && hasLiteralPart(part, in) {
			finding = OddPattern
		}
		fields, err := expand.Fields(config, part)
		if failed != nil {
			err = failed
		}
		if errors.Is(err, errTooMany) || len(words)+len(fields) > maxMatches {
			return []string{w.Text}, TooManyWords, nil
		}
		if err != nil {
			return nil, "", err
		}
		if w.Glob && slashes(part, in) && slices.ContainsFunc(fields, func(f string) bool { return !strings.Contains(f, "//") }) {
			finding = OddPattern // a shell keeps both slashes
		}
		if w.Brace && len(fields) == 1 && fields[0] == "" && !isQuoted(part) {
			continue // "{,a}" is one word: a shell drops what is empty and not quoted
		}
		for _, field := range fields {
			if size += len(field); size > maxBytes {
				return []string{w.Text}, TooManyWords, nil
			}
		}
		slices.Sort(fields)
		words = append(words, fields...)
	}
	return words, finding, nil
}

// braced gives the words that braces make of the word.
func (w *Word) braced(config *expand.Config) iter.Seq2[*syntax.Word, error] {
	if !w.Brace {
		return func(yield func(*syntax.Word, error) bool) { yield(w.node, nil) }
	}
	node := &syntax.Word{Parts: slices.Clone(w.node.Parts)}
	syntax.SplitBraces(node)
	return expand.BracesSeq(config, node)
}

// isQuoted reports whether any part of a word is quoted: such a word stays even if it is empty.
func isQuoted(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(part syntax.WordPart) bool {
		switch part.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		}
		return false
	})
}

var errTooMany = errors.New("too many files")

// answers reports whether an error says what is there, and not that nobody looked.
func answers(err error) bool {
	var answer *fs.PathError
	return errors.As(err, &answer) || errors.Is(err, fs.ErrNotExist)
}

// boundedDir reads a directory for patterns. The library asks in this way, too, whether a file is there: for a shell, a
// link is there that leads nowhere.
func boundedDir(in Surroundings, dir string) ([]fs.DirEntry, error) {
	entries, err := in.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		beside, _ := in.ReadDir(path.Dir(dir))
		if slices.ContainsFunc(beside, func(e fs.DirEntry) bool { return e.Name() == path.Base(dir) }) {
			err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
		}
	}
	if len(entries) > maxMatches {
		return nil, errTooMany
	}
	return entries, err
}

// splits reports whether a parameter outside quotes has a value that a shell would split into words or match against
// files.
func (w *Word) splits(in Surroundings) bool {
	for _, part := range w.node.Parts {
		p, ok := part.(*syntax.ParamExp)
		if !ok {
			continue
		}
		if value, _ := (environment{in}).value(p.Param.Value); strings.ContainsAny(value, " \t\n*?[\\") {
			return true
		}
	}
	return false
}

// environment gives the library the variables of the command, and its directory as PWD.
type environment struct{ in Surroundings }

func (e environment) Get(name string) expand.Variable {
	value, set := e.in.Getenv(name)
	switch name {
	case "PWD":
		value, set = e.in.Dir, true
	case "IFS":
		return expand.Variable{} // a shell starts with the default
	}
	return expand.Variable{Set: set, Exported: true, Kind: expand.String, Str: value}
}

func (e environment) Each(func(string, expand.Variable) bool) {}

// Body is the text that the segment gets from its here-document.
func (s *Segment) Body(in Surroundings) (text string, ok bool) {
	if s.Heredoc == nil {
		return "", false
	}
	return s.Heredoc.Body(func(name string) string { value, _ := environment{in}.value(name); return value }), true
}

func (e environment) value(name string) (string, bool) {
	v := e.Get(name)
	return v.Str, v.Set
}
