package native

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/native/setup"
	"github.com/toolward/toolward/sandbox/seccomp"
)

// What of the host every sandbox sees, to read only.
var (
	systemTop = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} // links or directories, as on the host
	// systemEtc is what programs need to find libraries, certificates and each other. Everything else of the host's
	// /etc, its users and their passwords above all, is not there.
	systemEtc = []string{
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/services",
		"/etc/protocols", "/etc/mime.types", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs",
		"/etc/pki/ca-trust/extracted", "/etc/ca-certificates/extracted", "/etc/os-release",
	}
	devices = []string{"null", "zero", "full", "random", "urandom", "tty"}
	// Parts of /proc that are about the machine: nobody may write the first, nobody may read the second.
	procReadOnly = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"}
	procMasked   = []string{
		"kcore", "keys", "key-users", "timer_list", "timer_stats", "latency_stats", "sched_debug", "kallsyms",
		"kmsg", "interrupts",
	}
)

// basePlan is what every sandbox of a user has.
func basePlan() *setup.Plan {
	p := &setup.Plan{}
	add := func(steps ...setup.Step) { p.Steps = append(p.Steps, steps...) }
	add(setup.Step{Kind: setup.CgroupNamespace}, setup.Step{Kind: setup.Loopback})
	add(setup.Step{Kind: setup.Bind, Source: "/usr", Path: "/usr", Attr: hardened | setup.ReadOnly})
	for _, name := range systemTop {
		if target, err := os.Readlink("/" + name); err == nil {
			add(setup.Step{Kind: setup.Symlink, Source: target, Path: "/" + name})
		} else {
			add(setup.Step{Kind: setup.Bind, Source: "/" + name, Path: "/" + name, Attr: hardened | setup.ReadOnly, Optional: true})
		}
	}
	add(etcSteps()...)
	add(devSteps()...)
	add(setup.Step{Kind: setup.Proc, Path: "/proc", Attr: hardened | setup.NoExec})
	add(settingSteps()...)
	for _, name := range procReadOnly {
		add(setup.Step{Kind: setup.Again, Path: "/proc/" + name, Attr: hardened | setup.NoExec | setup.ReadOnly})
	}
	for _, name := range procMasked {
		add(setup.Step{Kind: setup.Mask, Path: "/proc/" + name})
	}
	return p
}

// settingSteps bound what the kernel counts for each user namespace. No more namespaces can be made inside, whatever
// becomes of the filter. And what watches files is counted for the user of the gateway, too: a sandbox that takes all
// there is would leave none to that user's editor.
func settingSteps() []setup.Step {
	var steps []setup.Step
	set := func(name, value string) {
		steps = append(steps, setup.Step{Kind: setup.Setting, Path: "/proc/sys/user/" + name, Data: []byte(value)})
	}
	for _, kind := range []string{"user", "pid", "net", "ipc", "uts", "cgroup", "time"} {
		set("max_"+kind+"_namespaces", "0")
	}
	for _, counted := range []string{"instances", "watches"} {
		data, err := os.ReadFile("/proc/sys/fs/inotify/max_user_" + counted)
		if most, ok := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && ok == nil && most > 1 {
			set("max_inotify_"+counted, strconv.Itoa(most/2))
		}
	}
	return steps
}

