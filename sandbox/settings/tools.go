package settings

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox/task"
	"github.com/toolward/toolward/sandbox/toolchain"
)

// ToolchainsConfig is "toolchains". What is written for all and for an agent both counts.
type ToolchainsConfig struct {
	Without []string `json:"without,omitzero" jsonschema:"toolchains that are not shown: names as sandbox probe prints them, directories, or * for all"`
	With    []string `json:"with,omitzero" jsonschema:"further directories that are shown, read-only, at their own path"`
}

// everyTool stands for all toolchains.
const everyTool = "*"

// toolchains merges: an agent adds to what is written for all, so that what was struck out there stays out.
func (r *resolver) toolchains() (merged ToolchainsConfig) {
	add := func(leaf string, to *[]string, from func(*Config) []string) {
		r.sources[leaf] = Source{FromDefault, globalPrefix + leaf}
		for _, l := range slices.Backward(r.layers) {
			if list := from(l.config); list != nil {
				*to = append(*to, list...)
				r.sources[leaf], r.values[leaf] = Source{l.level, l.prefix + leaf}, *to
			}
		}
	}
	add("toolchains.without", &merged.Without, func(c *Config) []string { return c.Toolchains.Without })
	add("toolchains.with", &merged.With, func(c *Config) []string { return c.Toolchains.With })
	return merged
}

// toolchains refuses names that strike nothing out, and directories that would show what sandboxes must not see.
func (k *checker) toolchains(at string, c *ToolchainsConfig) {
	for i, name := range c.Without {
		if name != everyTool && !path.IsAbs(name) && !slices.Contains(toolchain.Names(), name) {
			k.wrong(keyAt(at+".without", i), sandbox.CodeConfig, "%q is no toolchain: write *, a directory, or one of %s", name, strings.Join(toolchain.Names(), ", "))
		}
	}
	rules := BindRules{Home: k.around.Home, OtherHomes: k.around.OtherHomes, StateDir: k.around.StateDir, FoldCase: k.around.FoldCase, Files: k.around.Files}
	for i, dir := range c.With {
		switch {
		case !path.IsAbs(dir) || path.Clean(dir) != dir || hidesSystem(dir) || place.Within(dir, WorkspaceTarget) || place.Within(dir, AgentTarget):
			k.wrong(keyAt(at+".with", i), sandbox.CodeConfig, "%q: write the path of a directory that is no part of the system", dir)
		default:
			if code, secret := rules.blockedWorkspace(dir); code != "" {
				k.wrong(keyAt(at+".with", i), code, "%s would show %s, which sandboxes must not see", dir, secret)
			}
		}
	}
}

// struckOut reports whether somebody has said that a directory is not to be shown.
func (r *Resolved) struckOut(d toolchain.Dir) bool {
	return slices.ContainsFunc(r.Toolchains.Without, func(w string) bool {
		return d.Tool != "" && (w == everyTool || w == d.Tool) || path.IsAbs(w) && place.Within(d.Path, path.Clean(w))
	})
}

// tools are the directories of toolchains that a sandbox of a layout shows. None of them takes the place of anything else, and
// none lies where the agent can write: the workspace shows its own.
func (r *Resolved) tools(engine string, l *Layout) (list []toolchain.Dir) {
	if engine == sandbox.EngineDocker && len(r.Docker.HostPathMap) > 0 {
		return nil // nobody has said what they are on the engine's machine
	}
	all := slices.Clone(r.settings.around.Tools.Dirs)
	for _, dir := range r.Toolchains.With {
		all = append(all, toolchain.Dir{Path: dir})
	}
	// What holds another comes first, and shows it.
	slices.SortStableFunc(all, func(a, b toolchain.Dir) int { return strings.Count(a.Path, "/") - strings.Count(b.Path, "/") })
	rules := r.bindRules(nil)
	for _, d := range all {
		if r.struckOut(d) || hidesSystem(d.Path) || place.Within(d.Path, l.Workdir) || place.Within(d.Path, l.WorkspaceDir) || place.Within(l.Home, d.Path) ||
			slices.ContainsFunc(list, func(shown toolchain.Dir) bool { return place.Within(d.Path, shown.Path) }) ||
			slices.ContainsFunc(l.Binds, func(b Bind) bool { return place.Within(d.Path, b.Target) }) {
			continue
		}
		if code, _ := rules.blockedWorkspace(d.Path); code != "" {
			continue
		}
		list = append(list, d)
	}
	return list
}

