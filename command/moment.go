package command

import (
	"path"
	"strings"
)

// Program finds the program that a word means.
func (r *Resolver) Program(word string, where Where) Program {
	m := moment{r: r}
	return m.program(word, where)
}

// moment is a resolver during one decision: within it every directory is looked at once.
type moment struct {
	r     *Resolver
	heard bool   // changes until this decision began were taken note of
	fresh []seen // directories that were looked at already
	room  [16]seen
}

func (m *moment) program(word string, where Where) Program {
	p := Program{Word: word}
	if word == "" || strings.IndexByte(word, 0) >= 0 || strings.HasSuffix(word, "/") { // a directory, or nothing
		return p
	}
	var found *answer
	if rest, home := strings.CutPrefix(word, "~/"); home {
		found = m.lookup(lookup{word: path.Join(where.Home, rest)})
	} else if strings.Contains(word, "/") {
		found = m.lookup(lookup{word: absolute(where.Dir, word)})
	} else {
		found = m.search(word, where.Path)
		p.searched, p.called = true, found.names
	}
	p.Path, p.Real = found.path, found.real
	if p.Found() {
		p.Hijack = hijack(&p, found.writable, where.Workspace)
	}
	if p.Found() && p.searched && p.Hijack == "" && leadsHere(where.Path) {
		p.Hijack = "the search path has an empty or relative directory"
	}
	return p
}

// search looks through the search path. Empty and relative elements are skipped: they mean the working directory,
// where an agent or a downloaded archive puts what it likes.
func (m *moment) search(name, dirs string) *answer {
	return m.lookup(lookup{word: name, path: dirs})
}

// real returns the real path of an absolute path, or "" if nothing of the kind is there.
func (m *moment) real(p string, k kind) string {
	return m.lookup(lookup{word: path.Clean(p), kind: k}).real
}

func (m *moment) lookup(key lookup) *answer {
	m.r.mu.RLock()
	known := m.r.known[key]
	m.r.mu.RUnlock()
	if known != nil && m.holds(known) {
		if m.r.listener != nil && known.confirmed.Load() >= watchAfter {
			return m.promote(key, known)
		}
		return known
	}
	found := m.r.find(key)
	m.r.remember(key, found)
	return found
}

// promote finds an answer once more, now with its directories watched: a change between both is heard of.
func (m *moment) promote(key lookup, known *answer) *answer {
	watch := m.r.listener.watch(known.seen)
	if watch == nil {
		known.confirmed.Store(-watchRetries)
		return known
	}
	found := m.r.find(key)
	if found.same(known) {
		found.watch = watch
	}
	m.r.remember(key, found)
	return found
}

// holds reports whether all directories on the way are as they were.
func (m *moment) holds(known *answer) bool {
	if known.watch != nil {
		if !m.heard {
			m.r.listener.hear()
			m.heard = true
		}
		if known.watch.quiet() {
			return true
		}
	}
	for i := range known.seen {
		if m.stamp(known.seen[i].dir) != known.seen[i].stamp {
			return false
		}
	}
	known.confirmed.Add(1)
	return true
}

func (m *moment) stamp(dir string) Stamp {
	for i := range m.fresh {
		if m.fresh[i].dir == dir {
			return m.fresh[i].stamp
		}
	}
	node, err := m.r.files.Look(dir)
	if err != nil {
		node = Node{} // never the stamp of a directory that was seen
	}
	if m.fresh == nil {
		m.fresh = m.room[:0]
	}
	m.fresh = append(m.fresh, seen{dir, node.Stamp})
	return node.Stamp
}

const (
	watchAfter   = 3    // looks that confirm an answer before its directories are watched
	watchRetries = 1000 // such looks before it is tried again where it failed
)
