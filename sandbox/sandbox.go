// Package sandbox is the contract of those who run commands and file operations confined. sandbox/settings makes a Spec of the
// configuration, and sandbox/fleet keeps the sandboxes of a Toolward home.
//
// An [Engine] makes sandboxes of one kind: sandbox/native with the kernel's own means and no daemon, sandbox/docker
// through a container engine. What a sandbox must be is a [Spec], which is made from the configuration before any
// engine is asked; an engine that cannot enforce a part of it refuses. A [Handle] is one running sandbox. Its commands
// and file operations are done by a small program inside, whose wire protocol is sandbox/inside. That program runs with
// the rights of what it confines, so nothing that it says is trusted: it is data about the sandbox, never a permission.
package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Brand is in the names, labels and variables of everything that Toolward makes in a container engine.
const Brand = "toolward"

// The names of the engines.
const (
	EngineNative = "native"
	EngineDocker = "docker"
)

// Engine makes sandboxes of one kind. Every method honors its context.
type Engine interface {
	// Name is "native" or "docker".
	Name() string
	// Probe finds out, by trying, what can be enforced on this machine.
	Probe(ctx context.Context) (Capabilities, error)
	// Sweep removes what gateways of this instance left behind that do not run any more, but for whole sandboxes. It is
	// called before the first sandbox is made.
	Sweep(ctx context.Context) error
	// Ensure returns the running sandbox of this name and hash, creating or starting it where necessary. A sandbox of
	// the name that is not ours is CodeConflict; one with another hash is CodeConflict too: removing it is the
	// caller's decision.
	Ensure(ctx context.Context, spec *Spec) (Handle, error)
	// Lookup says what exists under a name; CodeNotFound if nothing does.
	Lookup(ctx context.Context, name string) (State, error)
	// List returns the sandboxes of this instance, running or not, and of no other.
	List(ctx context.Context) ([]State, error)
	// Stop ends everything that runs in a sandbox; its files stay.
	Stop(ctx context.Context, name string) error
	// Remove removes a sandbox. One that does not exist is no error.
	Remove(ctx context.Context, name string) error
	// Close releases what the engine holds. Sandboxes that cannot outlive the gateway end.
	Close() error
}

// Handle is one running sandbox. Paths are absolute paths inside. Errors are [*Error].
type Handle interface {
	// Start starts a command. It ends, with all its processes, when the context does.
	Start(ctx context.Context, command Command) (Process, error)

	// Stat says what a path leads to.
	Stat(ctx context.Context, path string) (FileInfo, error)
	// Lstat says what a path is: a symbolic link is not followed.
	Lstat(ctx context.Context, path string) (FileInfo, error)
	// ReadFile reads up to limit bytes of a regular file from offset on. FileInfo is of the file that was read.
	ReadFile(ctx context.Context, path string, offset, limit int64) ([]byte, FileInfo, error)
	// WriteFile makes data the content of a file, all or nothing.
	WriteFile(ctx context.Context, path string, data []byte, options WriteOptions) (FileInfo, error)
	// Mkdir creates a directory and its missing parents; an existing directory is no error.
	Mkdir(ctx context.Context, path string) error
	// Remove removes a file, a symbolic link (not its target) or an empty directory.
	Remove(ctx context.Context, path string, options RemoveOptions) error
	// Rename moves a file to a name that does not exist, creating the parents of the new one.
	Rename(ctx context.Context, from, to string) error
	// List returns entries of a directory in order of names, and whether there are more.
	List(ctx context.Context, path string, options ListOptions) (entries []Entry, more bool, err error)

	// Ports are those on which programs inside listen, in order, without Toolward's own, and whether there are more. The kernel says so, to the
	// program inside, and no command's output.
	Ports(ctx context.Context) (ports []Port, more bool, err error)
	// Connect connects to a port on the sandbox's own loopback address. The context bounds only the connecting.
	Connect(ctx context.Context, port uint16) (Connection, error)

	// Stats is what the sandbox uses.
	Stats(ctx context.Context) (Stats, error)
	// State is the sandbox as its engine knows it.
	State() State
	// Runs reports whether the sandbox can be used. It is false as soon as nobody inside answers any more.
	Runs() bool
	// Done is closed when the sandbox has ended, whoever ended it, and nothing of it is left running.
	Done() <-chan struct{}
	// Close lets go of the sandbox. A native sandbox ends with it unless it is detached.
	Close() error
}

