package settings

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
)

// Problem is one setting that is wrong.
type Problem struct {
	Key  string // of the configuration file
	Code sandbox.Code
	Text string
}

// check checks every object, and what agents loosen.
func (c *Configuration) check(around Surroundings) []Problem {
	k := &checker{around: around}
	k.object("agents.defaults.sandbox", &c.Defaults.Config, nil)
	k.ids(c.Agents)
	for i := range c.Agents {
		at := fmt.Sprintf("agents.list[%d].sandbox", i)
		k.object(at, &c.Agents[i].Config, &c.Defaults.Config)
		if !c.Defaults.AllowAgentLoosening {
			k.loosening(at, &c.Defaults.Config, &c.Agents[i].Config)
		}
	}
	return k.problems
}

// ids refuses entries of two agents whose keys are the same: only one could count, and the other agent would be confined less
// than is written for it. One id that stands there twice is refused by the policy.
func (k *checker) ids(agents []AgentConfig) {
	first := map[string]int{}
	for i, a := range agents {
		id := AgentID(a.ID)
		before, taken := first[id]
		switch {
		case !taken:
			first[id] = i
		case sandbox.Trim(a.ID) != "" && a.ID != agents[before].ID:
			k.wrong(fmt.Sprintf("agents.list[%d].id", i), sandbox.CodeConfig, "%q means agent %s, as %q does: write one entry for each agent", a.ID, id, agents[before].ID)
		}
	}
}

type checker struct {
	around   Surroundings
	problems []Problem
}

func (k *checker) wrong(key string, code sandbox.Code, format string, args ...any) {
	k.problems = append(k.problems, Problem{key, code, fmt.Sprintf(format, args...)})
}

func (k *checker) is(key string, err error) {
	if err != nil {
		k.problems = append(k.problems, Problem{key, sandbox.CodeOf(err), err.Error()})
	}
}

func (k *checker) word(key, given string, words ...string) {
	if given != "" && !slices.Contains(words, given) {
		k.wrong(key, sandbox.CodeConfig, "%q: write %s", given, strings.Join(words, " or "))
	}
}

// object checks one object; wider is that for all agents, nil for itself.
func (k *checker) object(at string, c, wider *Config) {
	for _, w := range []struct {
		key, given string
		parse      func(string) error
	}{
		{"mode", c.Mode, func(s string) error { _, err := ParseMode(s); return err }},
		{"scope", c.Scope, func(s string) error { _, err := ParseScope(s); return err }},
		{"workspaceAccess", c.WorkspaceAccess, func(s string) error { _, err := ParseAccess(s); return err }},
	} {
		if w.given != "" {
			k.is(at+"."+w.key, w.parse(w.given))
		}
	}
	k.word(at+".engine", strings.ToLower(c.Engine), EngineAuto, sandbox.EngineNative, sandbox.EngineDocker)
	k.cgroup(at+".native.cgroup", c.Native.Cgroup, wider == nil)
	k.word(at+".fs.hardlinks", c.FS.Hardlinks, "refuse", "read")
	k.word(at+".prune.idleAction", c.Prune.IdleAction, string(PruneStop), string(PruneRemove))
	for i, control := range c.DegradeOK {
		k.word(fmt.Sprintf("%s.degradeOk[%d]", at, i), control, "cgroup", "namespaces")
	}
	k.workspaceRoot(at+".workspaceRoot", c.WorkspaceRoot)
	k.numbers(at, c)
	k.egress(at+".egress", &c.Egress)
	join := either(c.Docker.AllowNamespaceJoin, wider, func(w *Config) *bool { return w.Docker.AllowNamespaceJoin })
	for key, network := range map[string]*string{".network": c.Network, ".docker.network": c.Docker.Network, ".browser.network": c.Browser.Network} {
		if network != nil {
			_, err := ParseNetwork(*network, join)
			k.is(at+key, err)
		}
	}
	k.is(at+".docker.seccompProfile", CheckProfile("seccompProfile", c.Docker.SeccompProfile))
	k.is(at+".docker.apparmorProfile", CheckProfile("apparmorProfile", c.Docker.AppArmorProfile))
	k.binds(at, c, wider)
	for key, list := range map[string][]string{".tmpfs": c.Tmpfs, ".docker.tmpfs": c.Docker.Tmpfs} {
		for i, entry := range list {
			_, err := ParseTmpfs(entry, workdirOf(c, wider))
			k.is(fmt.Sprintf("%s%s[%d]", at, key, i), err)
		}
	}
	for key, user := range map[string]string{".user": c.User, ".docker.user": c.Docker.User} {
		if user != "" {
			_, err := ParseUser(user)
			k.is(at+key, err)
		}
	}
	k.environment(at, c)
	k.workdir(at+".workdir", c.Workdir)
	k.toolchains(at+".toolchains", &c.Toolchains)
	k.docker(at, &c.Docker)
	k.names(at, c)
}

