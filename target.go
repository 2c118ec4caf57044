package toolward

// Target is one file or directory of a call.
type Target struct {
	Path  string // as the caller wrote it
	Real  string // absolute, symbolic links resolved as far as the path exists
	Op    Op
	Zone  Zone
	Kind  Kind
	Links uint64 // hard links of a file
	Left  bool   // a symbolic link led out of the workspace
}

// Op is what a call does to a target.
type Op string

// The operations.
const (
	OpRead   Op = "read"
	OpWrite  Op = "write"
	OpDelete Op = "delete"
	OpMove   Op = "move"
)

// Take is something on this machine that a call would delete, move away or write over. A [Keeper] says of it whether anybody could
// bring it back.
type Take struct {
	Path string // as the caller wrote it
	Real string // absolute; "" if nobody knows where that is
	Tree bool   // with all that lies below
	Name string // only what has a name that matches this pattern, or lies below it; "": all
	Git  string // only what git has in its index ("tracked"), or only what it has not ("untracked"); "": both
}

// Zone is the word for what the path of a target is. Which paths are in which zone is decided by package place, whose
// [Zone] is the same in its order, the strictest first.
type Zone string

// The zones.
const (
	ZoneSelf         Zone = "self"         // Toolward's own configuration, state and programs
	ZoneSecret       Zone = "secret"       // credentials and keys
	ZoneProtected    Zone = "protected"    // what other programs run or trust
	ZoneInstructions Zone = "instructions" // what later runs obey
	ZoneOutside      Zone = "outside"      // everything else that is not in the workspace
	ZoneWorkspace    Zone = "workspace"    // the agent's workspace
)

// Kind is the word for what stands at the path of a target.
type Kind string

// The kinds. What is none of the first three is never read or written.
const (
	KindFile      Kind = "file"
	KindDirectory Kind = "directory"
	KindMissing   Kind = "missing"
	KindSymlink   Kind = "symlink" // the entry itself is a link
	KindDevice    Kind = "device"
	KindFIFO      Kind = "fifo"
	KindSocket    Kind = "socket"
	KindSpecial   Kind = "special" // anything else
	KindUnknown   Kind = "unknown" // nobody looked
)
