package light

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward/place"
	inside "github.com/toolward/toolward/sandbox/light/box"
)

// toolwardSocket is how requesters reach the gateway, in Toolward's home; inboundMedia is what agents may read there.
const (
	toolwardSocket = "toolward.sock"
	inboundMedia   = "media/inbound"
)

// clientSettings are the names that guarded agents' programs obey: what lies in them can switch the gate off. They stay
// read-only for git, too, which writes everything else of a working tree.
var clientSettings = []string{".claude", ".codex", ".gemini", ".copilot", ".opencode", ".mcp.json", ".toolward"}

// gitOwn are the names in a repository's own directory that make git run or read something else.
var gitOwn = []string{"hooks", "config", "config.worktree", "commondir", "info"}

// engines are sockets of container engines: who may use one is the machine's root.
var engines = []string{
	"/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/buildkit/buildkitd.sock",
	"/var/snap/docker/common/run/docker.sock",
}

// ofRoot are sockets by which root has others start programs.
var ofRoot = []string{"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/udev/control"}

// setupFor is what a box for a need hides and guards.
func (s *Scene) setupFor(need Need, mode Mode) *inside.Setup {
	root := os.Geteuid() == 0
	b := &builder{need: need, setup: &inside.Setup{Namespaces: mode == Namespaces, Root: root, Landlock: landlockVersion()}}
	b.own(s.Layout)
	for _, home := range homes(s.Layout.Home) {
		b.home(home, home == s.Layout.Home)
	}
	if root {
		b.hide(place.AtRoot(place.Secret)...)
		b.hide(ofRoot...)
		b.read(place.AtRoot(place.Protected)...)
	}
	b.doors()
	b.workspace(s.Layout.Workspace, s.Dir)
	b.show(s.Named...)
	return b.setup
}

// builder gathers a setup.
type builder struct {
	need  Need
	setup *inside.Setup
}

// hide adds what is there, by its real path: a link that leads there stays one.
func (b *builder) hide(paths ...string) { b.setup.Hide = appendReal(b.setup.Hide, paths) }
func (b *builder) read(paths ...string) { b.setup.Read = appendReal(b.setup.Read, paths) }
func (b *builder) show(paths ...string) { b.setup.Show = appendReal(b.setup.Show, paths) }

func appendReal(list, paths []string) []string {
	for _, p := range paths {
		if real, err := filepath.EvalSymlinks(p); err == nil && real != "/" && !slices.Contains(list, real) {
			list = append(list, real)
		}
	}
	return list
}

// own hides Toolward's home, but for what requesters use, and keeps its programs as they are.
func (b *builder) own(l place.Layout) {
	b.setup.Hide = append(b.setup.Hide, l.StateDir) // the first, and it is there: the gateway works in it
	b.show(path.Join(l.StateDir, toolwardSocket), path.Join(l.StateDir, inboundMedia))
	if !place.Within(l.ConfigFile, l.StateDir) {
		b.hide(l.ConfigFile)
	}
	b.read(l.Own...)
}

// home hides the credentials of an account, and keeps what its programs obey. Of other accounts nothing is kept in sight.
func (b *builder) home(home string, mine bool) {
	entries, err := os.ReadDir(home)
	if err != nil {
		return // what we cannot look into, programs cannot
	}
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = true
	}
	visit := func(names []string, add func(...string)) {
		for _, name := range names {
			first, _, _ := strings.Cut(name, "/")
			if there[first] && !(mine && b.keeps(name)) {
				add(path.Join(home, name))
			}
		}
	}
	visit(place.AtHome(place.Secret), b.hide)
	visit(place.AtHome(place.Protected), b.read)
	visit(place.Anywhere(place.Protected), b.read)
	if b.need&SSH != 0 && mine {
		b.read(path.Join(home, ".ssh")) // keys are used, none is added
	}
	if b.need&Engine == 0 {
		visit([]string{".docker/run", ".colima", ".rd"}, b.hide)
	}
}