// workspaceRoot refuses directories in which private ones would lie beside what sandboxes must not see.
// cgroup refuses a place for control groups that is none, and one of a single agent: the gateway has one place for all.
func (k *checker) cgroup(key, dir string, forAll bool) {
	switch {
	case dir == "":
	case !forAll:
		k.wrong(key, sandbox.CodeConfig, "all sandboxes have their groups in one place: write agents.defaults.sandbox.native.cgroup")
	case dir != path.Clean(dir) || !strings.HasPrefix(dir, cgroupRoot+"/"):
		k.wrong(key, sandbox.CodeConfig, "%q is not a directory below %s", dir, cgroupRoot)
	}
}

// cgroupRoot is where the kernel's control groups are.
const cgroupRoot = "/sys/fs/cgroup"

func (k *checker) workspaceRoot(key, root string) {
	if root == "" {
		return
	}
	if !path.IsAbs(root) || strings.ContainsRune(root, 0) {
		k.wrong(key, sandbox.CodeConfig, "%q is not an absolute path", root)
		return
	}
	own := path.Join(k.around.StateDir, "sandboxes")
	rules := BindRules{Home: k.around.Home, OtherHomes: k.around.OtherHomes, StateDir: k.around.StateDir, WorkspaceRoot: own, FoldCase: k.around.FoldCase, Files: k.around.Files}
	real, err := Resolve(k.around.Files, path.Clean(root))
	if err != nil {
		k.wrong(key, sandbox.CodeConfig, "%s: %v", root, err)
		return
	}
	for _, dir := range []string{path.Clean(root), real} {
		if place.Within(dir, own) {
			continue
		}
		if code, secret := rules.blockedWorkspace(dir); code != "" {
			k.wrong(key, code, "%s would have sandboxes in or around %s, which they must not see", root, secret)
			return
		}
	}
}

// environment reports variables that never go in, whatever else is set: who writes one must not believe that it holds.
func (k *checker) environment(at string, c *Config) {
	for key, env := range map[string]map[string]string{".env": c.Env, ".docker.env": c.Docker.Env} {
		for name, value := range env {
			if sandbox.Trim(name) != "" && neverInside(sandbox.Trim(name), value) {
				k.wrong(joinKey(at+key, name), sandbox.CodeConfig, "this variable never goes into a sandbox: it makes programs load or run something, or it is none that all programs understand")
			}
		}
	}
}

// What container engines take for names. One that begins with a dash would be an option for whoever uses the arguments
// that explanations print.
var (
	imageName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}$`)
	engineName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)
	networkName = regexp.MustCompile(`^((?i:container):)?[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)
	ulimitName  = regexp.MustCompile(`^[a-z]{1,32}$`)
)

func (k *checker) names(at string, c *Config) {
	name := func(key, given string, form *regexp.Regexp, want string) {
		if given != "" && !form.MatchString(given) {
			k.wrong(at+key, sandbox.CodeConfig, "%q is not %s", given, want)
		}
	}
	name(".docker.image", c.Docker.Image, imageName, "the name of an image")
	name(".browser.image", c.Browser.Image, imageName, "the name of an image")
	name(".docker.runtime", c.Docker.Runtime, engineName, "the name of a runtime")
	name(".browser.containerPrefix", c.Browser.ContainerPrefix, engineName, "the beginning of a name")
	for key, network := range map[string]*string{".network": c.Network, ".docker.network": c.Docker.Network, ".browser.network": c.Browser.Network} {
		if network != nil {
			name(key, sandbox.Trim(*network), networkName, "the name of a network")
		}
	}
	for _, limit := range slices.Sorted(maps.Keys(c.Docker.Ulimits)) {
		if !ulimitName.MatchString(sandbox.Trim(limit)) && sandbox.Trim(limit) != "" {
			k.wrong(joinKey(at+".docker.ulimits", limit), sandbox.CodeConfig, "%q is not the name of a limit: write one such as nofile", limit)
		}
	}
}

func either(own *bool, wider *Config, get func(*Config) *bool) bool {
	if own == nil && wider != nil {
		own = get(wider)
	}
	return own != nil && *own
}

// workdir refuses places in which a workspace would replace what confines, or the system's programs.
func (k *checker) workdir(key, dir string) {
	if dir != "" && (!path.IsAbs(dir) || hidesSystem(path.Clean(dir)) || place.Within(path.Clean(dir), AgentTarget)) {
		k.wrong(key, sandbox.CodeConfig, "%q: the workspace cannot be there", dir)
	}
}

