// Package seccomp is the system calls that a sandbox may make: one profile as data, in the two forms that engines need.
// [Profile.Program] assembles it for the kernel, [Profile.Docker] writes it for a container engine.
//
// It is an allow list. A system call that it does not know is answered as if the kernel had none (ENOSYS), so that a new
// kernel brings no new rights and programs use what they used before; those that are known and refused get the error
// that they expect. Nothing here is a boundary by itself: the kernel behind the allowed calls is the same.
package seccomp

// Errors of refused calls, as Linux numbers them on every architecture that is supported.
const (
	eperm        = 1
	enosys       = 38
	eafnosupport = 97
)

// Action is the answer to a system call: an error number, or 0 for allowed.
type Action uint16

// The answers.
const (
	Allow Action = 0
	Deny  Action = eperm
	// Unknown is the answer to whatever no rule names.
	Unknown  Action = enosys
	noFamily Action = eafnosupport
)

// Match is a condition on one argument: its lower 32 bits under Mask are Value. The kernel takes these arguments for 32
// bits too, so what stands above them must not count: a filter that compares 64 bits can be passed by setting one.
type Match struct {
	Argument    int
	Mask, Value uint32
}

// Case is an answer under conditions, all of which must hold.
type Case struct {
	Matches []Match
	Action  Action
}

// Rule is the answer to some system calls: that of the first case that holds, or else Else.
type Rule struct {
	Names []string
	Cases []Case
	Else  Action
}

// Profile is a list of rules; no system call is in two of them.
type Profile []Rule

// Options change the profile.
type Options struct {
	Ptrace bool // debuggers may trace processes of the sandbox
	// NoSockets refuses every socket but pairs: where no network namespace is empty, and no mounts hide the sockets of
	// other programs.
	NoSockets bool
}

// New returns the profile.
func New(options Options) Profile {
	tracing := Rule{Names: tracingCalls, Else: Deny}
	if options.Ptrace {
		tracing.Else = Allow
	}
	sockets := socketCases
	if options.NoSockets {
		sockets = nil
	}
	profile := Profile{
		{Names: words(allowed), Else: Allow},
		{Names: words(denied), Else: Deny},
		// A library that gets ENOSYS falls back to clone, whose flags can be seen.
		{Names: []string{"clone3"}, Else: Unknown},
		tracing,
		{
			Names: []string{"clone"}, Else: Deny,
			Cases: []Case{{[]Match{{0, newNamespaces, 0}}, Allow}},
		},
		{
			Names: []string{"socket"}, Else: noFamily,
			Cases: sockets,
		},
		{
			Names: []string{"socketpair"}, Else: noFamily,
			Cases: []Case{{[]Match{{0, whole, afUnix}}, Allow}},
		},
		{
			// Both put characters into the input of a terminal, as if its user had typed them.
			Names: []string{"ioctl"}, Else: Allow,
			Cases: []Case{{[]Match{{1, whole, tiocsti}}, Deny}, {[]Match{{1, whole, tioclinux}}, Deny}},
		},
		{
			// Other personalities switch off protections, or reach old code of the kernel.
			Names: []string{"personality"}, Else: Deny,
			Cases: []Case{
				{[]Match{{0, whole, 0}}, Allow},
				{[]Match{{0, whole, addrNoRandomize}}, Allow},
				{[]Match{{0, whole, whole}}, Allow}, // asks for the present one
			},
		},
	}
	return append(profile, fileRules()...)
}

const (
	whole           = 1<<32 - 1
	newNamespaces   = 0x7e020000 // CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
	afUnix          = 1
	afInet          = 2
	afInet6         = 10
	afNetlink       = 16
	sockTypes       = 0xf // the rest are flags
	sockStream      = 1
	sockDgram       = 2
	netlinkRoute    = 0
	tiocsti         = 0x5412
	tioclinux       = 0x541c
	addrNoRandomize = 0x0040000

	fileTypes  = 0o170000
	charDevice = 0o020000
	blkDevice  = 0o060000
	setid      = 0o6000
	// createFlags are O_CREAT and the part of O_TMPFILE that is its own: only with one of them a mode counts.
	createFlags = 0o100 | 0o20000000
)

// socketCases: no network reaches beyond the sandbox's own, except that AF_VSOCK and some other families know no
// network namespaces. Raw and packet sockets read and forge what others send.
var socketCases = []Case{
	{[]Match{{0, whole, afUnix}}, Allow},
	{[]Match{{0, whole, afInet}, {1, sockTypes, sockStream}}, Allow},
	{[]Match{{0, whole, afInet}, {1, sockTypes, sockDgram}}, Allow},
	{[]Match{{0, whole, afInet6}, {1, sockTypes, sockStream}}, Allow},
	{[]Match{{0, whole, afInet6}, {1, sockTypes, sockDgram}}, Allow},
	{[]Match{{0, whole, afNetlink}, {2, whole, netlinkRoute}}, Allow},
}

// fileRules are the calls that give files modes. No file is made that runs as its owner or group: what a sandbox leaves in a
// workspace is a file of the person on the machine, whoever else starts it there.
func fileRules() Profile {
	devices := func(argument int) []Case {
		return []Case{
			{[]Match{{argument, fileTypes, charDevice}}, Deny},
			{[]Match{{argument, fileTypes, blkDevice}}, Deny},
		}
	}
	plain := func(argument int) Case { return Case{[]Match{{argument, setid, 0}}, Allow} }
	open := func(flags, mode int) []Case {
		return []Case{{[]Match{{flags, createFlags, 0}}, Allow}, plain(mode)}
	}
	return Profile{
		{Names: []string{"mknod"}, Cases: append(devices(1), plain(1)), Else: Deny},
		{Names: []string{"mknodat"}, Cases: append(devices(2), plain(2)), Else: Deny},
		{Names: words("chmod fchmod creat"), Cases: []Case{plain(1)}, Else: Deny},
		{Names: words("fchmodat fchmodat2"), Cases: []Case{plain(2)}, Else: Deny},
		{Names: []string{"open"}, Cases: open(1, 2), Else: Deny},
		{Names: []string{"openat"}, Cases: open(2, 3), Else: Deny},
		// Its mode stands in memory, where no filter looks. Programs that get ENOSYS use openat.
		{Names: []string{"openat2"}, Else: Unknown},
	}
}