// pinTools opens the toolchains, without following a link, and finds what in them holds credentials. One that is not what it was
// when it was found is left out: who can write to the home would have put a link in its place, which leads to the keys.
func (p *Plan) pinTools() {
	p.Spec.Mounts = p.Mounts()
	byPath := map[string]toolchain.Dir{}
	for _, d := range p.Tools {
		byPath[d.Path] = d
	}
	p.Spec.Mounts = slices.DeleteFunc(p.Spec.Mounts, func(m sandbox.Mount) bool {
		if m.Kind != sandbox.MountTools {
			return false
		}
		why := p.checkTool(byPath[m.Source])
		if why != "" {
			p.Left = append(p.Left, m.Source+": "+why)
		}
		return why != ""
	})
	for i := range p.Spec.Mounts {
		m := &p.Spec.Mounts[i]
		if m.Kind != sandbox.MountTools {
			continue
		}
		m.Pinned, _ = pin(m.Source) // where it has changed since, pinMounts says how
		for _, hidden := range byPath[m.Source].Hidden() {
			if p.Table.Shows(m, hidden) {
				p.hidden = append(p.hidden, hidden)
			}
		}
	}
}

// checkTool says why a toolchain cannot be shown; "" is no reason.
func (p *Plan) checkTool(d toolchain.Dir) string {
	info, err := os.Lstat(d.Path)
	switch {
	case err != nil:
		return "it is not there any more"
	case toolchain.Check(d.Path) != "":
		return toolchain.Check(d.Path)
	case !info.IsDir():
		return "it is no directory"
	case p.InPlace && len(d.Hidden()) > 0:
		return "without namespaces the credentials in it cannot be hidden: " + d.Hidden()[0]
	}
	return ""
}

// toolVariables lead to the toolchains that are shown. An image's own programs come before the person's: it was chosen for them.
func (r *Resolved) toolVariables(engine string, l *Layout) []Variable {
	found, shown := &r.settings.around.Tools, func(dir string) bool {
		return slices.ContainsFunc(l.Tools, func(d toolchain.Dir) bool { return place.Within(dir, d.Path) })
	}
	var search, own []string
	for _, dir := range found.Path {
		system := engine != sandbox.EngineDocker && (place.Within(dir, "/usr") || dir == "/bin" || dir == "/sbin")
		if shown(dir) || system {
			search = append(search, dir)
		}
	}
	for _, d := range l.Tools {
		if d.Tool == "" { // somebody has named it: its programs are meant
			own = append(own, d.Path, path.Join(d.Path, "bin"))
		}
	}
	variables := r.cacheVariables(l)
	for _, name := range slices.Sorted(maps.Keys(found.Env)) {
		value := found.Env[name]
		set := slices.ContainsFunc(variables, func(v Variable) bool { return v.Name == name })
		if !set && (!path.IsAbs(value) || shown(value) || l.holdsCache(value) || name == "VIRTUAL_ENV") {
			variables = append(variables, Variable{name, value})
		}
	}
	if len(l.Tools) == 0 {
		return variables
	}
	system := strings.Split(task.DefaultPath, ":")
	all := slices.Concat(own, search, system)
	if engine == sandbox.EngineDocker {
		all = slices.Concat(system, own, search)
	}
	var once []string
	for _, dir := range all {
		if !slices.Contains(once, dir) && !strings.Contains(dir, ":") {
			once = append(once, dir)
		}
	}
	return append([]Variable{{"PATH", strings.Join(once, ":")}}, variables...)
}

// holdsCache reports whether a directory is a cache that is laid over, or holds one.
func (l *Layout) holdsCache(dir string) bool {
	return slices.ContainsFunc(l.cacheMounts(), func(m sandbox.Mount) bool { return m.Layer != "" && place.Within(m.Target, dir) })
}