// Spec is everything that a sandbox must be. It is complete: an engine looks nothing up and adds no rights.
type Spec struct {
	Name     string // of the container; unique on this machine together with Instance
	Hash     string // of the configuration that it was made from
	ScopeKey string // whose sandbox it is
	Instance string // which Toolward home made it

	Mounts    []Mount  // in the order of mounting
	Protected []string // paths inside that nobody may write, below writable mounts
	Workdir   string   // absolute path inside
	Env       []string // NAME=value, after the rules for environments
	User      User
	Account   Account
	Tmpfs     []Tmpfs
	Network   Network
	Limits    Limits
	Writable  bool     // the root file system can be written to; only for set-up commands
	Setup     string   // shell command to run once after creation
	DegradeOK []string // controls that may be missing: "cgroup", "namespaces"
	Ptrace    bool     // debuggers may trace processes inside
	Hardlinks bool     // files with several names may be read
	// Detach is how long the sandbox goes on without any gateway, of the native engine; 0: it ends with its gateway.
	Detach time.Duration

	Docker DockerSpec // only for the docker engine
}

// DockerSpec is what only a container engine knows.
type DockerSpec struct {
	Image          string
	Runtime        string // "" is runc
	CapDrop        []string
	SeccompProfile string // path of a profile; "" is the shipped one
	AppArmor       string
	DNS            []string
	ExtraHosts     []string
	Labels         map[string]string
	HostPaths      map[string]string // directories of the gateway → what they are on the engine's machine
	Ulimits        []Ulimit
}

// Ulimit is one resource limit by its name; -1 is no limit.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// Mount is a directory or file of the host inside.
type Mount struct {
	Kind     MountKind
	Source   string // real path on the host
	Target   string // absolute path inside
	Writable bool
	SELinux  string // "", "z" or "Z": as the configuration wants it labeled
	// Layer is a directory of the host with the directories "upper" and "work". The source is read-only then, and what is
	// written inside is in upper. Where the kernel does not lay one over the other, the mount is left out.
	Layer string
	// Pinned is the source as it was validated, opened O_PATH: what is mounted, whatever stands at the path by then.
	// The Spec's maker closes it after Ensure has returned.
	Pinned *os.File
}

// MountKind says why something is mounted.
type MountKind string

// The kinds of mounts.
const (
	MountWorkspace MountKind = "workspace"
	MountAgent     MountKind = "agent"
	MountHome      MountKind = "home" // of the sandbox itself
	MountBind      MountKind = "bind"
	MountTools     MountKind = "toolchain" // of the person's machine
	MountCache     MountKind = "cache"     // of the person's machine
	MountSystem    MountKind = "system"    // small files that tell programs about the user and the machine
)

// User is who runs inside, in numbers of the host.
type User struct{ UID, GID int }

// Account is what programs inside are told about the user.
type Account struct{ Name, Home, Shell string }

// accountName is what every system takes for the name of a user. Anything else could write lines of its own into a file of users.
var accountName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// Files are the lists of users and of groups inside. The user stands first: on a machine where root works as another number,
// both are called root, and who asks for a name means this one.
func (a Account) Files(uid, gid int) (passwd, group string) {
	if !accountName.MatchString(a.Name) {
		a.Name = Brand
	}
	plain := func(p, fallback string) string {
		if !path.IsAbs(p) || strings.ContainsAny(p, ":\n\r\x00") {
			return fallback
		}
		return p
	}
	passwd = fmt.Sprintf("%s:x:%d:%d:%s:%s:%s\n", a.Name, uid, gid, a.Name, plain(a.Home, "/"), plain(a.Shell, "/bin/sh")) +
		"root:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
	return passwd, fmt.Sprintf("%s:x:%d:\n", a.Name, gid) + "root:x:0:\nnogroup:x:65534:\n"
}

// Tmpfs is a file system in memory.
type Tmpfs struct {
	Target string
	Size   int64 // bytes; 0 is the engine's default
	Exec   bool  // programs there can be run
}

// tmpfsSize is that of a file system in memory where nobody says it and memory has no limit.
const tmpfsSize = 1 << 30