// etcSteps make an /etc that says what programs ask and nothing about the host.
func etcSteps() []setup.Step {
	file := etcFile
	steps := []setup.Step{
		file("hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
		file("resolv.conf", "# Names are resolved by the gateway's proxy, if there is one.\n"),
		file("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"),
		file("hostname", "sandbox\n"),
	}
	for _, source := range systemEtc {
		steps = append(steps, setup.Step{
			Kind: setup.Bind, Source: source, Path: source, Attr: hardened | setup.NoExec | setup.ReadOnly, Optional: true,
		})
	}
	if zone, err := filepath.EvalSymlinks("/etc/localtime"); err == nil && strings.HasPrefix(zone, "/usr/") {
		steps = append(steps, setup.Step{Kind: setup.Symlink, Source: zone, Path: "/etc/localtime"})
	}
	return steps
}

func etcFile(name, text string) setup.Step {
	return setup.Step{Kind: setup.File, Path: "/etc/" + name, Mode: 0o644, Data: []byte(text)}
}

// accountSteps tell programs who they run as.
func accountSteps(spec *sandbox.Spec, who identity) []setup.Step {
	passwd, group := spec.Account.Files(who.uid, who.gid)
	return []setup.Step{etcFile("passwd", passwd), etcFile("group", group)}
}

func devSteps() []setup.Step {
	steps := []setup.Step{{Kind: setup.Tmpfs, Path: "/dev", Mode: 0o755, Size: 64 << 10, Attr: setup.NoSetuid | setup.NoExec}}
	for _, name := range devices {
		steps = append(steps, setup.Step{
			Kind: setup.Bind, Source: "/dev/" + name, Path: "/dev/" + name, Attr: setup.NoSetuid | setup.NoExec,
		})
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	} {
		steps = append(steps, setup.Step{Kind: setup.Symlink, Source: target, Path: "/dev/" + name})
	}
	return append(steps,
		setup.Step{Kind: setup.Terminals, Path: "/dev/pts", Attr: setup.NoSetuid | setup.NoExec},
		setup.Step{Kind: setup.Tmpfs, Path: "/dev/shm", Mode: 0o1777, Size: 64 << 20, Attr: hardened},
		setup.Step{Kind: setup.Attributes, Path: "/dev", Attr: setup.ReadOnly},
	)
}

// defaultTmpfs is the size of a memory file system that has none.
const defaultTmpfs = 1 << 30

// tmpfsSize bounds a memory file system by the limit of memory: what is in it stays there when the process that wrote it
// is killed, so a full one would leave nothing for the next command.
func tmpfsSize(wanted, memory int64) uint64 {
	size, most := int64(defaultTmpfs), int64(defaultTmpfs)
	if wanted > 0 {
		size, most = wanted, wanted
	}
	if memory > 0 {
		most = memory / 2
		if wanted == 0 {
			most = memory / 8 // there are several
		}
	}
	return uint64(min(size, most))
}

// lastPlan is what this sandbox has beyond every other, and what it is confined to.
func (e *Engine) lastPlan(spec *sandbox.Spec, who identity, m *mounts) (*setup.Plan, error) {
	program, err := filterFor(spec, false)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.CodeUnavailable, "the filter for system calls: %v", err)
	}
	p := &setup.Plan{
		Last: true, Hostname: "sandbox", Rlimits: rlimits(spec.Limits), LandlockABI: e.landlockABI(), Filter: program,
		Forward: spec.Network.Mode == sandbox.NetworkEgress, Forwards: spec.Network.Forwards,
		Landlock: []setup.Rule{
			{Path: "/", Right: setup.RightRead},
			{Path: "/dev", Right: setup.RightUse},
			{Path: "/dev/shm", Right: setup.RightWrite},
			{Path: "/proc", Right: setup.RightUse},
		},
	}
	p.Steps = append(p.Steps, accountSteps(spec, who)...)
	for _, t := range spec.Tmpfs {
		attr := hardened
		if !t.Exec {
			attr |= setup.NoExec
		}
		p.Steps = append(p.Steps, setup.Step{Kind: setup.Tmpfs, Path: path.Clean(t.Target), Mode: 0o1777, Size: tmpfsSize(t.Size, spec.Limits.Memory), Attr: attr})
		p.Landlock = append(p.Landlock, setup.Rule{Path: path.Clean(t.Target), Right: setup.RightWrite})
	}
	p.Steps = append(p.Steps, m.steps...)
	// What holds another is mounted before it, whatever the order of the configuration. Otherwise it would hide it: a
	// path that the file tools know as read-only could be written by commands, or be a file of another directory.
	slices.SortStableFunc(p.Steps, func(a, b setup.Step) int {
		return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/"))
	})
	p.Steps = append(p.Steps, m.late...)
	p.Landlock = append(p.Landlock, m.rules...)
	protected, err := protectedSteps(spec)
	if err != nil {
		return nil, err
	}
	p.Steps = append(p.Steps, protected...)
	if spec.Writable {
		p.Landlock = append(p.Landlock, setup.Rule{Path: "/", Right: setup.RightWrite})
	} else {
		p.Steps = append(p.Steps, setup.Step{Kind: setup.Attributes, Path: "/", Attr: setup.ReadOnly | hardened})
	}
	return p, nil
}

// protectedSteps make the protected paths read-only. What was removed since they were found needs no protection, and a
// symbolic link cannot be mounted on.
func protectedSteps(spec *sandbox.Spec) ([]setup.Step, error) {
	var steps []setup.Step
	for _, target := range spec.Protected {
		if !path.IsAbs(target) {
			return nil, sandbox.Errorf(sandbox.CodeConfig, "the protected path %q is not absolute", target)
		}
		target = path.Clean(target)
		if dir := path.Dir(target); path.Base(dir) == ".git" {
			// A directory that something is mounted on cannot be renamed, so .git cannot be put aside and made anew.
			steps = append(steps, setup.Step{Kind: setup.Again, Path: dir})
		}
		steps = append(steps, setup.Step{Kind: setup.Again, Path: target, Attr: setup.ReadOnly})
	}
	return steps, nil
}

// filters are the assembled filters by their options: there are few, and each takes milliseconds to make.
var filters sync.Map // seccomp.Options to []byte

// filterFor assembles the filter. open: the host's sockets can be seen.
func filterFor(spec *sandbox.Spec, open bool) ([]byte, error) {
	options := seccomp.Options{Ptrace: spec.Ptrace, NoSockets: open}
	if program, ok := filters.Load(options); ok {
		return program.([]byte), nil
	}
	program, err := seccomp.New(options).Program()
	if err == nil {
		filters.Store(options, program)
	}
	return program, err
}

func rlimits(l sandbox.Limits) []setup.Rlimit {
	limits := []setup.Rlimit{{Resource: unix.RLIMIT_CORE}}
	for _, one := range []struct {
		resource int
		value    int64
	}{
		{unix.RLIMIT_NOFILE, l.OpenFiles},
		{unix.RLIMIT_FSIZE, l.FileSize},
		{unix.RLIMIT_NPROC, l.Pids},
	} {
		if one.value > 0 {
			limits = append(limits, setup.Rlimit{Resource: uint32(one.resource), Value: uint64(one.value)})
		}
	}
	return limits
}
