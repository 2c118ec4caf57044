package importer

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/titanous/json5"

	"github.com/toolward/toolward/config"
)

// node is a value of a source file with its place.
type node struct {
	at      Place
	value   any     // nil, bool, float64 or string; unused with the others
	items   []*node // of a list
	names   []string
	members map[string]*node // of an object
	isList  bool
	read    bool // somebody has looked at it
}

// get returns a member and marks it as read; nil if there is none.
func (n *node) get(name string) *node {
	n.takenFor(n != nil && n.members != nil)
	if n == nil || n.members[name] == nil {
		return nil
	}
	n.members[name].read = true
	return n.members[name]
}

// takenFor says whether a value is of the kind that it is looked at as. One that is not counts as unread: a list of
// denied tools that is written as a text must be reported, not silently dropped.
func (n *node) takenFor(fits bool) {
	if n != nil && !fits && n.value != nil {
		n.read = false
	}
}

// path follows names down.
func (n *node) path(names ...string) *node {
	for _, name := range names {
		n = n.get(name)
	}
	return n
}

// list returns the items of a list, all marked as read.
func (n *node) list() []*node {
	if n == nil {
		return nil
	}
	n.takenFor(n.isList)
	for _, item := range n.items {
		item.read = true
	}
	return n.items
}

// texts returns the strings of a list with their places; what is not a string is left unread.
func (n *node) texts() (texts []string, nodes []*node) {
	if n == nil {
		return nil, nil
	}
	n.takenFor(n.isList)
	for _, item := range n.items {
		if s, ok := item.value.(string); ok {
			item.read = true
			texts, nodes = append(texts, s), append(nodes, item)
		}
	}
	return texts, nodes
}

func (n *node) text() string {
	if n == nil {
		return ""
	}
	s, _ := n.value.(string)
	return s
}

func (n *node) is(want any) bool {
	if n == nil {
		return false
	}
	if _, isBool := want.(bool); isBool {
		_, fits := n.value.(bool)
		n.takenFor(fits)
	}
	return n.value == want
}

// all marks a whole tree as read.
func (n *node) all() {
	if n == nil {
		return
	}
	n.read = true
	for _, item := range n.items {
		item.all()
	}
	for _, m := range n.members {
		m.all()
	}
}

// eachUnread visits the topmost values that nobody has looked at, in the order of the file.
func (n *node) eachUnread(path string, visit func(string, *node)) {
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !item.read {
			visit(at, item)
			continue
		}
		item.eachUnread(at, visit)
	}
	for _, name := range n.names {
		at := strings.TrimPrefix(config.JoinKey(path, name), ".")
		if m := n.members[name]; !m.read {
			visit(at+m.short(), m)
		} else {
			m.eachUnread(at, visit)
		}
	}
}

// short shows a value after its name if it can be no secret.
func (n *node) short() string {
	switch v := n.value.(type) {
	case bool, float64:
		return fmt.Sprintf(" = %v", v)
	}
	return ""
}

// parseJSON reads JSON with comments and trailing commas.
func parseJSON(file string, data []byte) (*node, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	if _, err := config.ParseText(data); err != nil {
		text := strings.TrimPrefix(err.Error(), "hujson: ")
		place := Place{file, 1, 1}
		var line, column int
		if n, _ := fmt.Sscanf(text, "line %d, column %d: ", &line, &column); n == 2 {
			place.Line, place.Column = line, column
			_, text, _ = strings.Cut(text, ": ")
		}
		return nil, &Malformed{place, text}
	}
	return walkJSON(file, data)
}

// parseJSON5 reads JSON5.
func parseJSON5(file string, data []byte) (*node, error) {
	var whole any
	if err := json5.Unmarshal(data, &whole); err != nil {
		offset := 0
		if syntax, ok := errors.AsType[*json5.SyntaxError](err); ok {
			offset = max(int(syntax.Offset)-1, 0)
		}
		return nil, &Malformed{placeOf(file, data, offset), err.Error()}
	}
	return walkJSON(file, data)
}

func placeOf(file string, data []byte, offset int) Place {
	offset = min(offset, len(data))
	return Place{file, 1 + bytes.Count(data[:offset], []byte("\n")), offset - bytes.LastIndexByte(data[:offset], '\n')}
}

