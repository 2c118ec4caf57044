package settings

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox"
)

// The codes of a bind that is refused, and of a network or a profile.
const (
	CodeBadSpec         sandbox.Code = "bad_spec"
	CodeNonAbsolute     sandbox.Code = "non_absolute"
	CodeBadTarget       sandbox.Code = "bad_target"
	CodeBadOption       sandbox.Code = "bad_option"
	CodeDuplicateTarget sandbox.Code = "duplicate_target"
	CodeCovers          sandbox.Code = "covers"  // the source contains a blocked directory
	CodeTargets         sandbox.Code = "targets" // the source is a blocked directory, or in one
	CodeReservedTarget  sandbox.Code = "reserved_target"
	CodeOutsideRoots    sandbox.Code = "outside_allowed_roots"
)

// The directories inside that have a meaning of their own.
const (
	WorkspaceTarget = "/workspace"
	AgentTarget     = "/agent"
	ownTarget       = "/." + sandbox.Brand // where the program inside lies
)

// Bind is one directory or file of the host that is mounted inside: "host:container[:options]".
type Bind struct {
	Source   string // clean absolute path
	Target   string // clean absolute path inside
	Writable bool
	SELinux  string // "", "z" or "Z": to be labeled for containers
}

// String is the bind in the form of the configuration, all of it said.
func (b Bind) String() string {
	options := "ro"
	if b.Writable {
		options = "rw"
	}
	if b.SELinux != "" {
		options += "," + b.SELinux
	}
	return b.Source + ":" + b.Target + ":" + options
}

// ParseBind reads one entry of "binds".
func ParseBind(spec string) (Bind, error) {
	parts := strings.SplitN(sandbox.Trim(spec), ":", 3)
	if len(parts) < 2 || strings.ContainsRune(spec, 0) || slices.ContainsFunc(parts, func(p string) bool { return sandbox.Trim(p) == "" }) {
		// Container engines take a path alone for an anonymous volume, which nobody means who writes a path.
		return Bind{}, sandbox.Errorf(CodeBadSpec, "%q: write host:container, or host:container:ro", spec)
	}
	b := Bind{Source: path.Clean(parts[0]), Target: path.Clean(parts[1]), Writable: true}
	if !path.IsAbs(parts[0]) {
		return Bind{}, sandbox.Errorf(CodeNonAbsolute, "%q: the source is not an absolute path", spec)
	}
	if !path.IsAbs(parts[1]) || badTarget(b.Target) {
		return Bind{}, sandbox.Errorf(CodeBadTarget, "%q: nothing can be mounted at %s inside", spec, parts[1])
	}
	if len(parts) == 3 {
		if err := b.options(parts[2]); err != nil {
			return Bind{}, err
		}
	}
	return b, nil
}

// badTarget reports whether a mount there would replace what confines, or what the program inside needs.
func badTarget(target string) bool {
	return target == "/" || slices.ContainsFunc([]string{"/proc", "/sys", "/dev", ownTarget}, func(dir string) bool { return place.Within(target, dir) })
}

// reservedTarget reports whether a workspace is there, or may be. workdir is where that of this sandbox is; "" is
// WorkspaceTarget.
func reservedTarget(target, workdir string) bool {
	return place.Within(target, WorkspaceTarget) || place.Within(target, AgentTarget) || workdir != "" && place.Within(target, path.Clean(workdir))
}

func (b *Bind) options(list string) error {
	access := ""
	for option := range strings.SplitSeq(list, ",") {
		switch word := strings.ToLower(option); {
		case (word == "ro" || word == "rw") && (access == "" || access == word):
			access, b.Writable = word, word == "rw"
		case option == "z" || option == "Z":
			b.SELinux = option
		default:
			// Propagation would carry mounts from inside to the host.
			return sandbox.Errorf(CodeBadOption, "option %q in %q: write ro or rw, and z or Z", option, list)
		}
	}
	return nil
}

// blockedSources are the directories of the host that no bind may show: they hold the host's accounts, devices and
// control sockets.
var blockedSources = []string{
	"/etc", "/proc", "/sys", "/dev", "/root", "/boot", "/run", "/var/run", "/var/run/docker.sock", "/run/docker.sock",
	"/private/etc", "/private/var/run", "/private/var/run/docker.sock",
	"/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/spool/cron",
}