// workdirOf is where an object, or the wider one, puts the workspace, as far as it is written.
func workdirOf(c, wider *Config) string {
	if wider == nil {
		wider = &Config{}
	}
	return cmp.Or(c.Docker.Workdir, c.Workdir, wider.Docker.Workdir, wider.Workdir)
}

func (k *checker) numbers(at string, c *Config) {
	number := func(key string, n *int64, least, most int64) {
		if n != nil && (*n < least || *n > most) {
			k.wrong(at+key, sandbox.CodeConfig, "%d is out of range: write %d to %d", *n, least, most)
		}
	}
	number(".docker.pidsLimit", c.Docker.PidsLimit, 1, 1<<22)
	number(".limits.pids", c.Limits.Pids, 1, 1<<22)
	number(".limits.openFiles", c.Limits.OpenFiles, 16, 1<<20)
	number(".browser.cdpPort", c.Browser.CDPPort, 1, 65535)
	number(".browser.vncPort", c.Browser.VNCPort, 1, 65535)
	number(".browser.noVncPort", c.Browser.NoVNCPort, 1, 65535)
	number(".browser.autoStartTimeoutMs", c.Browser.AutoStartTimeoutMs, 1, 600_000)
	number(".prune.idleHours", c.Prune.IdleHours, 0, 100_000)
	number(".prune.maxAgeDays", c.Prune.MaxAgeDays, 0, 36_500)
	for key, cpus := range map[string]*float64{".docker.cpus": c.Docker.CPUs, ".limits.cpus": c.Limits.CPUs} {
		if cpus != nil && (*cpus <= 0 || *cpus > 4096) {
			k.wrong(at+key, sandbox.CodeConfig, "%v: write a number of processors above 0", *cpus)
		}
	}
	for key, q := range map[string]Quantity{
		".limits.memory": c.Limits.Memory, ".limits.swap": c.Limits.Swap, ".limits.disk": c.Limits.Disk,
		".limits.fileSize": c.Limits.FileSize, ".docker.memory": c.Docker.Memory, ".docker.memorySwap": c.Docker.MemorySwap,
	} {
		_, err := q.Count()
		if key == ".docker.memorySwap" && q.Text() == noLimit {
			err = nil
		}
		k.is(at+key, err)
	}
}

// binds checks all binds of an object. Where sources must lie is known only when a sandbox is made.
func (k *checker) binds(at string, c, wider *Config) {
	rules := BindRules{
		Home: k.around.Home, OtherHomes: k.around.OtherHomes, StateDir: k.around.StateDir, WorkspaceRoot: path.Join(k.around.StateDir, "sandboxes"),
		AllowReserved: either(c.Docker.AllowReservedTargets, wider, func(w *Config) *bool { return w.Docker.AllowReservedTargets }),
		FoldCase:      k.around.FoldCase, Files: k.around.Files, Programs: k.around.Programs, Workdir: workdirOf(c, wider),
	}
	for key, list := range map[string][]string{".binds": c.Binds, ".docker.binds": c.Docker.Binds, ".browser.binds": c.Browser.Binds} {
		for i, bind := range list {
			if _, err := rules.Validate(list[:i+1]); err != nil {
				k.is(fmt.Sprintf("%s%s[%d]", at, key, i), sandbox.Errorf(sandbox.CodeOf(err), "%s: %v", bind, err))
				break
			}
		}
	}
}

// bindsTwice reports the binds of an agent whose target one for all agents has: both count, so that only one could be there.
func (r *Resolved) bindsTwice(agent int) (problems []Problem) {
	for leaf, list := range map[string][]string{"binds": r.Neutral.Binds, "docker.binds": r.Docker.Binds} {
		forAll := map[string]string{}
		for i, spec := range list {
			b, err := ParseBind(spec)
			if err != nil {
				continue // it was reported
			}
			from := r.Sources[fmt.Sprintf("%s[%d]", leaf, i)]
			if from.Level != FromAgent {
				forAll[b.Target] = from.Key
			} else if other := forAll[b.Target]; other != "" {
				p := Problem{strings.Replace(from.Key, "[]", fmt.Sprintf("[%d]", agent), 1), CodeDuplicateTarget, fmt.Sprintf("%s is mounted at %s already", other, b.Target)}
				if !slices.ContainsFunc(problems, func(said Problem) bool { return said.Key == p.Key }) {
					problems = append(problems, p)
				}
			}
		}
	}
	return problems
}