// walkJSON builds the tree of a text that a parser has found to be sound. The parsers of the two dialects do not keep
// places; this one knows their common form and leaves the meaning of every single name and value to JSON5.
func walkJSON(file string, data []byte) (root *node, err error) {
	w := &walker{file: file, data: data}
	defer func() {
		if problem, ok := recover().(*Malformed); ok {
			root, err = nil, problem
		}
	}()
	root = w.value(0)
	root.read = true
	if root.members == nil {
		w.fail(0, "the file is not an object")
	}
	return root, nil
}

type walker struct {
	file string
	data []byte
	pos  int

	counted, breaks, line int // up to where line breaks were counted, how many, and where the last line begins
}

// place is where the walker stands. It counts on from its last call: a file of many small values would take very long
// if each were counted from the beginning.
func (w *walker) place() Place {
	next := w.data[w.counted:w.pos]
	w.breaks += bytes.Count(next, []byte("\n"))
	if i := bytes.LastIndexByte(next, '\n'); i >= 0 {
		w.line = w.counted + i + 1
	}
	w.counted = w.pos
	return Place{w.file, 1 + w.breaks, 1 + w.pos - w.line}
}

func (w *walker) fail(offset int, text string) {
	panic(&Malformed{placeOf(w.file, w.data, offset), text})
}

// maxDepth bounds how deep a source may nest.
const maxDepth = 64

func (w *walker) value(depth int) *node {
	w.space()
	n := &node{at: w.place()}
	if depth > maxDepth {
		w.fail(w.pos, "the file nests too deeply")
	}
	switch w.here() {
	case '{':
		n.members = map[string]*node{}
		w.pos++
		for w.space(); w.here() != '}'; w.space() {
			start := w.pos
			name := w.name()
			w.space()
			w.pos++ // the colon
			if n.members[name] != nil {
				// Readers differ about which of the two counts, and one of them may be the one that denies.
				w.fail(start, fmt.Sprintf("the name %q stands twice in one object", name))
			}
			n.names = append(n.names, name)
			n.members[name] = w.value(depth + 1)
			w.comma()
		}
		w.pos++
	case '[':
		n.isList = true
		w.pos++
		for w.space(); w.here() != ']'; w.space() {
			n.items = append(n.items, w.value(depth+1))
			w.comma()
		}
		w.pos++
	default:
		n.value = w.scalar()
	}
	return n
}

// here is the byte at the position. At the end of the text the two parsers disagree with this one: better to stop.
func (w *walker) here() byte {
	if w.pos >= len(w.data) {
		w.fail(w.pos, "the file ends too early")
	}
	return w.data[w.pos]
}

func (w *walker) comma() {
	w.space()
	if w.here() == ',' {
		w.pos++
	}
}

// space skips white space and comments.
func (w *walker) space() {
	for w.pos < len(w.data) {
		rest := w.data[w.pos:]
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexAny(rest, "\n\r")
			if end < 0 {
				end = len(rest)
			}
			w.pos += end
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest, []byte("*/"))
			if end < 0 {
				w.fail(w.pos, "the comment does not end")
			}
			w.pos += end + 2
		case rest[0] <= ' ':
			w.pos++
		default:
			if trimmed := bytes.TrimLeft(rest, "\u00a0\ufeff\u2028\u2029"); len(trimmed) < len(rest) {
				w.pos += len(rest) - len(trimmed)
				continue
			}
			return
		}
	}
}

// name reads the name of a member.
func (w *walker) name() string {
	if c := w.here(); c == '"' || c == '\'' {
		name, _ := w.scalar().(string)
		return name
	}
	start := w.pos
	for w.here() != ':' && w.here() > ' ' && w.here() != '/' {
		w.pos++
	}
	return string(w.data[start:w.pos])
}

// scalar reads a text, a number or a word.
func (w *walker) scalar() any {
	start := w.pos
	if quote := w.here(); quote == '"' || quote == '\'' {
		for w.pos++; w.here() != quote; w.pos++ {
			if w.here() == '\\' {
				w.pos++
			}
		}
		w.pos++
	} else {
		for w.pos < len(w.data) && !bytes.ContainsRune([]byte(",]}/"), rune(w.data[w.pos])) && w.data[w.pos] > ' ' {
			w.pos++
		}
	}
	var v any
	if err := json5.Unmarshal(w.data[start:w.pos], &v); err != nil || w.pos == start {
		w.fail(start, "this value cannot be read")
	}
	return v
}