// homeSources are the same below the home of the gateway's user: with them a command is that user elsewhere.
var homeSources = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
	".config/gcloud", ".config/gh",
}

// BindRules says which binds are allowed. It is used when the configuration is read and again before every start.
type BindRules struct {
	Home string // of the gateway's user
	// OtherHomes are the user's, too: where the accounts of the machine say that it is, if HOME says something else. The
	// keys are there, whatever somebody has put into HOME.
	OtherHomes    []string
	StateDir      string // Toolward's home; "" is none
	WorkspaceRoot string // the part of StateDir that sandboxes may see
	// Programs are Toolward's own programs on this machine, and where it puts them. Nothing that can be written to may hold
	// one: the hook that asks about an agent's calls would be what a command makes of it.
	Programs []string
	Workdir  string // inside, where the workspace is; "" is WorkspaceTarget
	// Roots are the directories that sources must lie in; nil is everywhere.
	Roots []string
	// AllowReserved and AllowExternal are the switches that waive the rules about reserved targets and roots.
	// Nothing waives the rule about blocked sources.
	AllowReserved, AllowExternal bool
	// InPlace: every bind has to be inside where it is on the host.
	InPlace  bool
	FoldCase bool // names differing only in case are the same file here
	Files    FileSystem
}

// Validate checks a list of binds in two phases, text and then symbolic links, and returns them with the real paths of
// their sources. The first bind that is refused ends it.
func (r *BindRules) Validate(specs []string) ([]Bind, error) {
	roots, err := r.roots()
	if err != nil {
		return nil, err
	}
	binds, targets := make([]Bind, 0, len(specs)), map[string]bool{}
	for _, spec := range specs {
		b, err := ParseBind(spec)
		if err != nil {
			return nil, err
		}
		if targets[b.Target] {
			return nil, sandbox.Errorf(CodeDuplicateTarget, "%q: something is mounted at %s already", spec, b.Target)
		}
		targets[b.Target] = true
		if err := r.check(b.Source, roots, b.Target); err != nil {
			return nil, err
		}
		resolved, err := Resolve(r.Files, b.Source)
		if err != nil {
			return nil, sandbox.Errorf(CodeTargets, "bind %s: where it leads cannot be told: %v", b.Source, err)
		}
		if err := r.check(resolved, roots, ""); err != nil {
			return nil, err
		}
		if b.Writable {
			if code, program := r.replaces(resolved); code != "" {
				return nil, sandbox.Errorf(code, "bind %s: commands could replace %s, a program of Toolward: show it with :ro, or something smaller", b.Source, program)
			}
		}
		written := b.Source
		b.Source = resolved
		if r.InPlace {
			if err := b.stays(written); err != nil {
				return nil, err
			}
		}
		binds = append(binds, b)
	}
	return binds, nil
}

// roots is each root as it is written and as it is.
func (r *BindRules) roots() ([]string, error) {
	if r.Roots == nil {
		return nil, nil
	}
	all := []string{}
	for _, root := range r.Roots {
		resolved, err := Resolve(r.Files, path.Clean(root))
		if err != nil {
			return nil, sandbox.Errorf(sandbox.CodeConfig, "directory %s: %v", root, err)
		}
		all = append(all, r.fold(path.Clean(root)), r.fold(resolved))
	}
	return all, nil
}

// check judges one path that a source has; target is "" the second time.
func (r *BindRules) check(source string, roots []string, target string) error {
	if code, dir := r.blocked(source); code != "" {
		if code == CodeCovers {
			return sandbox.Errorf(code, "bind source %s contains %s, which sandboxes must not see", source, dir)
		}
		return sandbox.Errorf(code, "bind source %s is in %s, which sandboxes must not see", source, dir)
	}
	if target != "" && !r.AllowReserved && !r.InPlace && reservedTarget(target, r.Workdir) {
		return &sandbox.Error{
			Code: CodeReservedTarget, Text: "a bind at " + target + " would hide the workspace",
			Fix: "choose another target, or set dangerouslyAllowReservedContainerTargets",
		}
	}
	if roots == nil || r.AllowExternal {
		return nil
	}
	folded := r.fold(source)
	if !slices.ContainsFunc(roots, func(root string) bool { return place.Within(folded, root) }) {
		return &sandbox.Error{
			Code: CodeOutsideRoots, Text: "bind source " + source + " is outside the agent's directories",
			Fix: "move it there, or set dangerouslyAllowExternalBindSources",
		}
	}
	return nil
}

