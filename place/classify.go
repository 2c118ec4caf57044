package place

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// New compiles a layout. It does not touch the disk. A layout with a missing or relative part is an error:
// a classifier that did not know where the secrets are would call them "outside".
func New(layout Layout) (*Classifier, error) {
	for _, required := range []struct{ name, value string }{
		{"home", layout.Home}, {"state directory", layout.StateDir}, {"configuration file", layout.ConfigFile},
	} {
		if required.value == "" {
			return nil, fmt.Errorf("place: the layout has no %s", required.name)
		}
	}
	all := append([]string{layout.Home, layout.StateDir, layout.ConfigFile}, layout.Own...)
	all = append(append(all, layout.ReadRoots...), layout.WriteRoots...)
	if layout.Workspace != "" {
		all = append(all, layout.Workspace)
	}
	for _, p := range all {
		if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) {
			return nil, fmt.Errorf("place: %q in the layout is not an absolute clean path", p)
		}
	}
	c := &Classifier{layout: layout}
	c.workspace = c.key(layout.Workspace)
	c.stateDir = c.key(layout.StateDir)
	c.configFile = c.key(layout.ConfigFile)
	c.inbound = c.stateDir + "/media/inbound"
	for _, p := range layout.Own {
		c.own = append(c.own, c.key(p))
	}
	// A workspace that is the state directory itself must not turn Toolward's own files into workspace files.
	c.ownSpace = c.workspace != c.stateDir && below(c.workspace, c.stateDir)
	c.rules = compile(table, c.key(layout.Home), c.fold)
	return c, nil
}

func compile(table []row, home string, fold func(string) string) rules {
	r := rules{
		trees: map[string]Zone{}, anywhere: map[string]Zone{}, pairs: map[string]Zone{}, heads: map[string]bool{},
		bases: map[string]Zone{}, extensions: map[string]Zone{}, workspace: map[string]Zone{}, beginnings: map[string]Zone{},
		guarded: map[string]bool{}, short: map[string]string{}, homes: map[string]Zone{},
	}
	put := func(m map[string]Zone, name string, p Zone) {
		if old, ok := m[name]; !ok || p < old {
			m[name] = p
		}
	}
	guard := func(name string) {
		if !strings.HasPrefix(name, ".") {
			return // common words and key files: an imitation is only useful for the dotted names below
		}
		r.guarded[name] = true
		short := strings.ToLower(strings.ReplaceAll(name, ".", ""))
		r.short[short[:min(6, len(short))]] = name
	}
	for _, row := range table {
		for _, name := range row.names {
			name = fold(name)
			switch row.at {
			case atRoot:
				put(r.trees, name, row.place)
			case atHome:
				put(r.trees, strings.TrimSuffix(home, "/")+"/"+name, row.place)
				put(r.homes, name, row.place)
				guard(firstElement(name))
			case anywhere:
				guard(firstElement(name))
				if head, _, pair := strings.Cut(name, "/"); pair {
					put(r.pairs, name, row.place)
					r.heads[head] = true
				} else {
					put(r.anywhere, name, row.place)
				}
			case baseName:
				guard(name)
				put(r.bases, name, row.place)
			case extension:
				put(r.extensions, name, row.place)
			case inWorkspace:
				put(r.workspace, name, row.place)
			case beginsInWorkspace:
				put(r.beginnings, name, row.place)
			}
		}
	}
	for tree := range r.trees {
		r.deepest = max(r.deepest, len(tree))
	}
	return r
}

// Classify gives the place of a real path: absolute, without symbolic links. Anything else is Self,
// because a path that was not resolved may mean any file.
func (c *Classifier) Classify(real string) Zone {
	if real == "" || real[0] != '/' || strings.IndexByte(real, 0) >= 0 {
		return Self
	}
	p := c.key(path.Clean(real))
	if c.isSelf(p) {
		return Self
	}
	inside := below(p, c.workspace)
	result := Outside
	if inside {
		result = Workspace
	}
	result = min(result, c.byTree(p), c.byAccount(p), bySystemPath(p))

	// In the workspace only the part below its root counts, so that a workspace which itself lies in a
	// directory with a guarded name (a worktree under .claude) is usable.
	rest := p
	if inside {
		rest = p[len(c.workspace):]
	}
	return min(result, c.byElements(rest, inside))
}

// isSelf stops an agent from changing, or reading the secrets of, the gate that guards it.
func (c *Classifier) isSelf(p string) bool {
	if p == c.configFile {
		return true
	}
	for _, own := range c.own {
		if below(p, own) {
			return true
		}
	}
	if !below(p, c.stateDir) {
		return false
	}
	if c.ownSpace && below(p, c.workspace) {
		return false
	}
	return !below(p, c.inbound)
}

// byTree looks up every ancestor of p, and p, in the table of anchored trees.
func (c *Classifier) byTree(p string) Zone {
	result := Workspace
	for i := 1; i <= len(p) && i <= c.rules.deepest; i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		if place, ok := c.rules.trees[p[:i]]; ok {
			result = min(result, place)
		}
	}
	return result
}

