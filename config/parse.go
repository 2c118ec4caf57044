package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/tailscale/hujson"

	"github.com/toolward/toolward/ownfile"
)

// MaxSize is the size of a configuration file in bytes that is still read.
const MaxSize = 1 << 20

// Loaded is a configuration that passed every check.
type Loaded struct {
	Name   string // file name, for messages
	Source []byte // exactly what was read; nil when there is no file
	Hash   string // SHA-256 of Source, lower hex
	File   File   // with defaults filled in
	given  File   // as written
}

// Problem is one thing that is wrong in a file.
type Problem struct {
	File         string
	Line, Column int    // from 1; the column counts bytes
	Key          string // path, such as agents.list[2].tools.allow[1]
	Text         string // what is wrong, with the value
	Remedy       string // what to write instead
}

func (p Problem) Error() string {
	text := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Key != "" {
		text += p.Key + ": "
	}
	text += p.Text
	if p.Remedy != "" {
		text += "; " + p.Remedy
	}
	return text
}

// Problems is everything that is wrong in a file, in its order.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Keyed is an error of another package about one key, which Parse turns into a place in the file.
type Keyed interface {
	error
	ConfigKey() string
}

// Load reads and checks a file. A missing file gives the defaults.
func Load(path string, checks ...Check) (*Loaded, error) {
	f, err := OpenFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Parse(path, nil, checks...)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	source, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	if len(source) > MaxSize {
		return nil, fmt.Errorf("read configuration %s: larger than %d bytes", path, MaxSize)
	}
	return Parse(path, source, checks...)
}

// Own is [Load] of the file that may come into force: nobody else may be able to choose what stands in it. A link to a file in a
// workspace would let an agent write the configuration under a name that nothing guards.
func Own(path string, checks ...Check) (*Loaded, error) {
	source, err := ownfile.Read(path, MaxSize)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, source, checks...)
}

// OpenFile opens a file to be read. It refuses what is no file: to open a pipe that nobody writes to waits for ever,
// and whoever reloads the configuration would wait with it.
func OpenFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Check is a further check of a decoded file; its errors may be Keyed.
type Check func(File) []error

// Parse checks the content of a file; source is nil when there is none.
func Parse(name string, source []byte, checks ...Check) (*Loaded, error) {
	loaded := &Loaded{Name: name, Source: source, Hash: Hash(source)}
	document := hujson.Value{}
	if len(source) > 0 {
		var err error
		if document, err = ParseText(source); err != nil {
			return nil, syntaxProblem(name, err)
		}
		d := &decoder{name: name, source: source}
		d.check(&document)
		d.zeros(&document)
		if len(d.problems) > 0 {
			return nil, d.sorted()
		}
		plain := document.Clone()
		plain.Standardize()
		if err := json.Unmarshal(plain.Pack(), &loaded.given); err != nil {
			return nil, Problems{{File: name, Line: 1, Column: 1, Text: err.Error()}}
		}
	}
	loaded.File = loaded.given.withDefaults()
	d := &decoder{name: name, source: source, document: &document}
	for _, err := range append(checkValues(loaded.given), runChecks(loaded.File, checks)...) {
		d.addError(err)
	}
	if len(d.problems) > 0 {
		return nil, d.sorted()
	}
	return loaded, nil
}

func runChecks(f File, checks []Check) []error {
	var all []error
	for _, check := range checks {
		all = append(all, check(f)...)
	}
	return all
}

// Hash names a content: SHA-256 in lower hex.
func Hash(source []byte) string {
	sum := sha256.Sum256(source)
	return hex.EncodeToString(sum[:])
}

// syntaxProblem keeps hujson's words but gives its place as ours.
func syntaxProblem(name string, err error) error {
	text := strings.TrimPrefix(err.Error(), "hujson: ")
	line, column := 1, 1
	var l, c int
	if n, _ := fmt.Sscanf(text, "line %d, column %d: ", &l, &c); n == 2 {
		line, column = l, c
		_, text, _ = strings.Cut(text, ": ")
	}
	return Problems{{File: name, Line: line, Column: column, Text: text, Remedy: "the file is JSON with comments and trailing commas"}}
}

func (d *decoder) sorted() Problems {
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return d.problems
}