// secret lists the directories that no bind may show, as they are named and as they are: keys are often links to where
// people keep all such files, and a bind of that place would show them. state is Toolward's home.
func (r *BindRules) secret() (dirs, state []string) {
	named := slices.Clone(blockedSources)
	for _, home := range r.homes() {
		for _, name := range homeSources {
			named = append(named, path.Join(home, name))
		}
	}
	if r.StateDir != "" {
		state = r.asItIs([]string{path.Clean(r.StateDir)})
	}
	return r.asItIs(named), state
}

// homes are all home directories of the gateway's user that are known.
func (r *BindRules) homes() []string {
	return slices.DeleteFunc(append([]string{r.Home}, r.OtherHomes...), func(home string) bool { return home == "" })
}

// asItIs adds what paths lead to. One that cannot be followed stands for itself.
func (r *BindRules) asItIs(paths []string) []string {
	all := slices.Clone(paths)
	for _, p := range paths {
		if real, err := Resolve(r.Files, p); err == nil && !slices.Contains(all, real) {
			all = append(all, real)
		}
	}
	return all
}

// blocked says which blocked directory a path is in, or contains.
func (r *BindRules) blocked(source string) (code sandbox.Code, dir string) {
	if r.fold(source) == "/" {
		return CodeCovers, "everything"
	}
	dirs, state := r.secret()
	for _, dir := range slices.Concat(dirs, state) {
		if !path.IsAbs(dir) { // with a relative HOME nobody knows where its keys are: this bind may show them
			return CodeTargets, dir
		}
	}
	if !r.private(source, state) {
		dirs = append(dirs, state...)
	}
	for _, dir := range dirs {
		if place.Within(r.fold(source), r.fold(dir)) {
			return CodeTargets, dir
		}
	}
	for _, dir := range dirs {
		if place.Within(r.fold(dir), r.fold(source)) {
			return CodeCovers, dir
		}
	}
	return "", ""
}

// replaces says which of Toolward's programs could be replaced by whoever can write to a path.
func (r *BindRules) replaces(source string) (code sandbox.Code, program string) {
	for _, program := range r.asItIs(r.Programs) {
		switch {
		case !path.IsAbs(program): // it may be anywhere
			return CodeTargets, program
		case place.Within(r.fold(source), r.fold(program)):
			return CodeTargets, program
		case place.Within(r.fold(program), r.fold(source)):
			return CodeCovers, program
		}
	}
	return "", ""
}

// private reports whether a path lies where sandboxes have their own directories in Toolward's home. A workspaceRoot that
// is that home, or contains it, frees nothing.
func (r *BindRules) private(source string, state []string) bool {
	if r.WorkspaceRoot == "" {
		return false
	}
	root := r.fold(path.Clean(r.WorkspaceRoot))
	strictlyIn := func(dir string) bool { return place.Within(root, r.fold(dir)) && root != r.fold(dir) }
	return place.Within(r.fold(source), root) && slices.ContainsFunc(state, strictlyIn)
}

func (r *BindRules) fold(p string) string {
	if r.FoldCase {
		return strings.ToLower(p)
	}
	return p
}

// stays takes a bind whose target is its source: where nothing can be mounted, its files are inside where they are. The
// real path of the source takes the place of both.
func (b *Bind) stays(written string) error {
	if b.Target != written {
		return &sandbox.Error{
			Code: sandbox.CodeConfig, Text: "without namespaces " + written + " cannot be shown as " + b.Target + ": nothing can be mounted on this machine",
			Fix: "write " + written + ":" + written + ", or give sandboxes namespaces: toolward sandbox probe",
		}
	}
	b.Target = b.Source
	return nil
}