// byAccount looks a path up in the home of whoever's account it lies in: this account may read others' keys, or be root.
func (c *Classifier) byAccount(p string) Zone {
	rest := ""
	for _, home := range accountHomes {
		if below, ok := strings.CutPrefix(p, home+"/"); ok {
			rest = below
		}
	}
	for _, homes := range homesOf {
		if below, ok := strings.CutPrefix(p, c.fold(homes)); ok {
			_, rest, _ = strings.Cut(below, "/")
		}
	}
	result := Workspace
	for i := 1; i <= len(rest); i++ {
		if i < len(rest) && rest[i] != '/' {
			continue
		}
		if place, ok := c.rules.homes[rest[:i]]; ok {
			result = min(result, place)
		}
	}
	return result
}

// bySystemPath knows the two families of system paths that a list cannot name.
func bySystemPath(p string) Zone {
	if strings.HasPrefix(p, "/etc/cron") {
		return Protected // /etc/cron.d, cron.daily, crontab, cron.allow, …
	}
	if rest, ok := strings.CutPrefix(p, "/proc/"); ok {
		// /proc/<pid>/environ holds a process's secrets; mem all of it; root and cwd are doors around every
		// comparison of paths. The same under /proc/<pid>/task/<tid>.
		pid, rest, _ := strings.Cut(rest, "/")
		if !isProcess(pid) {
			return Workspace
		}
		if after, ok := strings.CutPrefix(rest, "task/"); ok {
			_, rest, _ = strings.Cut(after, "/")
		}
		own := pid == "self" || pid == "thread-self"
		if name := firstElement(rest); slices.Contains(procSecret, name) || !own && slices.Contains(procOthers, name) {
			return Secret
		}
	}
	return Workspace
}

func isProcess(name string) bool {
	return name == "self" || name == "thread-self" || (name != "" && strings.Trim(name, "0123456789") == "")
}

// byElements examines the single elements of a path, and its last one as a base name.
func (c *Classifier) byElements(rest string, inside bool) Zone {
	result := Workspace
	for rest != "" {
		element, after, more := strings.Cut(strings.TrimLeft(rest, "/"), "/")
		if element == "" {
			break
		}
		name := element
		if plain := c.plain(element); plain != "" {
			name = plain // another spelling of a guarded name is that name
		}
		if name[0] == '.' {
			result = min(result, c.byName(name, after))
		}
		if !more {
			result = min(result, c.byBase(name, inside))
		}
		rest = after
	}
	return result
}

func (c *Classifier) byName(name, after string) Zone {
	if place, ok := c.rules.anywhere[name]; ok {
		return place
	}
	if !c.rules.heads[name] {
		return Workspace
	}
	next := firstElement(after)
	if plain := c.plain(next); plain != "" {
		next = plain
	}
	if place, ok := c.rules.pairs[name+"/"+next]; ok {
		return place
	}
	// A submodule's or worktree's own git directory has hooks and a config as well.
	if name == ".git" && (next == "modules" || next == "worktrees") {
		for element := range strings.SplitSeq(after, "/") {
			if place, ok := c.rules.pairs[name+"/"+element]; ok {
				return place
			}
		}
	}
	return Workspace
}

// isSecret reports whether a base name in lower case is that of a secret. Keys came from other systems, and by their names in capitals
// too: CLIENT.P12.
func (c *Classifier) isSecret(base string) bool {
	if c.rules.bases[base] == Secret {
		return true
	}
	if kind, ok := strings.CutPrefix(base, ".env."); ok && !slices.Contains(envHarmless, kind) {
		return true
	}
	dot := strings.LastIndexByte(base, '.')
	return dot >= 0 && c.rules.extensions[base[dot:]] == Secret
}

func (c *Classifier) byBase(base string, inside bool) Zone {
	if c.isSecret(strings.ToLower(base)) {
		return Secret
	}
	if place, ok := c.rules.bases[base]; ok {
		return place
	}
	if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
		if place, ok := c.rules.extensions[base[dot:]]; ok {
			return place
		}
	}
	if inside {
		if place, ok := c.rules.workspace[base]; ok {
			return place
		}
		return c.byBeginning(base)
	}
	return Workspace
}

// byBeginning looks up a name up to each of its dots: vite.config.ts, Dockerfile.dev.
func (c *Classifier) byBeginning(base string) Zone {
	for i := 1; i < len(base); i++ {
		if base[i] == '.' {
			if place, ok := c.rules.beginnings[base[:i]]; ok {
				return place
			}
		}
	}
	if place, ok := c.rules.beginnings[base]; ok {
		return place
	}
	return Workspace
}

// InRoots reports whether a confined agent may reach a real path at all: it lies in the workspace, in a
// read-write root or, for reading, in a read root. It does not replace Classify.
func (c *Classifier) InRoots(real string, write bool) bool {
	if real == "" || real[0] != '/' {
		return false
	}
	p := c.key(path.Clean(real))
	if below(p, c.workspace) {
		return true
	}
	reach := func(root string) bool { return below(p, c.key(root)) }
	return slices.ContainsFunc(c.layout.WriteRoots, reach) || (!write && slices.ContainsFunc(c.layout.ReadRoots, reach))
}
