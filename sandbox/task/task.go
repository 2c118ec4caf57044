// Package task is what is asked of a sandbox and what it answers: commands, files, failures. It imports next to nothing,
// because the small program inside every sandbox is made of it.
package task

import (
	"os"
	"syscall"
	"time"
)

// DefaultPath is PATH inside where nothing else is said.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin"

// ReportFD is the descriptor of a command that reports its directory. Shells use small numbers and, for themselves, those
// from 10 and from 255 down; scripts seldom go so high.
const ReportFD = 63

// Command is what Start starts: exactly one of Argv, Segments and Shell.
type Command struct {
	Argv     []string  // a program and its arguments; a name without a slash is looked up in PATH inside
	Segments []Segment // an understood command, run without a shell
	Shell    string    // the text of a shell command, for sh -lc

	Dir      string   // absolute path inside; "" is the workdir
	Env      []string // NAME=value, overlays that of the sandbox
	OfClient bool     // Env is what a guarded client's shell has, which other rules are for; the program inside is not told
	Merged   bool     // standard error goes where standard output goes, in order
	Stdin    bool     // standard input stays open for writing; otherwise it is empty
	Keeps    bool     // what a program of its own leaves behind goes on; otherwise it is ended
	Reports  bool     // a program of its own may write to ReportFD in which directory it has ended; see ExitStatus.Dir
	Terminal *Size    // run on a terminal of this size
}

// Size is the size of a terminal in characters.
type Size struct{ Cols, Rows uint16 }

// Segment is one program of an understood command. Operators are those of a shell: "|", "&&", "||", ";", and "" at the
// end.
type Segment struct {
	Argv      []string
	Env       []string // assignments before the program
	Redirects []Redirect
	Operator  string
}

// RedirectKind is how a stream is redirected.
type RedirectKind uint8

// The kinds of redirections.
const (
	RedirectNone   RedirectKind = iota
	RedirectIn                  // fd<Path
	RedirectOut                 // fd>Path
	RedirectAppend              // fd>>Path
	RedirectCopy                // fd>&From
	RedirectText                // a here-document: Text on standard input
)

// Redirect changes one stream of a segment.
type Redirect struct {
	Kind RedirectKind
	FD   int
	From int
	Path string
	Text string
}

// ExitStatus is how a command ended.
type ExitStatus struct {
	Code     int            // 126 not executable, 127 not found; -1 if a signal ended it
	Signal   syscall.Signal // 0 if none
	OOM      bool           // memory ran out
	Leftover bool           // processes that it left behind were ended
	Warning  string         // what people should know: it ran in another directory than was asked for
	Dir      string         // with Command.Reports: the directory that the command says it ended in; "" if it says none
}

// FileType is what stands at a path.
type FileType uint8

// The types. The zero value is unknown, and nothing may be done with it.
const (
	TypeUnknown FileType = iota
	TypeRegular
	TypeDirectory
	TypeSymlink
	TypeOther // a device, FIFO or socket
)

// FileInfo describes a file inside.
type FileInfo struct {
	Path     string // real path inside
	Type     FileType
	Mode     os.FileMode // permission bits
	Size     int64
	Modified time.Time
	Links    uint64
	Identity Identity
}

// Identity tells a file, and a state of it, from others.
type Identity struct {
	Device, Inode     uint64
	Size              int64
	Modified, Changed int64 // nanoseconds since 1970
}

// Entry is one entry of a directory.
type Entry struct {
	Name string
	Type FileType
}

// WriteOptions say how a file is written.
type WriteOptions struct {
	Parents   bool        // create missing directories
	Append    bool        // add at the end instead of replacing
	Unchanged *Identity   // write only while the file still is this one
	Missing   bool        // write only while there is no such file
	Exact     bool        // the path is a real one: a symbolic link in it is CodeChanged
	Mode      os.FileMode // of a new file; 0 is 0644
}

// RemoveOptions say how something is removed.
type RemoveOptions struct {
	Recursive bool      // also a full directory
	Unchanged *Identity // remove only while it still is this one
	Exact     bool      // the path is a real one, but for its last name: another link in it is CodeChanged
}

// ListOptions say how a directory is listed.
type ListOptions struct {
	Limit int  // entries
	Exact bool // the path is a real one: a symbolic link in it is CodeChanged
}

// Port is a TCP port on which programs in a sandbox listen.
type Port struct {
	Number  uint16
	Local   bool   // it is reached at the sandbox's own loopback address; false: at others only
	PID     int    // of one that listens, inside; 0 is not known
	Program string // its name, as it calls itself
}

// Stats is what a sandbox uses.
type Stats struct {
	CPU        time.Duration // of all processors together, since it was started
	Processors int           // of the machine that it may run on, without its limit; 0 is unknown
	Memory     int64         // bytes now, without page cache where that can be told
	Cache      int64         // page cache: bytes of files that the kernel gives back when memory is needed
	MemoryPeak int64         // page cache included
	Pids       int64
	OOMKills   int64
}