// Options is how container engines mount it. What lies there counts as memory of the sandbox and stays when the process
// that wrote it is killed, so that a full one must leave something of the memory (0: no limit) for the next command.
func (t Tmpfs) Options(memory int64) string {
	size := t.Size
	if size <= 0 {
		size = tmpfsSize
	}
	switch {
	case memory > 0 && t.Size > 0:
		size = min(size, memory/2)
	case memory > 0:
		size = min(size, memory/8) // there are several
	}
	exec := "noexec"
	if t.Exec {
		exec = "exec"
	}
	return fmt.Sprintf("rw,%s,nosuid,nodev,mode=1777,size=%d", exec, size)
}

// NetworkMode is what a sandbox reaches.
type NetworkMode string

// The modes. Other values are names of container networks.
const (
	NetworkNone   NetworkMode = "none"
	NetworkEgress NetworkMode = "egress" // the gateway's proxy and nothing else
	NetworkBridge NetworkMode = "bridge" // docker only
)

// Network is what a sandbox reaches.
type Network struct {
	Mode NetworkMode
	// EgressDir is the directory of the host that holds the socket of the gateway's proxy, with NetworkEgress.
	EgressDir string
	// Forwards are "host:port" that programs inside reach at the same port of their loopback address, as far as the proxy lets them.
	Forwards []string `json:",omitempty"`
}

// MachineHost is the name of the machine that the gateway is on, inside: its services are asked about by that name.
const MachineHost = "host." + Brand + ".internal"

// Limits bound what a sandbox uses. 0 is no limit.
type Limits struct {
	Memory    int64 // bytes, memory file systems included
	Swap      int64 // bytes beyond Memory; 0 is none, -1 no limit (container engines only)
	Pids      int64
	CPUs      float64
	Disk      int64 // bytes in the workspace
	OpenFiles int64 // for each process
	FileSize  int64 // bytes of one file
}

// MemorySwap is memory and swap together, as container engines count them; -1 is no limit of swap.
func (l Limits) MemorySwap() int64 {
	if l.Swap < 0 {
		return -1
	}
	return l.Memory + l.Swap
}

// Process is a started command. Stdout and Stderr must be read: a command that fills them waits.
type Process interface {
	// PID is the process id inside.
	PID() int
	Stdin() io.WriteCloser // nil without Command.Stdin or a terminal
	Stdout() io.Reader     // also the terminal's output
	Stderr() io.Reader     // empty on a terminal
	Resize(size Size) error
	// Signal goes to all processes of the command.
	Signal(signal syscall.Signal) error
	// Wait waits for the end and for all output to be handed over.
	Wait(ctx context.Context) (ExitStatus, error)
}

// Connection is a TCP connection to a program inside. Read, Write and Close may be called at the same time.
type Connection interface {
	io.ReadWriteCloser
	// CloseWrite says that nothing more is written; reading goes on.
	CloseWrite() error
}

// State is what an engine knows of a sandbox.
type State struct {
	Name     string
	Engine   string
	EngineID string // of the container, or pid, start time and boot of the supervisor
	ScopeKey string
	Hash     string
	Instance string
	Image    string
	Running  bool
	Created  time.Time
	Detached bool // a native sandbox that goes on, with what runs in it, when its gateway ends
}

// Capabilities is what an engine can enforce on this machine.
type Capabilities struct {
	Engine  string
	Level   Level
	Version string // of the engine, for people
	// InPlace: the engine can mount nothing here, so that directories are inside where they are on the host. A Spec whose
	// mounts have other targets is refused.
	InPlace bool
	Checks  []Check
}

// Works reports whether sandboxes can be made at all.
func (c Capabilities) Works() bool { return c.Level > LevelNone }

// Level is how much the native engine can enforce; the docker engine is LevelFull or LevelNone.
type Level uint8

// The levels.
const (
	LevelNone     Level = iota // nothing: sandboxes are refused
	LevelLandlock              // no namespaces: files and network by Landlock and seccomp
	LevelNoCgroup              // everything but hard limits of memory and processes
	LevelFull
)

var levelWords = map[Level]string{
	LevelNone: "nothing", LevelLandlock: "files and network only", LevelNoCgroup: "all but hard limits", LevelFull: "everything",
}

// Words say what a level enforces.
func (l Level) Words() string { return levelWords[l] }

// Check is one capability that was tried.
type Check struct {
	Name  string // "user namespace", "landlock", "cgroup", …
	OK    bool
	Found string // what was found, also when it works
	Fix   string // the narrowest remedy; "" if it works
}
