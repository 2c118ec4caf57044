package settings

import (
	"cmp"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox/toolchain"
)

// Caches of the machine are read inside, and never written: what a sandbox adds is in a layer of its own, beside its home on the
// host. Else a hostile project would put a module there that the machine's own builds take.

const (
	// layersEnd ends the name of the directory of layers, after that of the home.
	layersEnd = ".layers"
	// goDownloads is where Go finds the modules of the machine where nothing can be laid over its cache.
	goDownloads = "/var/cache/machine/go"
	// goDefaultProxy is GOPROXY where nobody has set it.
	goDefaultProxy = "https://proxy.golang.org,direct"
)

// caches are the caches of the machine that a sandbox of a layout sees.
func (r *Resolved) caches(engine string, l *Layout) (list []toolchain.Dir) {
	if l.HomeDir == "" || engine == sandbox.EngineDocker && len(r.Docker.HostPathMap) > 0 {
		return nil
	}
	rules := r.bindRules(nil)
	for _, d := range r.settings.around.Tools.Caches {
		meets := func(other string) bool { return place.Within(other, d.Path) || place.Within(d.Path, other) }
		if r.struckOut(d) || hidesSystem(d.Path) || meets(l.Workdir) || meets(l.WorkspaceDir) || place.Within(l.Home, d.Path) ||
			slices.ContainsFunc(l.Binds, func(b Bind) bool { return b.Target != l.Home && meets(b.Target) }) ||
			slices.ContainsFunc(l.Tools, func(shown toolchain.Dir) bool { return meets(shown.Path) }) {
			continue
		}
		if code, _ := rules.blockedWorkspace(d.Path); code == "" {
			list = append(list, d)
		}
	}
	return list
}

// layered reports whether a sandbox can have layers of its own: a container engine and Landlock mount no such thing.
func layered(engine string, l *Layout) bool { return engine != sandbox.EngineDocker && !l.InPlace }

// cacheMounts are what is mounted for the caches: all of them with layers, else the modules that Go has fetched.
func (l *Layout) cacheMounts() (mounts []sandbox.Mount) {
	for _, d := range l.Caches {
		switch m := (sandbox.Mount{Kind: sandbox.MountCache, Source: d.Path, Target: d.Path}); {
		case l.Layered:
			m.Layer = path.Join(l.HomeDir+layersEnd, sandbox.Slug(d.Path))
			mounts = append(mounts, m)
		case d.Tool == toolchain.GoModules:
			m.Source = path.Join(d.Path, "cache", "download")
			if m.Target = goDownloads; l.InPlace {
				m.Target = m.Source
			}
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// cacheVariables lead to the caches, and say where packages come from.
func (r *Resolved) cacheVariables(l *Layout) (own []Variable) {
	found := &r.settings.around.Tools
	for _, m := range l.cacheMounts() {
		if m.Layer != "" {
			continue
		}
		proxy := "file://" + m.Target + "," + cmp.Or(found.Env["GOPROXY"], goDefaultProxy)
		own = append(own, Variable{"GOPROXY", proxy}, Variable{"GOFLAGS", strings.TrimSpace(found.Env["GOFLAGS"] + " -modcacherw")})
	}
	return own
}

// pinCaches opens the caches, without following a link, and makes the layers. One that is not what it was is left out.
func (p *Plan) pinCaches() error {
	p.Spec.Mounts = slices.DeleteFunc(p.Spec.Mounts, func(m sandbox.Mount) bool {
		if m.Kind != sandbox.MountCache {
			return false
		}
		if _, err := os.Lstat(m.Source); err != nil {
			return true // nothing was fetched yet
		}
		why := toolchain.Check(m.Source)
		if why != "" {
			p.Left = append(p.Left, m.Source+": "+why)
		}
		return why != ""
	})
	for i := range p.Spec.Mounts {
		m := &p.Spec.Mounts[i]
		if m.Kind != sandbox.MountCache {
			continue
		}
		var err error
		if m.Pinned, err = pin(m.Source); err != nil {
			return sandbox.Errorf(sandbox.CodeOf(err), "mount %s: %v", m.Source, err)
		}
		if m.Layer == "" {
			continue
		}
		if err := prepareHome(m.Layer, p.Spec.User, []string{"upper", "work"}); err != nil {
			return sandbox.Errorf(sandbox.CodeFailed, "make a place for what the sandbox adds to %s: %v", m.Source, err)
		}
	}
	return nil
}