// keeps reports whether the need keeps a name below the home in sight.
func (b *builder) keeps(name string) bool {
	for need, names := range kept {
		if b.need&need != 0 && slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// doors closes the ways to programs that hold keys, control the screen, or are somebody else's terminal.
func (b *builder) doors() {
	uid := strconv.Itoa(os.Getuid())
	runtime := "/run/user/" + uid
	b.setup.Fresh = appendReal(b.setup.Fresh, []string{runtime, "/tmp/tmux-" + uid, "/run/screen"})
	agent := os.Getenv("SSH_AUTH_SOCK")
	if b.need&SSH != 0 {
		b.show(runtime+"/keyring/ssh", runtime+"/gcr/ssh", runtime+"/ssh-agent.socket", runtime+"/openssh_agent")
		if agent != "" {
			b.show(agent)
		}
	} else if agent != "" {
		b.hide(agent)
	}
	if b.need&(GPG|SSH) != 0 { // GnuPG's agent serves ssh, too
		b.show(runtime + "/gnupg")
	}
	if b.need&Engine != 0 {
		b.show(runtime+"/docker.sock", runtime+"/podman")
	} else {
		b.hide(engines...)
	}
	b.hide(named("/tmp/.X11-unix", "X")...)
	if b.need&SSH == 0 {
		b.hide(named("/tmp", "ssh-")...)
	}
}

// mostNames bounds how many names of a directory that everybody fills are looked at.
const mostNames = 2000

// named lists what a directory holds whose name begins in a way.
func named(dir, prefix string) (found []string) {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(mostNames) // an empty directory is an error
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			found = append(found, path.Join(dir, name))
		}
	}
	return found
}

// workspace keeps what other programs obey in the workspace as it is, and the workspace itself in sight.
func (b *builder) workspace(workspace, dir string) {
	roots := []string{}
	if workspace != "" {
		roots = append(roots, workspace)
		if covered(b.setup, workspace) {
			b.show(workspace)
		}
	}
	for at := dir; at != "/" && at != workspace && len(roots) < 32; at = path.Dir(at) {
		if _, err := os.Lstat(path.Join(at, ".git")); err == nil {
			roots = append(roots, at)
		}
		if !place.Within(at, workspace) {
			break
		}
	}
	if b.setup.Landlock > 0 && !b.setup.Namespaces {
		return // nothing could be made any more in a directory of which a part is read-only
	}
	for _, root := range roots {
		names := clientSettings
		if b.need&Git == 0 {
			names = place.Anywhere(place.Protected)
			b.repository(path.Join(root, ".git"))
		}
		for _, name := range names {
			if !strings.HasPrefix(name, ".git/") {
				b.read(path.Join(root, name))
			}
		}
	}
}

// repository keeps what makes git run something as it is, and the repository's own directory where it is.
func (b *builder) repository(git string) {
	info, err := os.Lstat(git)
	switch {
	case err != nil:
		return
	case !info.IsDir():
		b.read(git)
		if git = commonDirectory(git); git == "" {
			return
		}
	}
	b.setup.Pin = appendReal(b.setup.Pin, []string{git})
	for _, name := range gitOwn {
		b.read(path.Join(git, name))
	}
}

// commonDirectory is where the repository of a worktree or submodule has what makes git run something.
func commonDirectory(pointer string) string {
	text, err := os.ReadFile(pointer)
	target, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !ok || len(text) > 4096 {
		return ""
	}
	if !path.IsAbs(target) {
		target = path.Join(path.Dir(pointer), target)
	}
	if common, err := os.ReadFile(path.Join(target, "commondir")); err == nil && len(common) < 4096 {
		target = path.Join(target, strings.TrimSpace(string(common)))
	}
	return target
}

// covered reports whether a directory lies in something that is hidden or kept as it is.
func covered(s *inside.Setup, dir string) bool {
	return slices.ContainsFunc(slices.Concat(s.Hide, s.Fresh, s.Read), func(p string) bool { return place.Within(dir, p) })
}

// accounts are the home directories of the machine's accounts, as /etc/passwd last said.
var accounts struct {
	sync.Mutex
	read  time.Time
	homes []string
}

// mostAccounts bounds whose credentials are looked for.
const mostAccounts = 64

// homes lists the home directories of all people's accounts, the caller's first.
func homes(own string) []string {
	info, err := os.Stat("/etc/passwd")
	accounts.Lock()
	defer accounts.Unlock()
	if err == nil && !info.ModTime().Equal(accounts.read) {
		accounts.read, accounts.homes = info.ModTime(), nil
		text, _ := os.ReadFile("/etc/passwd")
		for line := range bytes.Lines(text) {
			fields := strings.Split(strings.TrimSpace(string(line)), ":")
			if len(fields) != 7 || len(accounts.homes) == mostAccounts {
				continue
			}
			uid, err := strconv.Atoi(fields[2])
			if err == nil && (uid == 0 || uid >= 1000 && uid < 65534) && path.IsAbs(fields[5]) && path.Clean(fields[5]) != "/" {
				accounts.homes = append(accounts.homes, withoutLinks(path.Clean(fields[5])))
			}
		}
	}
	list := []string{own}
	for _, home := range accounts.homes {
		if !slices.Contains(list, home) {
			list = append(list, home)
		}
	}
	return list
}

func withoutLinks(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