func (k *checker) docker(at string, d *DockerConfig) {
	if _, err := ContainerName(d.ContainerPrefix, ScopeAgent, "agent:main"); err != nil {
		k.is(at+".docker.containerPrefix", err)
	} else if strings.Trim(d.ContainerPrefix, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" || strings.IndexAny(d.ContainerPrefix, "_.-") == 0 {
		k.wrong(at+".docker.containerPrefix", sandbox.CodeConfig, "%q: write letters and digits, and between them _ . -", d.ContainerPrefix)
	}
	k.workdir(at+".docker.workdir", d.Workdir)
	if p := d.SeccompProfile; p != "" && !path.IsAbs(p) && CheckProfile("", p) == nil {
		k.wrong(at+".docker.seccompProfile", sandbox.CodeConfig, "%q is not an absolute path", p)
	}
	for i, host := range d.ExtraHosts {
		if sandbox.Trim(host) != "" && !strings.Contains(host, ":") {
			k.wrong(fmt.Sprintf("%s.docker.extraHosts[%d]", at, i), sandbox.CodeConfig, "%q: write name:address", host)
		}
	}
	for i, server := range d.DNS {
		if _, err := netip.ParseAddr(sandbox.Trim(server)); err != nil && sandbox.Trim(server) != "" {
			k.wrong(fmt.Sprintf("%s.docker.dns[%d]", at, i), sandbox.CodeConfig, "%q is not an address", server)
		}
	}
	for name, limit := range d.Ulimits {
		k.is(joinKey(at+".docker.ulimits", name), checkUlimit(sandbox.Trim(name), limit.Render()))
	}
	for from, to := range d.HostPathMap {
		if !path.IsAbs(from) || !path.IsAbs(to) {
			k.wrong(at+".docker.hostPathMap", sandbox.CodeConfig, "%q: %q: write absolute directories", from, to)
		}
	}
	if d.SetupCommand != "" && d.ReadOnlyRoot == nil {
		k.wrong(at+".docker.setupCommand", sandbox.CodeConfig,
			"packages cannot be installed into an image that cannot be changed: set readOnlyRoot to false, with a network and user 0:0, or write readOnlyRoot: true to confirm")
	}
}

// joinKey is the key of an entry of a map.
func joinKey(parent, name string) string { return parent + "[" + strconv.Quote(name) + "]" }

// loosening reports what an agent confines less than is written for all agents: whoever edits one agent must not take
// away what was meant for every one.
func (k *checker) loosening(at string, all, own *Config) {
	loose := func(key string) {
		k.wrong(at+"."+key, sandbox.CodeConfig, "an agent may not loosen what agents.defaults.sandbox.%s sets: leave it out, or set agents.defaults.sandbox.allowAgentLoosening", key)
	}
	for _, key := range looserEgress(&all.Egress, &own.Egress) {
		loose(key)
	}
	if r := all.Docker.ReadOnlyRoot; r != nil && *r && own.Docker.ReadOnlyRoot != nil && !*own.Docker.ReadOnlyRoot {
		loose("docker.readOnlyRoot")
	}
	if all.Docker.CapDrop != nil && own.Docker.CapDrop != nil && !dropsAll(own.Docker.CapDrop, all.Docker.CapDrop) {
		loose("docker.capDrop")
	}
	for key, pair := range map[string][2]string{
		"docker.seccompProfile":  {all.Docker.SeccompProfile, own.Docker.SeccompProfile},
		"docker.apparmorProfile": {all.Docker.AppArmorProfile, own.Docker.AppArmorProfile},
	} {
		if pair[0] != "" && pair[1] != "" && sandbox.Trim(pair[0]) != sandbox.Trim(pair[1]) {
			loose(key)
		}
	}
	// What is written for every engine counts for docker, and the other way round.
	for key, user := range map[string]string{"docker.user": own.Docker.User, "user": own.User} {
		if slices.ContainsFunc([]string{all.Docker.User, all.User}, func(wider string) bool { return otherUser(wider, user) }) {
			loose(key)
		}
	}
}

// otherUser reports whether two users are written, and are not the same.
func otherUser(a, b string) bool {
	if sandbox.Trim(a) == "" || sandbox.Trim(b) == "" {
		return false
	}
	ua, err := ParseUser(a)
	ub, err2 := ParseUser(b)
	return err != nil || err2 != nil || ua != ub
}

// dropsAll reports whether the capabilities of one list contain those of another.
func dropsAll(own, wanted []string) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(own, func(o string) bool {
			o = strings.TrimPrefix(strings.ToUpper(sandbox.Trim(o)), "CAP_")
			return o == "ALL" || o == name
		})
	}
	for _, name := range wanted {
		if !has(strings.TrimPrefix(strings.ToUpper(sandbox.Trim(name)), "CAP_")) {
			return false
		}
	}
	return true
}

// keyAt is the key of an entry of a list.
func keyAt(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
